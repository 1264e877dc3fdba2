// simulate(): what the command `bubblesim run CONFIG` does, with policies of Python's too.
//
// A run that uses a policy of Python's simulates on the calling thread, and takes the lock for
// every call of it; others on `threads`. Ctrl-C ends both. What parts of a run do alone is
// simulated once a session for all runs that have it in common.
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/observe/report.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/errors.hpp"
#include "sim/plugin/python/interruptible.hpp"
#include "sim/plugin/python/run_output.hpp"
#include "sim/plugin/python/surroundings.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/sweep/run_key.hpp"
#include "sim/sweep/sweep_config.hpp"

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
  bool force;                           ///< whatever it takes
};

class PythonRun {
 public:
  PythonRun(const py::module_& module, const RunArguments& arguments,
            run::BaselineCache& baselines)
      : module_(module), arguments_(arguments), baselines_(baselines),
        registry_(known_policies(arguments.libraries)) {}

  std::unique_ptr<RunOutput> run() {
    add_registered(registry_, module_, fault_);
    const run::RunConfig config = read_config();
    run::RunOptions options;
    auto output = std::make_unique<RunOutput>();
    ask_for_timeline(config, options, *output);
    options.threads = arguments_.threads;
    if (arguments_.force) options.size = run::Size::kAny;
    const std::string devices = config_folder(module_, arguments_.configs) + "/devices";
    CheckedResult<void> done;
    std::atomic<bool> stop{false};
    options.stop = &stop;
    if (uses_registered(config, module_)) {
      options.threads = 1;
      const StopOnInterrupt on_interrupt(stop);
      {
        const py::gil_scoped_release unlocked;
        done = simulate(config, devices, options, *output);
      }
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    } else {
      run_interruptibly([&] { done = simulate(config, devices, options, *output); }, stop);
    }
    good(std::move(done), &fault_);
    return output;
  }

 private:
  run::RunConfig read_config() {
    if (py::isinstance<py::dict>(arguments_.config)) {
      read_dict();
    } else {
      path_ = py::module_::import("os").attr("fspath")(arguments_.config).cast<std::string>();
      if (arguments_.policies.is_none()) return config_of_file();
      read_base();
    }
    return good(run::parse_run_config(*text_, path_, registry_), &fault_);
  }

  run::RunConfig config_of_file() {
    text_ = read_text_file(path_).value_or(std::string());
    run::RunConfig read = good(run::read_run_config(path_, registry_), &fault_);
    if (read_text_file(path_).value_or(std::string()) != *text_) text_.reset();
    return read;
  }

  // The file with other policies.
  void read_base() {
    const sweep::BaseParts parts{path_, {}, {{"/policies", json_of(arguments_.policies)}}};
    const Json base = good(sweep::load_base(parts, path_), &fault_);
    text_ = compact_text(base);
  }

  void read_dict() {
    path_ = arguments_.base ? *arguments_.base + "/config" : "config";
    py::object config = arguments_.config;
    if (!arguments_.policies.is_none()) {
      config = py::module_::import("copy").attr("copy")(config);
      config["policies"] = arguments_.policies;
    }
    text_ = json_of(config);
  }

  static std::string json_of(const py::object& value) {
    return py::module_::import("json").attr("dumps")(value).cast<std::string>();
  }

  void ask_for_timeline(const run::RunConfig& config, run::RunOptions& options,
                        RunOutput& output) const {
    const Duration window{arguments_.window_ns};
    if (window <= Duration{}) {
      raise_faults({{"timeline_window_ns", {}, "found " + std::to_string(arguments_.window_ns) +
                                                   ", expected a window above 0"}});
    }
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
    output.timeline->set_window(begin, begin + std::min(window, SimTime::max() - begin));
    options.timeline = output.timeline.get();
  }

  CheckedResult<void> simulate(const run::RunConfig& config, const std::string& devices,
                               run::RunOptions options, RunOutput& output) const {
    const auto keys = baseline_keys(devices);
    BUBBLESIM_ASSIGN_OR_RETURN(const auto loaded, run::load_run(config, devices));
    // A file that changed meanwhile may have been read before or after.
    if (keys && keys == baseline_keys(devices)) options.baselines = {&baselines_, *keys};
    BUBBLESIM_ASSIGN_OR_RETURN(output.report, run::run_policies(loaded, registry_, options));
    if (output.timeline) output.report.counters.merge(output.timeline->counters());
    output.json = observe::report_json(output.report);
    return {};
  }

  // Nothing: what the run depends on cannot be told, and it measures its own.
  [[nodiscard]] std::optional<run::BaselineKeys> baseline_keys(const std::string& devices) const {
    if (!text_) return std::nullopt;
    const auto folder = [](const std::string& path) {
      return std::filesystem::path(path).parent_path().string();
    };
    auto keys = sweep::baseline_keys_now(*text_, folder(path_), folder(devices));
    return keys ? std::optional(*std::move(keys)) : std::nullopt;
  }

  const py::module_& module_;
  const RunArguments& arguments_;
  run::BaselineCache& baselines_;
  std::string path_;                 ///< of the config; its paths are relative to the folder
  std::optional<std::string> text_;  ///< of it; nothing: it changed while it was read
  RunFault fault_;
  policy::Registry registry_;
};

}  // namespace

void bind_run(py::module_& module) {
  bind_run_output(module);
  // Shared by the calls of the function, for as long as it lives.
  const auto baselines = std::make_shared<run::BaselineCache>();
  module.def(
      "simulate",
      [module, baselines](const py::object& config, const py::object& policies,
                          const std::optional<std::string>& base,
                          std::vector<std::string> libraries,
                          const std::optional<std::string>& configs, std::size_t threads,
                          const std::optional<std::string>& timeline, std::int64_t window_ns,
                          bool force) {
        const RunArguments arguments{config,  policies, base,     std::move(libraries),
                                     configs, threads,  timeline, window_ns, force};
        return PythonRun(module, arguments, *baselines).run();
      });
}

}  // namespace bubblesim::plugin::python
