// What one run found, as plain values: filled by sim/run, written by sim/observe/report.hpp.
// OUTPUTS.md defines each number once (formula and unit); the comments here only point at it.
//
// The measured window runs from the end of the warm-up to the end of the run. All fractions are
// of that window and lie in [0, 1]; a missing optional means "not measured", never zero.
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

// What users of a language-model server wait for, limits on it, and the requests that keep them.

/// Limits that a request keeps or not; nothing: no such limit.
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

/// At most as long as each limit says; a request of one token has no time per output token to keep.
[[nodiscard]] inline bool keeps(const ServedTokens& request, const ServiceLimits& limits) {
  const auto keeps_limit = [](const std::optional<Duration>& value,
                              const std::optional<Duration>& limit) {
    return !limit || !value || *value <= *limit;
  };
  return keeps_limit(request.ttft, limits.ttft) && keeps_limit(request.tpot(), limits.tpot) &&
         keeps_limit(request.latency, limits.latency);
}

/// What a language-model server did in the measured window, over all of its GPUs.
struct ServerResult {
  LatencyDistribution ttft;   ///< of requests that arrived in it; waiting ones are lower bounds
  LatencyDistribution tpot;   ///< of those that ended, of two tokens or more
  LatencyHistogram tbt;       ///< online: times between tokens that came in it
  std::uint64_t output_tokens = 0;   ///< of requests that ended in it
  std::uint64_t steps = 0;
  std::uint64_t preemptions = 0;     ///< in the whole run, as what follows
  std::uint64_t recomputed_tokens = 0;
  std::uint64_t prefix_hit_tokens = 0;
  double mean_kv_fraction = 0;       ///< of the cache's blocks, over time
  double most_kv_fraction = 0;       ///< in the whole run
  double output_tokens_per_s = 0;
  std::optional<ServiceLimits> limits;
  std::optional<std::uint64_t> within_limits;  ///< that arrived in it, ended, and kept them all
  std::optional<double> goodput_per_s;         ///< of these
};

enum class FillerMode : std::uint8_t {
  kOffline,  ///< always has a next request
  kOnline,   ///< requests arrive; latency counts
  kJobs,     ///< fill jobs of so many requests wait for a GPU
};

/// "offline", "online", "jobs".
[[nodiscard]] const char* filler_mode_name(FillerMode mode);

/// The iterations of one rank, in order. An iteration's time runs from the end of the rank's
/// previous iteration (the first: from the start of the run) to its own end.
struct RankIterations {
  std::uint32_t rank = 0;
  std::vector<Duration> times;    ///< of every finished iteration
  std::size_t first_counted = 0;  ///< index of the first that ended inside the measured window
  std::size_t per_pass = 1;       ///< iterations of a pass of the job; they may differ
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
  /// If faults stop the job: iterations done again since the last checkpoint, and iterations a
  /// second without these.
  std::optional<std::uint64_t> redone;
  std::optional<double> goodput_per_s;
  std::string stands_still;      ///< why, if a rank ended no iteration in the window
};

/// A filler on one GPU.
struct InstanceResult {
  GpuId gpu{};
  bool admitted = true;
  std::string reason;             ///< why not
  std::uint64_t passes = 0;       ///< of its program, finished in the measured window
  std::uint64_t requests_completed = 0;
  Bytes memory;                   ///< that it holds: 0 if not admitted or not known
};

/// A fill job. Instants since the start of the run.
struct FillJob {
  std::uint64_t requests = 0;
  std::uint64_t requests_completed = 0;
  Duration submitted{};
  std::optional<Duration> deadline;  ///< an instant
  std::optional<GpuId> gpu;          ///< nothing: not placed
  Duration placed{};                 ///< if it was
  std::optional<Duration> started;   ///< its worker was free
  std::optional<Duration> ended;
};

/// The fill jobs of one filler over the whole run, warm-up included. A run may end before a job's
/// submission.
struct FillJobs {
  std::vector<FillJob> list;    ///< in order of submission
  std::uint64_t submitted = 0;  ///< = finished + running + waiting
  std::uint64_t finished = 0;
  std::uint64_t running = 0;    ///< placed and not ended when the run ended
  std::uint64_t waiting = 0;    ///< not placed then
  std::optional<Duration> makespan;  ///< first submission to last end; nothing: not all have ended
  std::optional<Duration> mean_completion;  ///< of the finished, submission to end
  std::uint64_t deadlines_met = 0;
  std::uint64_t deadlines_missed = 0;  ///< ended after it, or had not when the run ended after it
  std::uint64_t deadlines_open = 0;    ///< not ended, and the run ended before it
};

/// One filler over all of its GPUs. Requests are counted by what happens in the measured window,
/// whenever they arrived: before + arrived = completed + unfinished + refused. Latencies are of
/// those that arrived in it.
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
  /// window, over the time of these batches, in all instances.
  std::optional<double> whole_batches_requests_per_s;
  std::optional<double> offered_per_s;    ///< online: requests_arrived over the window
  std::optional<double> normalised_to_own_gpu;
  LatencyDistribution latency;            ///< online
  std::optional<FillJobs> jobs;           ///< kJobs
  std::optional<ServerResult> server;     ///< of a language-model engine
  std::uint64_t instances_unplaced = 0;   ///< that no GPU was found for
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

/// What one GPU drew in the measured window.
struct PowerUse {
  double energy_j = 0;   ///< idle power included
  double filler_j = 0;   ///< part above idle that fillers' operations took
  double mean_w = 0;
  double peak_w = 0;     ///< the highest mean over a period of the governor
  double clock_mhz = 0;  ///< mean over time
  /// Periods in which it drew more than its cap at the lowest clock, and the highest mean of one.
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
  double recovered_fraction = 0;     ///< of the bubble time; 0 if there is none
  Bytes memory_high_water;  ///< 0: that of a client is not known
  std::optional<PowerUse> power;  ///< nothing: not metered
};

/// What the policy itself did, over all GPUs.
struct PolicyActivity {
  std::uint64_t calls = 0;      ///< decision points at which it was called
  std::uint64_t holds = 0;      ///< launches that it held
  Duration mean_hold{};         ///< over released holds; zero if there are none
  Duration total_hold{};
};

/// How fast a policy outside of the simulator answered.
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

/// A figure of a run that went on until it was known.
struct KnownFigure {
  std::string figure;            ///< "training_rate", "filler_rate", "latency_p95"
  std::string filler;            ///< empty: training's
  double wanted = 0;             ///< half of its interval at most, as a share of the figure
  std::optional<double> found{};  ///< half of the interval; nothing: too little happened
  bool reached = false;
  bool overloaded = false;       ///< the filler falls behind: its latency grows with the run
};

/// How sure the figures are of a run whose length was not given.
struct RunPrecision {
  double confidence = 0;  ///< that a true figure lies within its interval
  std::vector<KnownFigure> figures;
};

/// One run under one policy.
struct PolicyResult {
  std::string policy;
  std::vector<std::pair<std::string, std::string>> parameters;  ///< name, value as a config has it
  bool oracle = false;
  std::string reconstruction;  ///< what its authors did not publish (sim/policy/declaration.hpp)
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
  std::vector<std::string> notices;  ///< in words: what the config asks for and did not get
};

/// Use of the GPUs that the job, or a filler, has to itself, mean over these GPUs.
struct UseAlone {
  double busy_fraction = 0;
  double sm_fraction = 0;
  double bubble_fraction = 0;
  Bytes memory_high_water;  ///< of any of them
};

/// A filler with a GPU of its own.
struct FillerBaseline {
  std::string name;
  double requests_per_s = 0;  ///< on one GPU
  std::optional<UseAlone> use;
};

/// The bubbles of one GPU's rank while the job runs alone, as policies that ask for them are told.
struct BubbleBaseline {
  GpuId gpu{};
  std::uint64_t bubbles = 0;      ///< an iteration's (a pass's), of 100 us or more
  Duration time{};                ///< of all
  Duration pipeline_time{};       ///< of those that wait for a pipeline peer
  std::optional<Bytes> free_memory_least;  ///< in any of them; nothing: not known
  std::optional<Bytes> free_memory_mean;   ///< weighted by their lengths
};

/// What a cap or a clock costs the job while it runs alone. Watts are means over time and GPUs.
struct PowerLimitCost {
  double unlimited_iterations_per_s = 0;
  double kept = 0;         ///< the share of these that the job keeps under the limit
  double unlimited_w = 0;
  double limited_w = 0;
};

/// What the parts of the run do alone; the denominators of everything normalised.
struct Baseline {
  double training_iterations_per_s = 0;
  Duration training_mean_iteration{};
  std::optional<UseAlone> training_use;
  std::optional<PowerLimitCost> power_limit;  ///< nothing: power is not limited
  std::optional<Duration> recorded_mean_iteration;  ///< in the trace
  std::optional<double> replay_error;  ///< alone / recorded - 1
  bool alone_as_recorded = true;  ///< no key of the config changed its iterations
  bool overruns = false;          ///< of some rank: Program::overruns
  /// A recorded job's iterations: those of its trace, those that are repeated, and in words which
  /// and why. 0 and empty: the job was not recorded.
  std::uint64_t iterations_recorded = 0;
  std::uint64_t iterations_used = 0;
  std::string iterations_text;
  std::vector<FillerBaseline> fillers;
  std::vector<BubbleBaseline> bubbles;  ///< by GPU; empty: no policy asks for them
};

/// The place and date of a report that was measured, as opposed to simulated.
struct Measurement {
  std::string place;          ///< "gpu", or "fake": the simulator's GPU behind real processes
  std::string date;           ///< of its start, UTC, ISO 8601
  std::string driver;         ///< version; empty: none
  std::uint32_t rank = 0;     ///< the job's rank that ran, with its peers' waits
  std::uint32_t round = 1;    ///< of several, baselines anew in each
  std::optional<double> sm_clock_before_mhz, sm_clock_after_mhz;
};

/// Everything one run config gave.
struct RunReport {
  std::string config;
  std::uint64_t seed = 0;
  std::string device;
  std::uint32_t ranks = 0;          ///< simulated, one a GPU
  std::uint32_t ranks_per_gpu = 1;  ///< that each of them stands for
  std::uint32_t world_size = 0;     ///< ranks of the whole job
  std::optional<Measurement> measured;  ///< nothing: simulated
  Baseline baseline;
  std::vector<PolicyResult> policies;
  std::vector<std::string> interrupted;  ///< policies not finished when the run was stopped
  CounterSet counters;  ///< of what is common to all policies: traces, config
  CounterSet training_counters;             ///< of these: those of the job's trace and program
  std::vector<CounterSet> filler_counters;  ///< the same of each filler, in the config's order
};

}  // namespace bubblesim::observe
