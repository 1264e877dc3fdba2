// The result of a simulation that has ended, read from its GPUs, services and queue.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/observe/summary.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/session/checked_actions.hpp"
#include "sim/run/filler_places.hpp"
#include "sim/run/gpu_node.hpp"
#include "sim/run/loaded_run.hpp"

namespace bubblesim::run {

inline constexpr CounterSpec kTrainingStoodStill{
    "run_training_without_iteration", Severity::kError,
    "ranks that ended no iteration in the measured window: the window is too short, or the policy "
    "starves training"};
inline constexpr CounterSpec kWindowWithinPass{
    "run_window_shorter_than_pass", Severity::kLoss,
    "ranks that finished less than one pass of the repeated iterations in the measured window: the "
    "mean iteration is of some of them, and what is kept is against the same ones alone, as far as "
    "they ran there"};
inline constexpr CounterSpec kNotSettled{
    "policy_not_settled_ms", Severity::kLoss,
    "milliseconds that the warm-up is too short: these figures are of a policy that still tunes "
    "itself; raise --warmup"};
inline constexpr CounterSpec kGateCost{
    "policy_gate_ns", Severity::kInfo,
    "what the policy's gate takes of a filler's launch, which may be held (gate of a run config)"};
inline constexpr CounterSpec kTrainingGateCost{
    "policy_gate_training_ns", Severity::kInfo,
    "what the policy's gate takes of a launch of training (gate of a run config)"};
inline constexpr CounterSpec kFewPassesAlone{
    "run_filler_alone_few_passes", Severity::kNotice,
    "fillers that ended fewer than 10 passes alone in the measured window: requests are counted "
    "there, so that what they gain in GPUs of their own is off by up to one pass in as many"};
inline constexpr CounterSpec kUnfinishedRequests{
    "run_requests_unfinished", Severity::kNotice,
    "online requests that waited or ran when the run ended; percentiles count the age of those "
    "that arrived in the measured window"};
inline constexpr CounterSpec kPreemptions{
    "policy_preemptions", Severity::kInfo, "times that the policy drove a client off a GPU"};
inline constexpr CounterSpec kKernelResets{
    "kernels_reset", Severity::kInfo, "kernels of fillers that were killed and began anew"};
inline constexpr CounterSpec kReshapedLaunches{
    "launches_reshaped", Severity::kInfo, "launches that the policy gave another form"};
inline constexpr CounterSpec kMemoryMigrated{
    "memory_migrated_bytes", Severity::kInfo, "bytes that the policy moved to or from a device"};
inline constexpr CounterSpec kHeldAtEnd{
    "run_launches_held_at_end", Severity::kInfo, "filler launches that the policy held at the end"};
inline constexpr CounterSpec kUnfinishedJobs{
    "run_fill_jobs_unfinished", Severity::kNotice,
    "fill jobs that waited or ran when the run ended; they are in no mean, and in no makespan"};
inline constexpr CounterSpec kUnplacedInstances{
    "run_instances_unplaced", Severity::kNotice,
    "instances of fillers that the policy found no GPU for at the start"};

/// The report's parts that are known before anything runs.
[[nodiscard]] observe::RunReport report_before_runs(const LoadedRun& loaded);
/// The job alone against its recording; nothing: it was not recorded.
[[nodiscard]] std::optional<double> replay_error(const LoadedRun& loaded, Duration mean_iteration);

/// Counts the ranks whose iterations do not give training's speed.
void count_training(const std::vector<observe::RankIterations>& ranks, CounterSet& counters);

/// Adds the policy, and its sessions' counts, to the result.
void add_policy(const policy::PolicySpec& spec, const policy::ParameterSet& parameters,
                observe::PolicyResult& result);
[[nodiscard]] observe::PolicyActivity policy_activity(const policy::SessionCounts& counts);

/// Computes derived figures from a filler's counted requests, over a measured window of this
/// length.
void summarise_filler(const FillerConfig& filler, const observe::Backlog& backlog, Duration window,
                      observe::FillerResult& result);

/// A simulation at an instant.
struct SimulationAt {
  const LoadedRun& loaded;
  const Nodes& nodes;
  SimTime warmup{};  ///< end of the warm-up
  SimTime now{};
};

/// Adds an online filler's requests, over its instances and up to now, to `result`. Returns its
/// backlog.
[[nodiscard]] observe::Backlog count_requests(const SimulationAt& at, std::uint32_t filler,
                                              observe::FillerResult& result);

/// A simulation that has ended; all pointers outlive it.
struct EndedSimulation : SimulationAt {
  const RunScenario& scenario;
  const FillerPlaces& places;
  const FillQueue* queue = nullptr;  ///< null: no fill jobs
  std::uint64_t events = 0;
  CounterSet counters{};             ///< so far
  std::optional<observe::RunPrecision> precision{};  ///< nothing: its length was given
};

/// Reads the GPUs' meters, and ends them.
[[nodiscard]] observe::PolicyResult collect_results(EndedSimulation ended);

}  // namespace bubblesim::run
