#include "sim/observe/summary.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::observe {

std::size_t first_after(const std::vector<Duration>& times, Duration warmup) {
  Duration end{};
  for (std::size_t i = 0; i < times.size(); ++i) {
    end += times[i];
    if (end > warmup) return i;
  }
  return times.size();
}

TrainingResult summarise_training(std::vector<RankIterations> ranks, const TrainingScale& scale) {
  TrainingResult result;
  Duration sum{};
  std::int64_t count = 0;
  std::optional<std::uint64_t> fewest;
  for (const RankIterations& rank : ranks) {
    const std::size_t first = std::min(rank.first_counted, rank.times.size());
    for (std::size_t i = first; i < rank.times.size(); ++i) {
      const Duration time = rank.times[i];
      result.min_iteration = count == 0 ? time : std::min(result.min_iteration, time);
      result.max_iteration = std::max(result.max_iteration, time);
      sum += time;
      ++count;
    }
    const std::uint64_t finished = rank.times.size() - first;
    fewest = fewest ? std::min(*fewest, finished) : finished;
  }
  result.ranks = std::move(ranks);
  result.iterations = fewest.value_or(0);
  if (count == 0) return result;
  result.mean_iteration = Duration{(sum.count() + count / 2) / count};
  if (sum > Duration::zero()) {
    result.iterations_per_s = static_cast<double>(count) / to_seconds(sum);
  }
  if (scale.samples_per_iteration) {
    result.samples_per_s = *scale.samples_per_iteration * result.iterations_per_s;
  }
  if (scale.alone_iterations_per_s && *scale.alone_iterations_per_s > 0) {
    result.normalised_to_alone = result.iterations_per_s / *scale.alone_iterations_per_s;
  }
  return result;
}

void summarise_filler(FillerResult& filler, Duration window,
                      std::optional<double> own_gpu_requests_per_s) {
  BUBBLESIM_CHECK(window > Duration::zero(), "the measured window is empty");
  filler.passes = 0;
  filler.requests_completed = 0;
  filler.memory = {};
  for (const FillerInstance& instance : filler.instances) {
    filler.passes += instance.passes;
    filler.requests_completed += instance.requests_completed;
    filler.memory = filler.memory + instance.memory;
  }
  filler.requests_per_s = static_cast<double>(filler.requests_completed) / to_seconds(window);
  filler.normalised_to_own_gpu.reset();
  if (own_gpu_requests_per_s && *own_gpu_requests_per_s > 0 && !filler.instances.empty()) {
    filler.normalised_to_own_gpu =
        filler.requests_per_s /
        (*own_gpu_requests_per_s * static_cast<double>(filler.instances.size()));
  }
}

double mean_over_gpus(const std::vector<GpuUse>& gpus, double GpuUse::*fraction) {
  if (gpus.empty()) return 0;
  double sum = 0;
  for (const GpuUse& gpu : gpus) sum += gpu.*fraction;
  return sum / static_cast<double>(gpus.size());
}

UseAlone use_alone(const PolicyResult& alone) {
  std::vector<GpuUse> gpus = alone.gpus;
  if (!alone.fillers.empty()) {
    const std::vector<FillerInstance>& instances = alone.fillers.front().instances;
    std::erase_if(gpus, [&instances](const GpuUse& gpu) {
      return std::ranges::find(instances, gpu.gpu, &FillerInstance::gpu) == instances.end();
    });
  }
  UseAlone use;
  use.busy_fraction = mean_over_gpus(gpus, &GpuUse::busy_fraction);
  use.sm_fraction = mean_over_gpus(gpus, &GpuUse::training_sm_fraction) +
                    mean_over_gpus(gpus, &GpuUse::filler_sm_fraction);
  use.bubble_fraction = mean_over_gpus(gpus, &GpuUse::bubble_fraction);
  for (const GpuUse& gpu : gpus) {
    use.memory_high_water = std::max(use.memory_high_water, gpu.memory_high_water);
  }
  return use;
}

double recovered_over_gpus(const std::vector<GpuUse>& gpus) {
  double bubble = 0;
  double recovered = 0;
  for (const GpuUse& gpu : gpus) {
    bubble += gpu.bubble_fraction;
    recovered += gpu.bubble_fraction * gpu.recovered_fraction;
  }
  return bubble > 0 ? recovered / bubble : 0;
}

}  // namespace bubblesim::observe
