// Turns what a run collected into the numbers of a result: the one place where the formulas of
// OUTPUTS.md that need more than one value are computed.
#pragma once

#include <optional>
#include <vector>

#include "sim/observe/run_result.hpp"

namespace bubblesim::observe {

/// What turns training iterations into throughput.
struct TrainingScale {
  std::optional<double> samples_per_iteration;    ///< > 0
  std::optional<double> alone_iterations_per_s;   ///< 0 counts as not known
  std::vector<Duration> faults{};       ///< that stop the job, since the start, in order
  std::uint64_t checkpoint_every = 1;   ///< iterations, >= 1
  /// Time of each iteration of a pass alone (pass_of()). If a rank finished less than a pass, here
  /// or alone, its iterations are compared with these, not with the rate.
  std::vector<Duration> alone_pass{};
  bool alone_is_whole = true;           ///< every rank finished a pass there
  Duration simulated{};  ///< length of the run; time that a fault leaves idle at its end is lost
};

/// Index of the first iteration that ends after `warmup`, if they run back to back from the
/// start of the run.
[[nodiscard]] std::size_t first_after(const std::vector<Duration>& times, Duration warmup);

/// Mean time of each iteration of a pass, over ranks and passes, those of the warm-up included; 0:
/// it was not finished.
[[nodiscard]] std::vector<Duration> pass_of(const std::vector<RankIterations>& ranks);

/// Ranks that finished iterations in the measured window, but less than a pass of them.
[[nodiscard]] std::uint64_t ranks_within_pass(const std::vector<RankIterations>& ranks);

/// Everything of a TrainingResult from its iterations.
[[nodiscard]] TrainingResult summarise_training(std::vector<RankIterations> ranks,
                                                const TrainingScale& scale);

/// Sums of the instances and rates over `window` (> 0), into `filler`. Requests that did not
/// complete and latencies are the caller's; `own_gpu_requests_per_s` is of one GPU.
void summarise_filler(FillerResult& filler, Duration window,
                      std::optional<double> own_gpu_requests_per_s);

/// An online filler's backlog when the measured window ends.
struct Backlog {
  /// Requests that may be served together, over its GPUs; of language-model engines, whose caches
  /// hold fewer than their settings allow, the most that ran at once.
  std::uint64_t batch = 0;
  Duration oldest{};        ///< age of the oldest request that is unfinished; 0: there is none
};

/// Whether an online filler falls behind: its backlog grew over `window` by more than a batch and
/// three standard deviations of the number of Poisson arrivals (their square root), or nothing was
/// served and a request has waited for half of the window. Latencies then grow with the run.
[[nodiscard]] bool is_overloaded(const FillerResult& filler, const Backlog& backlog,
                                 Duration window);

/// Whether an online filler serves what arrives, to `share` of it: its backlog grew over the window
/// by at most that share of the arrivals. A short window may show neither this nor an overload.
[[nodiscard]] bool keeps_up(const FillerResult& filler, double share);

/// Counters that concern a row of a report: the job's, those of the filler (an index into
/// RunReport::filler_counters; nothing: a row without) and the policy's own.
[[nodiscard]] CounterSet concerning(const RunReport& report, const PolicyResult& policy,
                                    std::optional<std::size_t> filler);

/// Whether one of them says that something is missing or must not be trusted.
[[nodiscard]] bool has_loss(const CounterSet& counters);

/// Whether a counter of the run, or of one of its policies, says that the run is not to be trusted.
[[nodiscard]] bool has_error(const RunReport& report);

/// A fraction over all GPUs of a result: their mean. 0 if there are none.
[[nodiscard]] double mean_over_gpus(const std::vector<GpuUse>& gpus, double GpuUse::*fraction);

/// Power of the GPUs of a result, where it is metered.
struct PowerSummary {
  double mean_w = 0;     ///< of a GPU: mean over them
  double peak_w = 0;     ///< of any of them
  double clock_mhz = 0;  ///< mean over them
  std::optional<double> iteration_j;  ///< energy but that of fillers, over all GPUs, an iteration;
                                      ///< nothing: none was counted
};
[[nodiscard]] std::optional<PowerSummary> power_of(const PolicyResult& result);

/// Energy above idle a request; nothing: not metered, or no request was completed.
[[nodiscard]] std::optional<double> request_energy(const FillerResult& filler);

/// How the job without fillers, or one filler without the job, uses the GPUs where it is.
[[nodiscard]] UseAlone use_alone(const PolicyResult& alone);

/// Recovered bubble time of all GPUs over bubble time of all GPUs. 0 if there is none.
[[nodiscard]] double recovered_over_gpus(const std::vector<GpuUse>& gpus);

}  // namespace bubblesim::observe
