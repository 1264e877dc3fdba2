// A run without a config file: a job, a service, policies, offline and online.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/app/app.hpp"
#include "sim/run/run_config.hpp"

namespace bubblesim::app {

struct QuickRun {
  std::vector<std::string> training;          ///< traces
  std::string cluster;     ///< of their collectives without times; empty: none
  std::optional<synth::JobNames> synth;       ///< instead of traces
  std::string filler;
  std::string filler_memory;  ///< such as "4GB"; empty: not known
  std::string device;      ///< empty: the job's
  std::string policies;    ///< as choose_policies() takes them
  double load = 0.1;       ///< online: offered load of one GPU of the service's own, (0, 10]
  Duration duration = std::chrono::seconds(120);  ///< simulated
  Duration warmup = std::chrono::seconds(60);  ///< not measured: TGS profiles for up to 50 s
  /// The run ends when this is reached, and after `duration` at most.
  std::optional<run::PrecisionGoal> precision;
  std::uint64_t seed = 1;
};

/// The named policies, comma-separated, with their defaults but for what NAME:PARAMETER=VALUE
/// gives; "all": every one there is; no name: common practice, four published systems, their bound,
/// and what libraries brought.
[[nodiscard]] CheckedResult<std::vector<run::PolicyChoice>> choose_policies(
    const std::string& names, const AppContext& context);

/// The config of one mode; the online arrival rate is `load` times what `requests_per_s` (of one
/// GPU of its own) could serve, for each of `gpus` GPUs.
[[nodiscard]] CheckedResult<run::RunConfig> quick_config(const QuickRun& quick,
                                                         observe::FillerMode mode,
                                                         double requests_per_s, std::size_t gpus,
                                                         const AppContext& context);

/// That run as the text of a run config, with paths absolute and a rate of 1; its policy is
/// exclusive.
[[nodiscard]] std::string quick_config_text(const QuickRun& quick, observe::FillerMode mode);

}  // namespace bubblesim::app
