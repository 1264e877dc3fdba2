// The result of one run, as plain values: filled by sim/run, written by sim/observe/report.hpp.
// OUTPUTS.md defines each number once (formula and unit); comments here refer to it.
//
// The measured window runs from the end of the warm-up to the end of the run. All fractions refer
// to that window and lie in [0, 1]; a missing optional means "not measured", never zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"
#include "sim/observe/latency.hpp"
#include "sim/observe/usage_series.hpp"

namespace bubblesim::observe {

// Waiting times of a language-model server's users, limits on them, and the requests that keep the
// limits.

/// Limits for a request; nothing: no such limit.
struct ServiceLimits {
  std::optional<Duration> ttft;     ///< time to first token
  std::optional<Duration> tpot;     ///< time per output token after the first
  std::optional<Duration> latency;  ///< from arrival to last token

  friend bool operator==(const ServiceLimits&, const ServiceLimits&) = default;
};

/// A request that was served to its end.
struct ServedTokens {
  Duration ttft{};
  Duration latency{};
  std::uint64_t output_tokens = 1;

  /// Nothing for a request of one token. Rounded down to a nanosecond.
  [[nodiscard]] std::optional<Duration> tpot() const {
    if (output_tokens < 2) return std::nullopt;
    return (latency - ttft) / static_cast<std::int64_t>(output_tokens - 1);
  }
};

/// Whether the request keeps every limit; a request of one token has no time per output token to
/// limit.
[[nodiscard]] inline bool keeps(const ServedTokens& request, const ServiceLimits& limits) {
  const auto keeps_limit = [](const std::optional<Duration>& value,
                              const std::optional<Duration>& limit) {
    return !limit || !value || *value <= *limit;
  };
  return keeps_limit(request.ttft, limits.ttft) && keeps_limit(request.tpot(), limits.tpot) &&
         keeps_limit(request.latency, limits.latency);
}

/// A language-model server in the measured window, over all of its GPUs.
struct ServerResult {
  LatencyDistribution ttft;   ///< of requests that arrived in the window; waiting ones count as
                              ///< lower bounds
  LatencyDistribution tpot;   ///< of requests of two tokens or more that ended in the window
  LatencyHistogram tbt;       ///< online: times between tokens, by the later token's time
  std::uint64_t output_tokens = 0;   ///< of requests that ended in the window
  std::uint64_t steps = 0;
  std::uint64_t preemptions = 0;     ///< in the whole run, as are the next counts
  std::uint64_t recomputed_tokens = 0;
  std::uint64_t prefix_hit_tokens = 0;
  double mean_kv_fraction = 0;       ///< of the cache's blocks, over time
  double most_kv_fraction = 0;       ///< in the whole run
  double output_tokens_per_s = 0;
  std::optional<ServiceLimits> limits;
  std::optional<std::uint64_t> within_limits;  ///< that arrived in the window, ended, and kept all
                                               ///< limits
  std::optional<double> goodput_per_s;         ///< of the requests within limits
};

enum class FillerMode : std::uint8_t {
  kOffline,  ///< always has a next request
  kOnline,   ///< requests arrive; latency counts
  kJobs,     ///< fill jobs of this many requests wait for a GPU
};

/// "offline", "online", "jobs".
[[nodiscard]] const char* filler_mode_name(FillerMode mode);

/// The iterations of one rank, in order. An iteration's time runs from the end of the rank's
/// previous iteration (the first: from the start of the run) to its own end.
struct RankIterations {
  std::uint32_t rank = 0;
  std::vector<Duration> times;    ///< of all finished iterations
  std::size_t first_counted = 0;  ///< index of the first that ended inside the measured window
  std::size_t per_pass = 1;       ///< iterations of one pass of the job; they may differ
};

struct TrainingResult {
  std::vector<RankIterations> ranks;
  std::uint64_t iterations = 0;  ///< finished by every rank in the measured window
  Duration mean_iteration{};     ///< over all counted iterations of all ranks
  Duration min_iteration{};
  Duration max_iteration{};
  double iterations_per_s = 0;   ///< 0: no iteration finished in the window
  std::optional<double> samples_per_s;
  std::optional<double> normalised_to_alone;
  /// If faults stop the job: iterations repeated from the last checkpoint, and iterations a second
  /// without repeated ones.
  std::optional<std::uint64_t> redone;
  std::optional<double> goodput_per_s;
  std::string stands_still;      ///< why, if a rank ended no iteration in the window
};

/// A filler on one GPU.
struct InstanceResult {
  GpuId gpu{};
  bool admitted = true;
  std::string reason;             ///< why it was not admitted
  std::uint64_t passes = 0;       ///< of its program, finished in the measured window
  std::uint64_t requests_completed = 0;
  Bytes memory;                   ///< memory held; 0: not admitted or not known
};

/// A fill job. Instants count from the start of the run.
struct FillJob {
  std::uint64_t requests = 0;
  std::uint64_t requests_completed = 0;
  Duration submitted{};
  std::optional<Duration> deadline;  ///< an instant
  std::optional<GpuId> gpu;          ///< nothing: not placed
  Duration placed{};                 ///< instant of placement, if `gpu` is known
  std::optional<Duration> started;   ///< when its worker was free
  std::optional<Duration> ended;
};

/// The fill jobs of one filler over the whole run, warm-up included. A run may end before a job's
/// submission.
struct FillJobs {
  std::vector<FillJob> list;    ///< in order of submission
  std::uint64_t submitted = 0;  ///< = finished + running + waiting
  std::uint64_t finished = 0;
  std::uint64_t running = 0;    ///< placed and not ended when the run ended
  std::uint64_t waiting = 0;    ///< not placed when the run ended
  std::optional<Duration> makespan;  ///< first submission to last end; nothing: not all have ended
  std::optional<Duration> mean_completion;  ///< of the finished, submission to end
  std::uint64_t deadlines_met = 0;
  std::uint64_t deadlines_missed = 0;  ///< ended after the deadline, or unfinished with the
                                       ///< deadline passed
  std::uint64_t deadlines_open = 0;    ///< unfinished, with the deadline not yet passed
};

/// One filler over all of its GPUs. Requests are counted by their events in the measured window,
/// whenever they arrived: before + arrived = completed + unfinished + refused. Latencies are of
/// requests that arrived in it.
struct FillerResult {
  std::string name;
  FillerMode mode = FillerMode::kOffline;
  std::vector<InstanceResult> instances;  ///< by GPU
  std::uint64_t passes = 0;
  std::uint64_t requests_before = 0;      ///< online: waiting or running when the warm-up ended
  std::uint64_t requests_arrived = 0;     ///< offline and jobs: those completed
  std::uint64_t requests_completed = 0;
  std::uint64_t requests_unfinished = 0;  ///< waiting or running when the run ended
  std::uint64_t requests_refused = 0;     ///< arrived where the filler was not admitted
  bool overloaded = false;                ///< summary.hpp, is_overloaded(): online
  std::optional<std::uint64_t> requests_within_deadline;  ///< online with a deadline
  double requests_per_s = 0;
  /// Offline, in a run whose length is not given: requests of batches that began and ended in the
  /// window, over the time of these batches, summed over instances.
  std::optional<double> whole_batches_requests_per_s;
  std::optional<double> offered_per_s;    ///< online: requests_arrived over the window
  std::optional<double> normalised_to_own_gpu;
  LatencyDistribution latency;            ///< online
  std::optional<FillJobs> jobs;           ///< kJobs
  std::optional<ServerResult> server;     ///< of a language-model engine
  std::uint64_t instances_unplaced = 0;   ///< instances for which no GPU was found
  Bytes memory;                           ///< over all instances
  std::optional<double> energy_j;  ///< above idle, of its operations; nothing: not metered

  [[nodiscard]] std::size_t admitted_gpus() const;
};

/// Bubble time of one cause; the causes of a GPU add up to its bubble time.
struct BubbleShare {
  std::string cause;  ///< snake_case, listed in OUTPUTS.md
  Duration time{};
  Duration recovered{};  ///< part of `time` in which a filler's operation ran
};

/// One GPU's power in the measured window.
struct PowerUse {
  double energy_j = 0;   ///< idle power included
  double filler_j = 0;   ///< part above idle, by fillers' operations
  double mean_w = 0;
  double peak_w = 0;     ///< the highest mean over a period of the governor
  double clock_mhz = 0;  ///< mean over time
  /// Periods in which it drew more than its cap even at the lowest clock, and the highest mean of
  /// such a period.
  std::uint64_t periods_over_cap = 0;
  double over_cap_w = 0;
};

struct GpuUse {
  GpuId gpu{};
  double busy_fraction = 0;
  double busy_without_collectives_fraction = 0;
  double training_sm_fraction = 0;
  double filler_sm_fraction = 0;
  double bubble_fraction = 0;
  std::vector<BubbleShare> bubbles;  ///< in a fixed order
  double recovered_fraction = 0;     ///< of the bubble time; 0 without bubbles
  Bytes memory_high_water;  ///< 0: a client's memory is not known
  std::optional<PowerUse> power;  ///< nothing: not metered
};

/// The policy's own actions, over all GPUs.
struct PolicyActivity {
  std::uint64_t calls = 0;      ///< decision points at which it was called
  std::uint64_t holds = 0;      ///< launches that it held
  Duration mean_hold{};         ///< over released holds; zero if there are none
  Duration total_hold{};
};

/// The response times of a policy outside of the simulator.
struct HostActivity {
  std::string substrate;         ///< how processes shared the GPU: capture/rig/rig.hpp
  std::uint64_t decisions = 0;   ///< launches that were not held
  Duration decision_p50{};       ///< from such a launch's request to its verdict
  Duration decision_p95{};
  Duration decision_p99{};
  Duration decision_max{};
  Duration policy_call_mean{};   ///< inside the policy's own code
  Duration gate_time{};          ///< that threads of all clients spent at the gate, without holds
};

/// A figure whose precision decided the length of a run.
struct KnownFigure {
  std::string figure;            ///< "training_rate", "filler_rate", "latency_p95"
  std::string filler;            ///< empty: a figure of training
  double wanted = 0;             ///< half of its interval, at most, as a share of the figure
  std::optional<double> found{};  ///< half of the interval; nothing: too few samples
  bool reached = false;
  bool overloaded = false;       ///< the filler falls behind: its latency grows with the run
};

/// The precision of a run whose length was not given.
struct RunPrecision {
  double confidence = 0;  ///< the chance that a true figure lies within its interval
  std::vector<KnownFigure> figures;
};

/// One run under one policy.
struct PolicyResult {
  std::string policy;
  std::vector<std::pair<std::string, std::string>> parameters;  ///< name, value as a config has it
  bool oracle = false;
  std::string reconstruction;  ///< parts not published by its authors (sim/policy/declaration.hpp)
  Duration simulated{};  ///< from the start to the end of the run
  Duration warmup{};
  TrainingResult training;
  std::vector<FillerResult> fillers;
  std::vector<GpuUse> gpus;      ///< empty: not measured
  std::vector<GpuUsage> usage;   ///< over time; empty: not asked for
  PolicyActivity activity;
  std::optional<HostActivity> host;  ///< of measured runs
  std::optional<RunPrecision> precision;  ///< nothing: the run's length was given
  std::uint64_t events = 0;  ///< of the engine
  CounterSet counters;
  std::vector<std::string> notices;  ///< in words: requests of the config that were not met
};

/// Use of the GPUs by the job alone or a filler alone, mean over these GPUs.
struct UseAlone {
  double busy_fraction = 0;
  double sm_fraction = 0;
  double bubble_fraction = 0;
  Bytes memory_high_water;  ///< of any of the GPUs
};

/// A filler with a GPU to itself.
struct FillerBaseline {
  std::string name;
  double requests_per_s = 0;  ///< on one GPU
  std::optional<UseAlone> use;
};

/// The bubbles of one GPU's rank while the job runs alone, as policies hear of them.
struct BubbleBaseline {
  GpuId gpu{};
  std::uint64_t bubbles = 0;      ///< in one iteration (pass), of 100 us or more
  Duration time{};                ///< of all
  Duration pipeline_time{};       ///< of the bubbles that wait for a pipeline peer
  std::optional<Bytes> free_memory_least;  ///< in any of these bubbles; nothing: not known
  std::optional<Bytes> free_memory_mean;   ///< weighted by their lengths
};

/// The cost of a cap or a clock to the job alone. Watts are means over time and GPUs.
struct PowerLimitCost {
  double unlimited_iterations_per_s = 0;
  double kept = 0;         ///< share of that rate that the job keeps under the limit
  double unlimited_w = 0;
  double limited_w = 0;
};

/// The parts of the run alone: the denominators of all normalised figures.
struct Baseline {
  double training_iterations_per_s = 0;
  Duration training_mean_iteration{};
  std::optional<UseAlone> training_use;
  std::optional<PowerLimitCost> power_limit;  ///< nothing: power is not limited
  std::optional<Duration> recorded_mean_iteration;  ///< in the trace
  std::optional<double> replay_error;  ///< alone / recorded - 1
  bool alone_as_recorded = true;  ///< no key of the config changed its iterations alone
  bool overruns = false;          ///< of some rank: Program::overruns
  /// A recorded job's iterations: in the trace, used, and a sentence on which and why. 0 and empty:
  /// the job was not recorded.
  std::uint64_t iterations_recorded = 0;
  std::uint64_t iterations_used = 0;
  std::string iterations_text;
  std::vector<FillerBaseline> fillers;
  std::vector<BubbleBaseline> bubbles;  ///< by GPU; empty: no policy needs them
};

/// The place and date of a measured (not simulated) report.
struct Measurement {
  std::string place;          ///< "gpu", or "fake": the simulator's GPU behind real processes
  std::string date;           ///< of its start, UTC, ISO 8601
  std::string driver;         ///< version; empty: none
  std::uint32_t rank = 0;     ///< the job's rank that ran, with its peers' waits
  std::uint32_t round = 1;    ///< of several, each with new baselines
  std::optional<double> sm_clock_before_mhz, sm_clock_after_mhz;
};

/// The results of one run config.
struct RunReport {
  std::string config;
  std::uint64_t seed = 0;
  std::string device;
  std::uint32_t ranks = 0;          ///< simulated, one a GPU
  std::uint32_t ranks_per_gpu = 1;  ///< ranks that each simulated GPU stands for
  std::uint32_t world_size = 0;     ///< ranks of the whole job
  std::optional<Measurement> measured;  ///< nothing: simulated
  Baseline baseline;
  std::vector<PolicyResult> policies;
  std::vector<std::string> interrupted;  ///< policies not finished when the run was stopped
  CounterSet counters;  ///< common to all policies: of traces and config
  CounterSet training_counters;             ///< of these: those of the job's trace and program
  std::vector<CounterSet> filler_counters;  ///< the same for each filler, in the config's order
};

}  // namespace bubblesim::observe
