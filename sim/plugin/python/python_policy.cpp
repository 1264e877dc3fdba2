#include "sim/plugin/python/python_policy.hpp"

#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "sim/base/units.hpp"
#include "sim/plugin/python/bindings.hpp"

namespace bubblesim::plugin::python {

/// The bound methods that the subclass has of its own; null: the base's, which Python need not be
/// called for.
struct PythonPolicy::Methods {
  py::object object;
  py::object start, share, admit, on_launch, on_completion, on_bubble_begin, on_bubble_end,
      on_iteration, on_gone, next_tick, on_tick, add_counts;
  py::object actions;   ///< a BorrowedActions, made once
  BorrowedActions* borrowed = nullptr;

  explicit Methods(py::object policy) : object(std::move(policy)) {
    const std::pair<const char*, py::object*> all[] = {
        {"start", &start},
        {"share", &share},
        {"admit", &admit},
        {"on_launch", &on_launch},
        {"on_completion", &on_completion},
        {"on_bubble_begin", &on_bubble_begin},
        {"on_bubble_end", &on_bubble_end},
        {"on_iteration", &on_iteration},
        {"on_gone", &on_gone},
        {"next_tick", &next_tick},
        {"on_tick", &on_tick},
        {"add_counts", &add_counts}};
    const py::type own = py::type::of(object);
    const py::type base = py::type::of<DefaultPolicy>();
    for (const auto& [name, method] : all) {
      if (!own.attr(name).is(base.attr(name))) *method = object.attr(name);
    }
    actions = py::cast(BorrowedActions{});
    borrowed = actions.cast<BorrowedActions*>();
  }
};

namespace {

/// Lends an object to Python for one call.
template <class T>
class Loan {
 public:
  Loan(Borrowed<T>& borrowed, T& object) : borrowed_(borrowed) { borrowed_.set(&object); }
  ~Loan() { borrowed_.set(nullptr); }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

 private:
  Borrowed<T>& borrowed_;
};

template <class T>
T take(const py::object& result, const char* method, const char* expected) {
  try {
    return result.cast<T>();
  } catch (const py::builtin_exception&) {  // cast_error, or of None: reference_cast_error
    throw std::runtime_error(std::string(method) + " returned " +
                             py::repr(result).cast<std::string>() + ", expected " + expected);
  }
}

}  // namespace

std::runtime_error told(py::error_already_set& raised, const std::string& where, RunFault& fault) {
  const std::string text = raised.what();
  if (!fault.exception) {
    fault.exception = raised.value();
    if (raised.trace()) {
      PyException_SetTraceback(fault.exception.ptr(), raised.trace().ptr());
    }
  }
  return std::runtime_error(where + ": " + text.substr(0, text.find("\n\nAt:")));
}

PythonPolicy::PythonPolicy(py::object object, RunFault& fault)
    : methods_(std::make_unique<Methods>(std::move(object))), fault_(fault) {}

PythonPolicy::~PythonPolicy() {
  const py::gil_scoped_acquire lock;
  methods_.reset();
}

template <class... Arguments>
py::object PythonPolicy::call(const py::object& method, const char* name, policy::Instant now,
                              const Arguments&... arguments) const {
  try {
    return method(arguments...);
  } catch (py::error_already_set& raised) {
    throw told(raised, std::string(name) + " at " + format_duration(now), fault_);
  }
}

template <class... Arguments>
py::object PythonPolicy::act(const py::object& method, const char* name, policy::Instant now,
                             policy::Actions& actions, const Arguments&... arguments) const {
  const Loan<policy::Actions> loan(*methods_->borrowed, actions);
  return call(method, name, now, arguments..., now, methods_->actions);
}

// Without a method of the subclass's own, Python's lock is not even taken.
template <class... Arguments>
void PythonPolicy::notify(const py::object& method, const char* name, policy::Instant now,
                          policy::Actions& actions, const Arguments&... arguments) const {
  if (!method) return;
  const py::gil_scoped_acquire lock;
  act(method, name, now, actions, arguments...);
}

policy::Sharing PythonPolicy::start(const policy::GpuInfo& gpu,
                                    std::span<const policy::ClientInfo> clients) {
  const py::gil_scoped_acquire lock;
  if (!methods_->start) return {};
  const std::vector<policy::ClientInfo> list(clients.begin(), clients.end());
  const py::object result = call(methods_->start, "start", {}, gpu, list);
  if (result.is_none()) return {};
  return take<policy::Sharing>(result, "start", "Sharing or None");
}

policy::ClientSharing PythonPolicy::share(const policy::ClientInfo& client) {
  const py::gil_scoped_acquire lock;
  if (!methods_->share) return Policy::share(client);
  const py::object result = call(methods_->share, "share", {}, client);
  if (result.is_none()) return Policy::share(client);
  return take<policy::ClientSharing>(result, "share", "ClientSharing or None");
}

policy::Admission PythonPolicy::admit(const policy::ClientInfo& filler, Bytes used,
                                      const policy::GpuInfo& gpu) {
  const py::gil_scoped_acquire lock;
  if (!methods_->admit) return Policy::admit(filler, used, gpu);
  const py::object result = call(methods_->admit, "admit", {}, filler, used, gpu);
  if (result.is_none()) return Policy::admit(filler, used, gpu);
  return take<policy::Admission>(result, "admit", "Admission or None");
}

policy::Verdict PythonPolicy::on_launch(const policy::LaunchInfo& launch, policy::Instant now,
                                        policy::Actions& actions) {
  if (!methods_->on_launch) return policy::Verdict::kAdmit;
  const py::gil_scoped_acquire lock;
  const py::object result = act(methods_->on_launch, "on_launch", now, actions, launch);
  return take<policy::Verdict>(result, "on_launch", "Verdict.ADMIT or Verdict.HOLD");
}

void PythonPolicy::on_completion(const policy::CompletionInfo& completion, policy::Instant now,
                                 policy::Actions& actions) {
  notify(methods_->on_completion, "on_completion", now, actions, completion);
}

void PythonPolicy::on_bubble_begin(const policy::BubbleInfo& bubble, policy::Instant now,
                                   policy::Actions& actions) {
  notify(methods_->on_bubble_begin, "on_bubble_begin", now, actions, bubble);
}

void PythonPolicy::on_bubble_end(policy::Instant now, policy::Actions& actions) {
  notify(methods_->on_bubble_end, "on_bubble_end", now, actions);
}

void PythonPolicy::on_iteration(const policy::IterationInfo& iteration, policy::Instant now,
                                policy::Actions& actions) {
  notify(methods_->on_iteration, "on_iteration", now, actions, iteration);
}

void PythonPolicy::on_gone(ClientId client, policy::Instant now, policy::Actions& actions) {
  notify(methods_->on_gone, "on_gone", now, actions, client);
}

std::optional<policy::Instant> PythonPolicy::next_tick() const {
  if (!methods_->next_tick) return std::nullopt;
  const py::gil_scoped_acquire lock;
  py::object result;
  try {
    result = methods_->next_tick();
  } catch (py::error_already_set& raised) {
    throw told(raised, "next_tick", fault_);
  }
  return take<std::optional<policy::Instant>>(result, "next_tick", "whole nanoseconds or None");
}

void PythonPolicy::on_tick(policy::Instant now, policy::Actions& actions) {
  notify(methods_->on_tick, "on_tick", now, actions);
}

void PythonPolicy::add_counts(CounterSet& counters) const {
  if (!methods_->add_counts) return;
  const py::gil_scoped_acquire lock;
  const py::object borrowed = py::cast(BorrowedCounters{});
  const Loan<CounterSet> loan(*borrowed.cast<BorrowedCounters*>(), counters);
  try {
    methods_->add_counts(borrowed);
  } catch (py::error_already_set& raised) {
    throw told(raised, "add_counts", fault_);
  }
}

}  // namespace bubblesim::plugin::python
