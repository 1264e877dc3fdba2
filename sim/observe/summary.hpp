// From what a run collected to the numbers of a result: the one place where the formulas of
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
};

/// Index of the first iteration that ends after `warmup`, if they run back to back from the
/// start of the run.
[[nodiscard]] std::size_t first_after(const std::vector<Duration>& times, Duration warmup);

/// Everything of a TrainingResult from its iterations.
[[nodiscard]] TrainingResult summarise_training(std::vector<RankIterations> ranks,
                                                const TrainingScale& scale);

/// Sums of the instances and rates over `window` (> 0), into `filler`. Requests that did not
/// complete and latencies are the caller's; `own_gpu_requests_per_s` is of one GPU.
void summarise_filler(FillerResult& filler, Duration window,
                      std::optional<double> own_gpu_requests_per_s);

/// A fraction over all GPUs of a result: their mean. 0 if there are none.
[[nodiscard]] double mean_over_gpus(const std::vector<GpuUse>& gpus, double GpuUse::*fraction);

/// Of a run of the job without fillers, or of one filler without the job: on the GPUs where it is.
[[nodiscard]] UseAlone use_alone(const PolicyResult& alone);

/// Recovered bubble time of all GPUs over bubble time of all GPUs. 0 if there is none.
[[nodiscard]] double recovered_over_gpus(const std::vector<GpuUse>& gpus);

}  // namespace bubblesim::observe
