#include "sim/observe/summary.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
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

namespace {

// Iterations that count for means: whole passes, since iterations of a pass differ; or all, if no
// pass was finished.
std::size_t counted_for_mean(const RankIterations& rank, std::size_t finished) {
  const std::size_t unfinished = finished % std::max<std::size_t>(1, rank.per_pass);
  return unfinished == finished ? finished : finished - unfinished;
}

std::size_t finished_in_window(const RankIterations& rank) {
  return rank.times.size() - std::min(rank.first_counted, rank.times.size());
}

// Time after a rank's last finished iteration, if a fault strikes in it: it is lost, though the
// iteration that was struck did not end.
Duration lost_at_end(const RankIterations& rank, const TrainingScale& scale) {
  const Duration last = std::accumulate(rank.times.begin(), rank.times.end(), Duration{});
  const bool struck = std::ranges::any_of(scale.faults, [&](Duration fault) {
    return fault >= last && fault < scale.simulated;
  });
  return struck ? scale.simulated - last : Duration{};
}

// Against the same iterations alone. Those that were not reached alone are left out. `lost` is
// the time of all ranks that no iteration has.
std::optional<double> kept_within_pass(const std::vector<RankIterations>& ranks,
                                       const std::vector<Duration>& alone_pass, Duration lost) {
  Duration alone{};
  Duration measured = lost;
  for (const RankIterations& rank : ranks) {
    const std::size_t counted = counted_for_mean(rank, finished_in_window(rank));
    for (std::size_t i = rank.times.size() - counted; i < rank.times.size(); ++i) {
      const std::size_t place = i % std::max<std::size_t>(1, rank.per_pass);
      if (place >= alone_pass.size() || alone_pass[place] == Duration{}) continue;
      alone += alone_pass[place];
      measured += rank.times[i];
    }
  }
  if (measured == Duration{}) return std::nullopt;
  return to_seconds(alone) / to_seconds(measured);
}

// Iterations that are done again because of faults that strike the counted ones, from `first` on,
// or the one that is open at the end: at each fault those since the last checkpoint. The iteration
// in which a fault strikes goes on where it stood.
std::uint64_t done_again(const RankIterations& rank, std::size_t first,
                         const TrainingScale& scale) {
  std::uint64_t all = 0;  // done again so far, which are no progress
  std::uint64_t counted = 0;
  for (const Duration fault : scale.faults) {
    const std::size_t struck = first_after(rank.times, fault);
    const std::uint64_t redone = (struck - all) % scale.checkpoint_every;
    all += redone;
    const bool in_run = struck < rank.times.size() || fault < scale.simulated;
    if (struck >= first && in_run) counted += redone;
  }
  return counted;
}

// Takes the first rank's faults, since all ranks stop and go on together.
void summarise_faults(const TrainingScale& scale, TrainingResult& result) {
  if (scale.faults.empty() || result.ranks.empty()) return;
  const RankIterations& rank = result.ranks.front();
  const std::size_t first = std::min(rank.first_counted, rank.times.size());
  const std::size_t counted = counted_for_mean(rank, rank.times.size() - first);
  result.redone = done_again(rank, rank.times.size() - counted, scale);
  const double kept = counted == 0 ? 0
                                   : 1 - std::min(1.0, static_cast<double>(*result.redone) /
                                                           static_cast<double>(counted));
  result.goodput_per_s = kept * result.iterations_per_s;
}

/// Over the measured window, of an online filler.
double growth_of_backlog(const FillerResult& filler) {
  return static_cast<double>(filler.requests_unfinished) -
         static_cast<double>(filler.requests_before);
}

}  // namespace

std::vector<Duration> pass_of(const std::vector<RankIterations>& ranks) {
  std::vector<Duration> pass;
  std::vector<std::int64_t> counts;
  for (const RankIterations& rank : ranks) {
    const std::size_t length = std::max<std::size_t>(1, rank.per_pass);
    pass.resize(std::max(pass.size(), length));
    counts.resize(pass.size());
    for (std::size_t i = 0; i < rank.times.size(); ++i) {
      pass[i % length] += rank.times[i];
      ++counts[i % length];
    }
  }
  for (std::size_t i = 0; i < pass.size(); ++i) pass[i] /= std::max<std::int64_t>(1, counts[i]);
  return pass;
}

std::uint64_t ranks_within_pass(const std::vector<RankIterations>& ranks) {
  return static_cast<std::uint64_t>(std::ranges::count_if(ranks, [](const RankIterations& rank) {
    const std::size_t finished = finished_in_window(rank);
    return finished > 0 && finished < rank.per_pass;
  }));
}

TrainingResult summarise_training(std::vector<RankIterations> ranks, const TrainingScale& scale) {
  TrainingResult result;
  Duration sum{};
  Duration lost{};
  std::int64_t count = 0;
  bool has_minimum = false;
  std::optional<std::uint64_t> fewest;
  for (const RankIterations& rank : ranks) {
    const std::size_t first = std::min(rank.first_counted, rank.times.size());
    for (std::size_t i = first; i < rank.times.size(); ++i) {
      const Duration time = rank.times[i];
      result.min_iteration = !has_minimum ? time : std::min(result.min_iteration, time);
      has_minimum = true;
      result.max_iteration = std::max(result.max_iteration, time);
    }
    const std::uint64_t finished = rank.times.size() - first;
    const std::size_t counted = counted_for_mean(rank, finished);
    for (std::size_t i = rank.times.size() - counted; i < rank.times.size(); ++i) {
      sum += rank.times[i];
      ++count;
    }
    lost += lost_at_end(rank, scale);
    fewest = fewest ? std::min(*fewest, finished) : finished;
  }
  result.ranks = std::move(ranks);
  result.iterations = fewest.value_or(0);
  if (count == 0) {  // it stood still: no part of what it does alone
    if (!result.ranks.empty() && scale.alone_iterations_per_s) result.normalised_to_alone = 0;
    summarise_faults(scale, result);
    return result;
  }
  result.mean_iteration = Duration{(sum.count() + count / 2) / count};
  if (sum > Duration::zero()) {
    result.iterations_per_s = static_cast<double>(count) / to_seconds(sum + lost);
  }
  if (scale.samples_per_iteration) {
    result.samples_per_s = *scale.samples_per_iteration * result.iterations_per_s;
  }
  if (scale.alone_iterations_per_s && *scale.alone_iterations_per_s > 0) {
    result.normalised_to_alone = result.iterations_per_s / *scale.alone_iterations_per_s;
    const bool in_part = !scale.alone_is_whole || ranks_within_pass(result.ranks) > 0;
    if (in_part && !scale.alone_pass.empty()) {
      result.normalised_to_alone = kept_within_pass(result.ranks, scale.alone_pass, lost);
    }
  }
  summarise_faults(scale, result);
  return result;
}

void summarise_filler(FillerResult& filler, Duration window,
                      std::optional<double> own_gpu_requests_per_s) {
  BUBBLESIM_CHECK(window > Duration::zero(), "the measured window is empty");
  filler.passes = 0;
  filler.requests_completed = 0;
  filler.memory = {};
  for (const InstanceResult& instance : filler.instances) {
    filler.passes += instance.passes;
    filler.requests_completed += instance.requests_completed;
    filler.memory = filler.memory + instance.memory;
  }
  filler.requests_per_s = static_cast<double>(filler.requests_completed) / to_seconds(window);
  filler.offered_per_s.reset();
  if (filler.mode == FillerMode::kOnline) {
    filler.offered_per_s = static_cast<double>(filler.requests_arrived) / to_seconds(window);
  }
  filler.normalised_to_own_gpu.reset();
  if (own_gpu_requests_per_s && *own_gpu_requests_per_s > 0 && !filler.instances.empty()) {
    filler.normalised_to_own_gpu =
        filler.requests_per_s /
        (*own_gpu_requests_per_s * static_cast<double>(filler.instances.size()));
  }
}

bool is_overloaded(const FillerResult& filler, const Backlog& backlog, Duration window) {
  constexpr double kDeviations = 3;
  if (filler.requests_completed == 0 && filler.requests_unfinished > 0 &&
      backlog.oldest >= window / 2) {
    return true;
  }
  return growth_of_backlog(filler) >
         static_cast<double>(backlog.batch) +
             kDeviations * std::sqrt(static_cast<double>(filler.requests_arrived));
}

bool keeps_up(const FillerResult& filler, double share) {
  return growth_of_backlog(filler) <= share * static_cast<double>(filler.requests_arrived);
}

CounterSet concerning(const RunReport& report, const PolicyResult& policy,
                      std::optional<std::size_t> filler) {
  CounterSet counters = report.training_counters;
  if (filler && *filler < report.filler_counters.size()) {
    counters.merge(report.filler_counters[*filler]);
  }
  counters.merge(policy.counters);
  return counters;
}

bool has_loss(const CounterSet& counters) {
  return std::any_of(counters.begin(), counters.end(),
                     [](const auto& item) { return item.second.severity >= Severity::kLoss; });
}

bool has_error(const RunReport& report) {
  return report.counters.has_error() ||
         std::any_of(report.policies.begin(), report.policies.end(),
                     [](const PolicyResult& policy) { return policy.counters.has_error(); });
}

double mean_over_gpus(const std::vector<GpuUse>& gpus, double GpuUse::*fraction) {
  if (gpus.empty()) return 0;
  double sum = 0;
  for (const GpuUse& gpu : gpus) sum += gpu.*fraction;
  return sum / static_cast<double>(gpus.size());
}

std::optional<PowerSummary> power_of(const PolicyResult& result) {
  if (result.gpus.empty() || !result.gpus.front().power) return std::nullopt;
  PowerSummary all;
  double training_w = 0;
  const double window = to_seconds(result.simulated - result.warmup);
  for (const GpuUse& gpu : result.gpus) {
    all.mean_w += gpu.power->mean_w / static_cast<double>(result.gpus.size());
    all.clock_mhz += gpu.power->clock_mhz / static_cast<double>(result.gpus.size());
    all.peak_w = std::max(all.peak_w, gpu.power->peak_w);
    if (window > 0) training_w += (gpu.power->energy_j - gpu.power->filler_j) / window;
  }
  const double rate = result.training.iterations_per_s;
  if (rate > 0) all.iteration_j = training_w / rate;
  return all;
}

std::optional<double> request_energy(const FillerResult& filler) {
  if (!filler.energy_j || filler.requests_completed == 0) return std::nullopt;
  return *filler.energy_j / static_cast<double>(filler.requests_completed);
}

UseAlone use_alone(const PolicyResult& alone) {
  std::vector<GpuUse> gpus = alone.gpus;
  if (!alone.fillers.empty()) {
    const std::vector<InstanceResult>& instances = alone.fillers.front().instances;
    std::erase_if(gpus, [&instances](const GpuUse& gpu) {
      return std::ranges::find(instances, gpu.gpu, &InstanceResult::gpu) == instances.end();
    });
  }
  UseAlone use;
  use.busy_fraction = mean_over_gpus(gpus, &GpuUse::busy_fraction);
  use.sm_fraction = mean_over_gpus(gpus, &GpuUse::training_sm_fraction) +
                    mean_over_gpus(gpus, &GpuUse::filler_sm_fraction);
  use.bubble_fraction = mean_over_gpus(gpus, &GpuUse::bubble_fraction);
  use.memory_high_water = memory_high_water(gpus);
  return use;
}

Bytes memory_high_water(const std::vector<GpuUse>& gpus) {
  Bytes most;
  for (const GpuUse& gpu : gpus) most = std::max(most, gpu.memory_high_water);
  return most;
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
