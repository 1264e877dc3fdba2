// simulate(): what the command `bubblesim run CONFIG` does, with policies of Python's too.
//
// A run that uses a policy of Python's simulates on the calling thread, and takes the lock for
// every call of it; others on `threads`, and Ctrl-C ends them.
#include <pybind11/stl.h>

#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/observe/report.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/errors.hpp"
#include "sim/plugin/python/interruptible.hpp"
#include "sim/plugin/python/run_output.hpp"
#include "sim/plugin/python/surroundings.hpp"
#include "sim/run/run_policies.hpp"

namespace bubblesim::plugin::python {
namespace {

struct RunArguments {
  py::object config;
  py::object policies;
  std::optional<std::string> base;  ///< folder of a dict's paths
  std::vector<std::string> libraries;
  std::optional<std::string> configs;  ///< folder with devices/
  std::size_t threads;
  std::optional<std::string> timeline;  ///< whose
  std::int64_t window_ns;               ///< of the timeline
};

class PythonRun {
 public:
  PythonRun(const py::module_& module, const RunArguments& arguments)
      : module_(module), arguments_(arguments),
        registry_(known_policies(arguments.libraries)) {}

  std::unique_ptr<RunOutput> run() {
    add_registered(registry_, module_, fault_);
    const run::RunConfig config = read_config();
    run::RunOptions options;
    auto output = std::make_unique<RunOutput>();
    ask_for_timeline(config, options, *output);
    options.threads = arguments_.threads;
    const std::string devices = config_folder(module_, arguments_.configs) + "/devices";
    CheckedResult<void> done;
    if (uses_registered(config, module_)) {
      options.threads = 1;
      const py::gil_scoped_release unlocked;
      done = simulate(config, devices, options, *output);
    } else {
      std::atomic<bool> stop{false};
      options.stop = &stop;
      run_interruptibly([&] { done = simulate(config, devices, options, *output); }, stop);
    }
    good(std::move(done), &fault_);
    return output;
  }

 private:
  run::RunConfig read_config() {
    const py::module_ json = py::module_::import("json");
    std::string path = arguments_.base.value_or(".") + "/config";
    py::object config = arguments_.config;
    if (!py::isinstance<py::dict>(config)) {
      path = py::module_::import("os").attr("fspath")(config).cast<std::string>();
      if (arguments_.policies.is_none()) {
        return good(run::read_run_config(path, registry_), &fault_);
      }
      const py::object text = py::module_::import("pathlib").attr("Path")(path).attr("read_text")();
      config = json.attr("loads")(text);
    } else if (!arguments_.base) {
      path = "config";
    }
    if (!arguments_.policies.is_none()) {
      config = py::module_::import("copy").attr("copy")(config);
      config["policies"] = arguments_.policies;
    }
    const auto text = json.attr("dumps")(config).cast<std::string>();
    return good(run::parse_run_config(text, path, registry_), &fault_);
  }

  void ask_for_timeline(const run::RunConfig& config, run::RunOptions& options,
                        RunOutput& output) const {
    if (!arguments_.timeline) return;
    for (std::size_t i = 0; i < config.policies.size() && !options.timeline_of; ++i) {
      if (config.policies[i].name == *arguments_.timeline) options.timeline_of = i;
    }
    if (!options.timeline_of) {
      raise_faults({{"timeline", {}, "found \"" + *arguments_.timeline +
                                         "\", which this run does not use"}});
    }
    output.timeline = std::make_unique<observe::TimelineRecorder>();
    const SimTime begin = kSimStart + config.warmup;
    output.timeline->set_window(begin, begin + Duration{arguments_.window_ns});
    options.timeline = output.timeline.get();
  }

  CheckedResult<void> simulate(const run::RunConfig& config, const std::string& devices,
                               const run::RunOptions& options, RunOutput& output) const {
    const auto loaded = run::load_run(config, devices);
    if (!loaded) return tl::unexpected<Errors>(loaded.error());
    auto report = run::run_policies(*loaded, registry_, options);
    if (!report) return tl::unexpected<Errors>(Errors{report.error()});
    output.report = *std::move(report);
    if (output.timeline) output.report.counters.merge(output.timeline->counters());
    output.json = observe::report_json(output.report);
    return {};
  }

  const py::module_& module_;
  const RunArguments& arguments_;
  RunFault fault_;
  policy::Registry registry_;
};

}  // namespace

void bind_run(py::module_& module) {
  bind_run_output(module);
  module.def(
      "simulate",
      [module](const py::object& config, const py::object& policies,
               const std::optional<std::string>& base, std::vector<std::string> libraries,
               const std::optional<std::string>& configs, std::size_t threads,
               const std::optional<std::string>& timeline, std::int64_t window_ns) {
        const RunArguments arguments{config,  policies, base,     std::move(libraries),
                                     configs, threads,  timeline, window_ns};
        return PythonRun(module, arguments).run();
      });
}

}  // namespace bubblesim::plugin::python
