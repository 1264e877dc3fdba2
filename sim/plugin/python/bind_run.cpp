#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/observe/report.hpp"
#include "sim/observe/result_rows.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/observe/timeline.hpp"
#include "sim/plugin/python/arrays.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/errors.hpp"
#include "sim/plugin/python/surroundings.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/run/timeline_export.hpp"
#include "sim/sweep/run_key.hpp"
#include "sim/sweep/sweep_config.hpp"

namespace bubblesim::plugin::python {
namespace {

/// What a run leaves for Python: the report as it is, its JSON, and a timeline if asked for.
struct RunOutput {
  observe::RunReport report;
  std::string json;  ///< as `bubblesim run --json` prints it
  std::unique_ptr<observe::TimelineRecorder> timeline;  ///< null: none was asked for
};

// simulate(): what the command `bubblesim run CONFIG` does, with policies of Python's too.
//
// A run that uses a policy of Python's simulates on the calling thread, and takes the lock for
// every call of it; others on `threads`. Ctrl-C ends both. What parts of a run do alone is
// simulated once a session for all runs that have it in common.

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
  PythonRun(const RunArguments& arguments, run::BaselineCache& baselines)
      : arguments_(arguments), baselines_(baselines),
        registry_(known_policies(arguments.libraries)) {}

  std::unique_ptr<RunOutput> run() {
    add_registered(registry_, fault_);
    const run::RunConfig config = read_config();
    run::RunOptions options;
    auto output = std::make_unique<RunOutput>();
    ask_for_timeline(config, options, *output);
    options.threads = arguments_.threads;
    if (arguments_.force) options.size = run::Size::kAny;
    const std::string devices = config_folder(arguments_.configs) + "/devices";
    CheckedResult<void> done;
    std::atomic<bool> stop{false};
    options.stop = &stop;
    if (uses_registered(config)) {
      options.threads = 1;
      const StopOnInterrupt on_interrupt(stop);
      done = unlocked([&] { return simulate(config, devices, options, *output); });
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
    output.timeline->set_window({{}, window});
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

  const RunArguments& arguments_;
  run::BaselineCache& baselines_;
  std::string path_;                 ///< of the config; its paths are relative to the folder
  std::optional<std::string> text_;  ///< the config's text; nothing: it changed while being read
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
      [baselines](const py::object& config, const py::object& policies,
                          const std::optional<std::string>& base,
                          std::vector<std::string> libraries,
                          const std::optional<std::string>& configs, std::size_t threads,
                          const std::optional<std::string>& timeline, std::int64_t window_ns,
                          bool force) {
        const RunArguments arguments{config,  policies, base,     std::move(libraries),
                                     configs, threads,  timeline, window_ns, force};
        return PythonRun(arguments, *baselines).run();
      });
}

namespace {

// The parts of a run's result as arrays. bubblesim/_run.py makes of it what users see.

py::list rows(const RunOutput& self) {
  const std::vector<observe::ResultRow> all = observe::result_rows(self.report);
  std::vector<const observe::ResultRow*> borrowed;
  for (const observe::ResultRow& row : all) borrowed.push_back(&row);
  return result_columns_of(borrowed);
}

const observe::PolicyResult& policy_of(const RunOutput& self, std::size_t policy) {
  if (policy >= self.report.policies.size()) throw py::index_error("no such policy");
  return self.report.policies[policy];
}

const observe::FillerResult& filler_of(const RunOutput& self, std::size_t policy,
                                       std::size_t filler) {
  const observe::PolicyResult& result = policy_of(self, policy);
  if (filler >= result.fillers.size()) throw py::index_error("no such filler");
  return result.fillers[filler];
}

/// Times to first token and per output token.
py::tuple token_latencies(const RunOutput& self, std::size_t policy, std::size_t filler) {
  const auto& server = filler_of(self, policy, filler).server;
  if (!server) throw py::value_error("found a filler that is no language-model server");
  return py::make_tuple(server->ttft, server->tpot);
}

/// (rank, lengths, the first that counts) of every rank.
py::list iterations(const py::object& self, std::size_t policy) {
  py::list list;
  for (const auto& rank : policy_of(self.cast<const RunOutput&>(), policy).training.ranks) {
    list.append(
        py::make_tuple(rank.rank, view(py::dtype("i8"), rank.times, self), rank.first_counted));
  }
  return list;
}

const observe::TimelineRecorder& timeline_of(const RunOutput& self) {
  if (!self.timeline) {
    throw py::value_error("no timeline was recorded: run(..., timeline=\"POLICY\") records one");
  }
  return *self.timeline;
}

py::array slices(const py::object& self) {
  const auto type = BUBBLESIM_RECORD_TYPE(observe::Slice, gpu, client, name, kind, start, end,
                                          request);
  return view(type(), timeline_of(self.cast<const RunOutput&>()).slices(), self);
}

py::array samples(const py::object& self) {
  const auto type = BUBBLESIM_RECORD_TYPE(observe::CounterSample, track, at, value);
  return view(type(), timeline_of(self.cast<const RunOutput&>()).samples(), self);
}

/// Texts of the names that slices have, by number; of clients, by (gpu, client).
py::tuple slice_names(const RunOutput& self) {
  const observe::TimelineRecorder& timeline = timeline_of(self);
  py::dict names, clients;
  for (const observe::Slice& slice : timeline.slices()) {
    const py::int_ name(slice.name.value);
    if (!names.contains(name)) names[name] = timeline.text(slice.name);
    const py::tuple client = py::make_tuple(slice.gpu.value, slice.client.value);
    if (!clients.contains(client)) clients[client] = timeline.client_name(slice.gpu, slice.client);
  }
  return py::make_tuple(names, clients);
}

py::list tracks(const RunOutput& self) {
  py::list list;
  for (const observe::CounterTrack& track : timeline_of(self).tracks()) {
    list.append(py::make_tuple(track.gpu.value, track.name));
  }
  return list;
}

void write_timeline(const RunOutput& self, const std::string& path) {
  good(traces::write_chrome_trace_file(path, run::timeline_to_chrome(timeline_of(self))));
}

py::tuple slice_kinds() {
  constexpr auto kLast = static_cast<std::size_t>(observe::SliceKind::kPhase);
  py::tuple names(kLast + 1);
  for (std::size_t i = 0; i <= kLast; ++i) {
    names[i] = py::str(observe::slice_kind_name(static_cast<observe::SliceKind>(i)));
  }
  return names;
}

}  // namespace

void bind_run_output(py::module_& module) {
  module.attr("SLICE_KINDS") = slice_kinds();
  py::class_<RunOutput>(module, "RunOutput")
      .def_readonly("json", &RunOutput::json)
      .def("rows", &rows)
      .def("iterations", &iterations)
      .def("latency", [](const RunOutput& self, std::size_t policy, std::size_t filler) {
        return filler_of(self, policy, filler).latency;
      })
      .def("token_latencies", &token_latencies)
      .def("latencies", [](const py::object& self, std::size_t policy, std::size_t filler) {
        const auto& result = filler_of(self.cast<const RunOutput&>(), policy, filler);
        return view(py::dtype("i8"), result.latency.samples(), self);
      })
      .def("slices", &slices)
      .def("samples", &samples)
      .def("slice_names", &slice_names)
      .def("tracks", &tracks)
      .def("write_timeline", &write_timeline);
}

}  // namespace bubblesim::plugin::python
