#include "sim/plugin/python/errors.hpp"

#include <chrono>
#include <csignal>
#include <exception>
#include <future>
#include <string>

namespace bubblesim::plugin::python {

py::module_ core() { return py::module_::import("bubblesim._core"); }

py::list fault_list(const Errors& faults) {
  const py::object make = core().attr("Fault");
  py::list list;
  for (const Error& fault : faults) list.append(make(fault.file, fault.place, fault.message));
  return list;
}

void raise_faults(const Errors& faults, RunFault* of_policy) {
  if (of_policy != nullptr && of_policy->exception &&
      !py::isinstance(of_policy->exception, py::handle(PyExc_Exception))) {
    PyErr_SetObject(py::type::of(of_policy->exception).ptr(), of_policy->exception.ptr());
    throw py::error_already_set();
  }
  std::string text;
  for (const Error& fault : faults) text += (text.empty() ? "" : "\n") + fault.text();
  const py::object error = core().attr("Error")(text);
  error.attr("faults") = fault_list(faults);
  if (of_policy != nullptr && of_policy->exception) {
    PyException_SetCause(error.ptr(), of_policy->exception.release().ptr());
  }
  PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
  throw py::error_already_set();
}

void bind_errors(py::module_& module) {
  py::object fault = py::module_::import("collections").attr("namedtuple")(
      "Fault", py::make_tuple("file", "place", "message"));
  fault.attr("__doc__") = "One fault of the input: the file, the place in it (a JSON pointer, a "
                          "line, a byte), and what was found and expected.";
  module.attr("Fault") = fault;
  py::dict members;
  members["faults"] = py::tuple();
  module.attr("Error") = py::reinterpret_steal<py::object>(PyErr_NewExceptionWithDoc(
      "bubblesim.Error",
      "A fault of the input, or a policy that ended its run; its exception is the cause. `faults` "
      "lists what the text says, each with file, place and message.",
      PyExc_Exception, members.ptr()));
}

namespace {

constexpr auto kTick = std::chrono::milliseconds{50};

// A handler is handed nothing: what it sets and calls must be reachable without an object.
std::atomic<std::atomic<bool>*> stopped_by_interrupt{nullptr};
struct sigaction handler_of_python{};

void stop_and_tell_python(int signal) noexcept {
  if (std::atomic<bool>* stop = stopped_by_interrupt) *stop = true;
  handler_of_python.sa_handler(signal);
}

bool raises_on_this_thread() {
  const py::module_ threading = py::module_::import("threading");
  const py::module_ signal = py::module_::import("signal");
  return threading.attr("current_thread")().is(threading.attr("main_thread")()) &&
         signal.attr("getsignal")(SIGINT).is(signal.attr("default_int_handler"));
}

}  // namespace

StopOnInterrupt::StopOnInterrupt(std::atomic<bool>& stop) {
  if (stopped_by_interrupt != nullptr || !raises_on_this_thread()) return;  // a run within a run
  sigaction(SIGINT, nullptr, &handler_of_python);
  const auto handler = handler_of_python.sa_handler;  // a library may have put another there
  const bool takes_one = (handler_of_python.sa_flags & SA_SIGINFO) == 0;
  if (!takes_one || handler == SIG_DFL || handler == SIG_IGN) return;
  struct sigaction action = handler_of_python;
  action.sa_handler = stop_and_tell_python;
  stopped_by_interrupt = &stop;
  installed_ = sigaction(SIGINT, &action, nullptr) == 0;
}

StopOnInterrupt::~StopOnInterrupt() {
  if (!installed_) return;
  struct sigaction now{};
  sigaction(SIGINT, nullptr, &now);
  // A policy may have set another one.
  if (now.sa_handler == stop_and_tell_python) sigaction(SIGINT, &handler_of_python, nullptr);
  stopped_by_interrupt = nullptr;
}

void run_interruptibly(const std::function<void()>& work, std::atomic<bool>& stop,
                       const std::function<void()>& tick) {
  std::future<void> done = std::async(std::launch::async, work);
  std::exception_ptr raised;
  while (unlocked([&] { return done.wait_for(kTick); }) != std::future_status::ready) {
    if (raised) continue;
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (tick) tick();
    } catch (...) {
      raised = std::current_exception();
      stop = true;
    }
  }
  if (raised) std::rethrow_exception(raised);
  done.get();
}

}  // namespace bubblesim::plugin::python
