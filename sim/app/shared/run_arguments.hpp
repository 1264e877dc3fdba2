// The arguments of `bubblesim run`: its options, and the readers of their texts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/app/shared/app.hpp"
#include "sim/app/shared/policy_options.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/run/run_config.hpp"

namespace CLI {
class App;
}

namespace bubblesim::app {

// A run without a config file: a job, a service, policies, offline and online.

struct QuickRun {
  std::vector<std::string> training;          ///< traces
  std::string cluster;     ///< of collectives without times; empty: none
  std::optional<synth::JobNames> synth;       ///< instead of traces
  std::string filler;
  std::string filler_memory;  ///< such as "4GB"; empty: not known
  std::string device;      ///< empty: the job's
  std::string policies;    ///< as choose_policies() takes them
  double load = 0.1;       ///< online: offered load of one GPU of the service's own, (0, 10]
  Duration duration{};     ///< simulated
  Duration warmup = std::chrono::seconds(60);  ///< not measured; at most half of `duration`
  /// The run ends when this is reached, and after `duration` at most.
  std::optional<run::PrecisionGoal> precision;
  std::uint64_t seed = 1;
};

/// The named policies, comma-separated, with their defaults except for NAME:PARAMETER=VALUE; "all":
/// every policy; no name: common practice, four published systems, their bound, and libraries'
/// policies.
[[nodiscard]] CheckedResult<std::vector<run::PolicyChoice>> choose_policies(
    const std::string& names, const AppContext& context);

/// The config of one mode; the online arrival rate, for each of `gpus` GPUs, is `load` times
/// `requests_per_s`, which one GPU of the service's own serves.
[[nodiscard]] CheckedResult<run::RunConfig> quick_config(const QuickRun& quick,
                                                         observe::FillerMode mode,
                                                         double requests_per_s, std::size_t gpus,
                                                         const AppContext& context);

/// The run of quick_config() as the text of a run config, with paths absolute and a rate of 1; its
/// policy is exclusive.
[[nodiscard]] std::string quick_config_text(const QuickRun& quick, observe::FillerMode mode);

struct RunArguments {
  std::string command = "run";             ///< the command's name in faults
  std::string config_kind = "run config";  ///< the file's name in faults
  std::string config;  ///< or the training job's traces, if a filler stands behind it
  std::string second_path;  ///< that filler; read_job() moves both to `quick`
  QuickRun quick;
  std::string synth_model;  ///< of the quick run's job, in place of traces
  std::string plan;
  std::string cluster;
  std::string mode = "both";
  Duration policy_bound = kPolicyBound;
  std::string out;
  std::string timeline;
  std::string timeline_policy;
  std::string duration = "auto";
  std::string warmup;  ///< empty: by the duration
  std::string timeline_window = "1s";
  Duration timeline_length{};  ///< `timeline` as a span
  std::string slo;  ///< limits of servers' requests, in place of the config's; empty: not given
  std::string usage;
  std::string usage_interval;  ///< empty: not given
  Duration usage_length{};     ///< `usage_interval` as a span, or its default
  std::optional<std::uint32_t> lone_rank;  ///< nothing: the whole job
  std::size_t threads = 0;
  bool json = false;
  bool csv = false;
  bool force = false;    ///< run however costly
  bool notices = false;  ///< print all notes, not only the important ones
  bool wide = false;     ///< all columns of the table
};

/// Declares FILLER and the options --training, --synth-model, --plan, --cluster and --filler.
void add_job_options(CLI::App& command, RunArguments& arguments);
/// Declares every option of the command `run`.
void add_run_arguments(CLI::App& command, RunArguments& arguments, AppContext& context);

/// Decides which of the three forms was asked for: a config, traces, a synthesised job.
[[nodiscard]] Result<void> read_job(RunArguments& arguments);
/// An option for runs without a config, and the place of the same value in a config.
struct ConfigPlace {
  const char* option;
  const char* place;
};
/// Fault: one of `options` was given together with a config; the fault names its place there.
[[nodiscard]] Result<void> refuse_beside_config(const CLI::App& command,
                                                const RunArguments& arguments,
                                                std::span<const ConfigPlace> options);
/// Reads the spans that options give, and the file for usage over time.
[[nodiscard]] Result<void> read_times(RunArguments& arguments);
/// Overrides the config's seed, length and warm-up by those that were given to the command.
[[nodiscard]] Result<void> override_config(const RunArguments& arguments, const CLI::App& command,
                                           run::RunConfig& config);

inline constexpr std::array<std::string_view, 3> kLimitNames{"ttft", "tpot", "latency"};
/// Reads --slo: "ttft=500ms,tpot=50ms,latency=10s", each of `names` at most once; more than 0s.
[[nodiscard]] Result<observe::ServiceLimits> read_limits(
    const std::string& text, std::span<const std::string_view> names = kLimitNames);

/// The policy whose timeline is written: the one asked for; else SpecInF, if it runs; else the
/// last.
[[nodiscard]] std::string timeline_policy(const RunArguments& arguments,
                                          const run::RunConfig& config);
/// "out/advice.json" as "out/advice-online.json": where both modes write a file.
[[nodiscard]] std::string path_of_mode(const std::string& path, const std::string& mode);
[[nodiscard]] inline std::string online_timeline(const std::string& path) {
  return path_of_mode(path, "online");
}
[[nodiscard]] std::string timeline_path(const RunArguments& arguments,
                                        const run::RunConfig& config);

}  // namespace bubblesim::app
