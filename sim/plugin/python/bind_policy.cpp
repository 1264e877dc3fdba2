// The classes Policy, Actions and Counters; Placer, and what it is told.
#include <utility>

#include <pybind11/stl.h>

#include "policies/builtin.hpp"
#include "sim/base/units.hpp"
#include "sim/plugin/load_policies.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/python_policy.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::plugin::python {
namespace {

// The classes Policy, Actions and Counters.

using namespace policy;

/// A method of what a call lends.
template <class Result, class... Given>
auto lent(Result (Actions::*method)(Given...)) {
  return [method](const BorrowedActions& self, Given... given) -> Result {
    return (self.get().*method)(given...);
  };
}

LaunchInfo oldest_held(const BorrowedActions& self, ClientId client) {
  if (self.get().held(client) == 0) throw py::value_error("the client holds no launch");
  return self.get().oldest_held(client);
}

void reshape(const BorrowedActions& self, ClientId client, std::uint64_t most_blocks,
             double slowdown) {
  self.get().reshape(client, {most_blocks, slowdown});
}

void bind_actions(py::module_& module) {
  const py::arg client("client");
  py::class_<BorrowedActions>(module, "Actions",
                              "What a policy may do during a call; an error after it.")
      .def("release", lent(&Actions::release), client, "Lets the oldest held launch go on.")
      .def("held",
           [](const BorrowedActions& self, ClientId of) { return self.get().held(of); },
           client, "How many launches of the client are held.")
      .def("oldest_held", &oldest_held, client, "The launch that release() lets go on.")
      .def("set_sm_percentage", lent(&Actions::set_sm_percentage), client, py::arg("percentage"),
           "MPS active-thread percentage, 1 to 100.")
      .def("set_priority", lent(&Actions::set_priority), client, py::arg("priority"),
           "Larger is placed first.")
      .def("set_time_slice", lent(&Actions::set_time_slice), client, py::arg("slice_ns"),
           "Its turn, where clients are time-sliced.")
      .def("preempt", lent(&Actions::preempt), client, py::arg("how"),
           "Drives the client's kernels off the GPU.")
      .def("proceed", lent(&Actions::proceed), client, "Ends preempt().")
      .def("reshape", &reshape, client, py::kw_only(), py::arg("most_blocks") = 0,
           py::arg("slowdown") = 1.0, "The form of the client's next launch that goes on.")
      .def("set_resident_memory", lent(&Actions::set_resident_memory), client, py::arg("resident"),
           "Bytes of the client that are on the device from now on.")
      .def("set_asking", lent(&Actions::set_asking), client, py::arg("asks"),
           "Whether the client's launches wait for verdicts from now on, or are only told.");
}

void add_count(const BorrowedCounters& self, const std::string& name, Severity severity,
               const std::string& help, std::uint64_t count) {
  self.get().add(name, CounterSet::Entry{severity, help, count});
}

// What a subclass has not of its own is never called: these are for super() and for help().
void bind_base(py::module_& module) {
  py::class_<DefaultPolicy>(module, "Policy",
                            "A sharing policy for one GPU; derive from it. Calls come one at a "
                            "time, at instants (nanoseconds since the start) that never go back.")
      .def(py::init<>())
      .def("start", [](DefaultPolicy&, const GpuInfo&, const std::vector<ClientInfo>&) {
             return Sharing{};
           }, py::arg("gpu"), py::arg("clients"), "First call; clients[0] is protected. Sharing.")
      .def("share", [](DefaultPolicy&, const ClientInfo&) { return ClientSharing{}; },
           py::arg("client"), "Then once a client. ClientSharing.")
      .def("admit", &DefaultPolicy::admit, py::arg("filler"), py::arg("used"), py::arg("gpu"),
           "Then once a filler; used: bytes. Admission.")
      .def("on_launch", [](DefaultPolicy&, const LaunchInfo&, std::int64_t,
                           const BorrowedActions&) { return Verdict::kAdmit; },
           py::arg("launch"), py::arg("now"), py::arg("actions"),
           "A host thread calls a launch. ADMIT or HOLD.")
      .def("on_completion", [](DefaultPolicy&, const CompletionInfo&, std::int64_t,
                               const BorrowedActions&) {},
           py::arg("completion"), py::arg("now"), py::arg("actions"), "Needs completions.")
      .def("on_bubble_begin", [](DefaultPolicy&, const BubbleInfo&, std::int64_t,
                                 const BorrowedActions&) {},
           py::arg("bubble"), py::arg("now"), py::arg("actions"), "Needs bubbles.")
      .def("on_bubble_end", [](DefaultPolicy&, std::int64_t, const BorrowedActions&) {},
           py::arg("now"), py::arg("actions"), "Needs bubbles.")
      .def("on_iteration", [](DefaultPolicy&, const IterationInfo&, std::int64_t,
                              const BorrowedActions&) {},
           py::arg("iteration"), py::arg("now"), py::arg("actions"), "Needs iterations.")
      .def("on_gone", [](DefaultPolicy&, std::uint32_t, std::int64_t, const BorrowedActions&) {},
           py::arg("client"), py::arg("now"), py::arg("actions"), "A filler's process has ended.")
      .def("next_tick", [](DefaultPolicy&) { return std::optional<std::int64_t>(); },
           "When on_tick wants to be called next; asked after every call. None: not at all.")
      .def("on_tick", [](DefaultPolicy&, std::int64_t, const BorrowedActions&) {},
           py::arg("now"), py::arg("actions"), "The instant that next_tick gave.")
      .def("add_counts", [](DefaultPolicy&, const BorrowedCounters&) {}, py::arg("counters"),
           "Asked once, at the end.");
}

}  // namespace

void bind_policy(py::module_& module) {
  bind_actions(module);
  py::class_<BorrowedCounters>(module, "Counters", "What the reader of the result should know.")
      .def("add", &add_count, py::arg("name"), py::arg("severity"), py::arg("help"),
           py::arg("count") = 1, "Adds to a count; a name has one severity and one help.");
  bind_base(module);
}

namespace {

// The class Placer, and what it is told. sim/policy/placement.hpp says what each member means.

/// The base class in Python.
struct BasePlacer {};

class PythonPlacer final : public Placer {
 public:
  PythonPlacer(py::object object, RunFault& fault) : object_(std::move(object)), fault_(fault) {}
  ~PythonPlacer() override {
    const py::gil_scoped_acquire lock;
    object_ = py::object();
  }
  PythonPlacer(const PythonPlacer&) = delete;
  PythonPlacer& operator=(const PythonPlacer&) = delete;

  std::vector<Placement> place(std::span<const JobInfo> waiting, std::span<const GpuState> gpus,
                               Instant now) override {
    const py::gil_scoped_acquire lock;
    const std::string where = "place at " + format_duration(now);
    py::object given;
    try {
      given = object_.attr("place")(std::vector<JobInfo>(waiting.begin(), waiting.end()),
                                    std::vector<GpuState>(gpus.begin(), gpus.end()), now);
      std::vector<Placement> placed;
      for (const auto& [job, gpu] : given.cast<std::vector<std::pair<std::uint32_t, GpuId>>>()) {
        placed.push_back({job, gpu});
      }
      return placed;
    } catch (py::error_already_set& raised) {
      throw told(raised, where, fault_);
    } catch (const py::builtin_exception&) {
      throw std::runtime_error(where + " returned " + py::repr(given).cast<std::string>() +
                               ", expected a list of (job, gpu)");
    }
  }

 private:
  py::object object_;
  RunFault& fault_;
};

void bind_states(py::module_& module) {
  py::class_<GpuState>(module, "GpuState", "A GPU of the job's, as a cluster's scheduler sees it.")
      .def_readonly("id", &GpuState::id, "From 0.")
      .def_readonly("memory", &GpuState::memory, "Bytes of the device.")
      .def_readonly("used", &GpuState::used, "Bytes of training and of what is placed on it.")
      .def_readonly("bubble_memory", &GpuState::bubble_memory,
                    "Least bytes that training leaves free during bubbles; 0: not known.")
      .def_readonly("iteration_ns", &GpuState::iteration, "Of training alone; 0: not known.")
      .def_readonly("bubble_ns", &GpuState::bubble_time,
                    "Of an iteration, in bubbles; only with Needs(bubbles).")
      .def_readonly("pipeline_ns", &GpuState::pipeline_time, "Of that, waits for pipeline peers.")
      .def_readonly("request", &GpuState::request, "SM shares promised to what is placed on it.")
      .def_readonly("limit", &GpuState::limit, "SM shares that it may use at most.")
      .def_readonly("jobs", &GpuState::jobs, "Placed on it and not ended.");
}

void bind_jobs(py::module_& module) {
  py::class_<JobInfo>(module, "JobInfo", "An instance of a filler, or a fill job, to be placed.")
      .def_readonly("id", &JobInfo::id, "In order of submission.")
      .def_readonly("kind", &JobInfo::kind, "Equal for instances, and for jobs, of one filler.")
      .def_readonly("name", &JobInfo::name, "Of the filler.")
      .def_readonly("role", &JobInfo::role, "What it is.")
      .def_readonly("memory", &JobInfo::memory, "Bytes on a device; 0: not known.")
      .def_readonly("memory_known", &JobInfo::memory_known, "Whether memory is.")
      .def_readonly("request", &JobInfo::request, "SM share that it asks for; 0: not said.")
      .def_readonly("limit", &JobInfo::limit, "SM share that it can use; 0: not said.")
      .def_readonly("work_ns", &JobInfo::work, "On a GPU of its own; 0: endless.")
      .def_readonly("deadline_ns", &JobInfo::deadline, "An instant, or None.")
      .def_readonly("submitted_ns", &JobInfo::submitted, "An instant.");
}

}  // namespace

std::unique_ptr<Placer> placer_of(py::object object, RunFault& fault) {
  if (!py::isinstance<BasePlacer>(object)) {
    throw std::runtime_error("make_placer made " + py::repr(object).cast<std::string>() +
                             ", expected an instance of a subclass of bubblesim.Placer");
  }
  return std::make_unique<PythonPlacer>(std::move(object), fault);
}

void bind_placer(py::module_& module) {
  bind_states(module);
  bind_jobs(module);
  py::class_<BasePlacer>(module, "Placer", "Which fillers run on which GPUs; derive from it.")
      .def(py::init<>())
      .def("place", [](BasePlacer&, const std::vector<JobInfo>&, const std::vector<GpuState>&,
                       std::int64_t) { return py::list(); },
           py::arg("waiting"), py::arg("gpus"), py::arg("now"),
           "At the start, and whenever a job is submitted or has ended: a list of (job's id, "
           "GPU's id) of what begins now. What is not placed waits.");
}

namespace {

// Declarations of parameters, and register(): the module keeps what was registered in its
// attribute `registered`, a dict by name, in order.

py::object to_python(const Value& value) {
  return std::visit([](const auto& held) -> py::object { return py::cast(held); }, value);
}

/// Shared by the copies of a spec: Python's count of references is not touched by copying one.
struct Maker {
  py::object make;
  RunFault* fault;
};

py::dict parameters_of(const ParameterSet& given) {
  py::dict parameters;
  for (const auto& [name, value] : given) parameters[py::str(name)] = to_python(value);
  return parameters;
}

std::unique_ptr<Placer> make_placer(const Maker& maker, const ParameterSet& given) {
  const py::gil_scoped_acquire lock;
  try {
    return placer_of(maker.make(parameters_of(given)), *maker.fault);
  } catch (py::error_already_set& raised) {
    throw told(raised, "make_placer", *maker.fault);
  }
}

std::unique_ptr<Policy> make_policy(const Maker& maker, const ParameterSet& given) {
  const py::gil_scoped_acquire lock;
  try {
    py::object made = maker.make(parameters_of(given));
    if (!py::isinstance<DefaultPolicy>(made)) {
      throw std::runtime_error("made " + py::repr(made).cast<std::string>() +
                               ", expected an instance of a subclass of bubblesim.Policy");
    }
    return std::make_unique<PythonPolicy>(std::move(made), *maker.fault);
  } catch (py::error_already_set& raised) {
    throw told(raised, "make", *maker.fault);
  }
}

void register_policy(py::module_& module, const std::string& name, const py::object& make,
                     std::vector<ParameterSpec> parameters, const std::string& summary,
                     const std::string& source, const Needs& needs, bool oracle,
                     const std::string& reconstruction, const py::object& make_placer) {
  if (PyCallable_Check(make.ptr()) == 0) throw py::type_error("make must be callable");
  if (!make_placer.is_none() && PyCallable_Check(make_placer.ptr()) == 0) {
    throw py::type_error("make_placer must be callable");
  }
  Registered registered;
  registered.spec.name = name;
  registered.spec.summary = summary;
  registered.spec.source = source;
  registered.spec.needs = needs;
  registered.spec.oracle = oracle;
  registered.spec.reconstruction = reconstruction;
  registered.spec.parameters = std::move(parameters);
  registered.make = make;
  registered.make_placer = make_placer;
  const Registry builtin = policies::builtin_policies();
  PolicySpec checked = registered.spec;
  checked.make = [](const ParameterSet&) { return std::make_unique<DefaultPolicy>(); };
  if (const auto good = check_spec(checked, builtin); !good) {
    throw py::value_error("policy " + name + ": " + good.error().message);
  }
  module.attr("registered")[py::str(name)] = py::cast(std::move(registered));
}

void bind_declarations(py::module_& module) {
  py::class_<ParameterSpec>(module, "Parameter", "A declared parameter of a policy.")
      .def_readonly("name", &ParameterSpec::name, "In configs.")
      .def_readonly("unit", &ParameterSpec::unit, "\"blocks\", \"%\" ...")
      .def_readonly("help", &ParameterSpec::help, "One sentence.")
      .def_readonly("source", &ParameterSpec::source, "Where the default is from.");
  const auto unit = py::arg("unit") = "";
  const auto help = py::arg("help") = "";
  const auto source = py::arg("source") = "";
  module.def("declare_flag", [](std::string name, bool fallback, std::string about_help,
                                std::string about_source) {
        return declare_flag(std::move(name), fallback, {"", about_help, about_source});
      }, py::arg("name"), py::arg("default"), py::kw_only(), help, source, "True or False.");
  module.def("declare_integer", [](std::string name, std::int64_t fallback, std::int64_t minimum,
                                   std::int64_t maximum, std::string about_unit,
                                   std::string about_help, std::string about_source) {
        return declare_integer(std::move(name), fallback, minimum, maximum,
                               {about_unit, about_help, about_source});
      }, py::arg("name"), py::arg("default"), py::arg("minimum"), py::arg("maximum"),
      py::kw_only(), unit, help, source, "A whole number; minimum and maximum are allowed.");
  module.def("declare_number", [](std::string name, double fallback, double minimum,
                                  double maximum, std::string about_unit, std::string about_help,
                                  std::string about_source) {
        return declare_number(std::move(name), fallback, minimum, maximum,
                              {about_unit, about_help, about_source});
      }, py::arg("name"), py::arg("default"), py::arg("minimum"), py::arg("maximum"),
      py::kw_only(), unit, help, source, "A number; minimum and maximum are allowed.");
  module.def("declare_duration", [](std::string name, Duration fallback, Duration minimum,
                                    Duration maximum, std::string about_help,
                                    std::string about_source) {
        return declare_duration(std::move(name), fallback, minimum, maximum,
                                {"", about_help, about_source});
      }, py::arg("name"), py::arg("default_ns"), py::arg("minimum_ns"), py::arg("maximum_ns"),
      py::kw_only(), help, source, "In a config it is written with its unit, \"5ms\".");
  module.def("declare_choice", [](std::string name, std::vector<std::string> choices,
                                  std::string about_help, std::string about_source) {
        if (choices.empty()) throw py::value_error("expected at least one choice");
        return declare_choice(std::move(name), std::move(choices),
                              {"", about_help, about_source});
      }, py::arg("name"), py::arg("choices"), py::kw_only(), help, source,
      "The default is the first choice.");
}

}  // namespace

PolicySpec runnable(const Registered& registered, RunFault& fault) {
  PolicySpec spec = registered.spec;
  const auto maker = std::make_shared<const Maker>(Maker{registered.make, &fault});
  spec.make = [maker](const ParameterSet& given) { return make_policy(*maker, given); };
  if (!registered.make_placer.is_none()) {
    const auto placer = std::make_shared<const Maker>(Maker{registered.make_placer, &fault});
    spec.make_placer = [placer](const ParameterSet& given) { return make_placer(*placer, given); };
  }
  return spec;
}

void bind_register(py::module_& module) {
  py::class_<Registered>(module, "RegisteredPolicy", "A policy that Python registered.")
      .def_property_readonly("name", [](const Registered& self) { return self.spec.name; },
                             "In configs.")
      .def_property_readonly("summary", [](const Registered& self) { return self.spec.summary; },
                             "One line.");
  module.attr("registered") = py::dict();
  bind_declarations(module);
  module.def(
      "register",
      [module](const std::string& name, const py::object& make,
               std::vector<ParameterSpec> parameters, const std::string& summary,
               const std::string& source, const Needs& needs, bool oracle,
               const std::string& reconstruction, const py::object& placer) mutable {
        register_policy(module, name, make, std::move(parameters), summary, source, needs, oracle,
                        reconstruction, placer);
      },
      py::arg("name"), py::arg("make"), py::kw_only(),
      py::arg("parameters") = std::vector<ParameterSpec>{}, py::arg("summary") = "from Python",
      py::arg("source") = "", py::arg("needs") = Needs{}, py::arg("oracle") = false,
      py::arg("reconstruction") = "", py::arg("make_placer") = py::none(),
      "Makes a policy known to run(). make(parameters: dict) gives a Policy, once for every GPU "
      "of a run. make_placer(parameters) gives a Placer, once a run; None: every filler has its "
      "place on each of its GPUs. A policy of this name that Python registered is replaced.");
}

}  // namespace bubblesim::plugin::python
