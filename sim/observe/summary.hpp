// Computes the numbers of a result: the one place for formulas of OUTPUTS.md that need more than
// one value.
#pragma once

#include <optional>
#include <vector>

#include "sim/observe/run_result.hpp"

namespace bubblesim::observe {

/// The inputs for a training throughput.
struct TrainingScale {
  std::optional<double> samples_per_iteration;    ///< > 0
  std::optional<double> alone_iterations_per_s;   ///< 0 counts as not known
  std::vector<Duration> faults{};       ///< faults that stop the job, since the start, in order
  std::uint64_t checkpoint_every = 1;   ///< iterations, >= 1
  /// Time of each iteration of a pass alone (pass_of()). If a rank finished less than a pass, in
  /// this run or alone, its iterations are compared with these times, not with the rate.
  std::vector<Duration> alone_pass{};
  bool alone_is_whole = true;           ///< every rank finished a pass alone
  Duration simulated{};  ///< length of the run; if a fault leaves time idle at its end, that is
                         ///< lost
};

/// Index of the first iteration that ends after `warmup`, if iterations run back to back from the
/// start of the run.
[[nodiscard]] std::size_t first_after(const std::vector<Duration>& times, Duration warmup);

/// Mean time of each iteration of a pass, over ranks and passes, including the warm-up; 0: never
/// finished.
[[nodiscard]] std::vector<Duration> pass_of(const std::vector<RankIterations>& ranks);

/// Number of ranks that finished iterations, but not a whole pass, in the measured window.
[[nodiscard]] std::uint64_t ranks_within_pass(const std::vector<RankIterations>& ranks);

/// Computes a TrainingResult from its iterations.
[[nodiscard]] TrainingResult summarise_training(std::vector<RankIterations> ranks,
                                                const TrainingScale& scale);

/// Fills in sums of the instances, and rates over `window` (> 0). The caller sets unfinished
/// requests and latencies; `own_gpu_requests_per_s` is of one GPU.
void summarise_filler(FillerResult& filler, Duration window,
                      std::optional<double> own_gpu_requests_per_s);

/// An online filler's backlog at the end of the measured window.
struct Backlog {
  /// Requests that may be served together, over its GPUs; of language-model engines whose caches
  /// hold fewer than their settings allow, the most that ran at once.
  std::uint64_t batch = 0;
  Duration oldest{};        ///< age of the oldest unfinished request; 0: none
};

/// Whether an online filler falls behind: its backlog grew over `window` by more than a batch and
/// three standard deviations of the number of Poisson arrivals (their square root), or nothing was
/// served and a request has waited for half of the window. Latencies then grow with the run.
[[nodiscard]] bool is_overloaded(const FillerResult& filler, const Backlog& backlog,
                                 Duration window);

/// Whether an online filler serves arrivals to within `share`: its backlog grew over the window by
/// at most that share of the arrivals. A short window may show neither this nor an overload.
[[nodiscard]] bool keeps_up(const FillerResult& filler, double share);

/// Counters that concern a row of a report: the job's, the filler's (an index into
/// RunReport::filler_counters; nothing: a row without filler) and the policy's own.
[[nodiscard]] CounterSet concerning(const RunReport& report, const PolicyResult& policy,
                                    std::optional<std::size_t> filler);

/// Whether a counter says that results are incomplete or must not be trusted.
[[nodiscard]] bool has_loss(const CounterSet& counters);

/// Whether a counter of the run, or of one of its policies, says that the run must not be trusted.
[[nodiscard]] bool has_error(const RunReport& report);

/// The mean of a fraction over a result's GPUs; 0 without GPUs.
[[nodiscard]] double mean_over_gpus(const std::vector<GpuUse>& gpus, double GpuUse::*fraction);

/// Power of a result's GPUs, if metered.
struct PowerSummary {
  double mean_w = 0;     ///< of a GPU, mean over the GPUs
  double peak_w = 0;     ///< of any GPU
  double clock_mhz = 0;  ///< mean over the GPUs
  std::optional<double> iteration_j;  ///< energy without fillers', over all GPUs, for an iteration;
                                      ///< nothing: no iteration counted
};
[[nodiscard]] std::optional<PowerSummary> power_of(const PolicyResult& result);

/// Energy above idle a request; nothing: not metered, or no request was completed.
[[nodiscard]] std::optional<double> request_energy(const FillerResult& filler);

/// Use of its GPUs by the job without fillers, or by one filler without the job.
[[nodiscard]] UseAlone use_alone(const PolicyResult& alone);

/// The largest of the GPUs; 0: not known.
[[nodiscard]] Bytes memory_high_water(const std::vector<GpuUse>& gpus);

/// Recovered bubble time of all GPUs over their bubble time; 0 without bubbles.
[[nodiscard]] double recovered_over_gpus(const std::vector<GpuUse>& gpus);

}  // namespace bubblesim::observe
