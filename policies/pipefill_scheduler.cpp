#include "policies/pipefill_scheduler.hpp"

#include <algorithm>
#include <functional>

#include "sim/base/time.hpp"

namespace bubblesim::policies {
namespace {

using policy::GpuState;
using policy::Instant;
using policy::JobInfo;

constexpr CounterSpec kRefused{
    "pipefill_deadlines_refused", Severity::kNotice,
    "fill jobs that wait for ever, as they could not have met their deadlines"};

/// Later than every known work and deadline.
constexpr Duration kLast = Duration::max();

bool endless(const JobInfo& job) { return job.work == Duration{}; }

}  // namespace

double FillScheduler::share(const GpuState& gpu) const {
  const Duration time = scheduling_.pipeline_only ? gpu.pipeline_time : gpu.bubble_time;
  return gpu.iteration > Duration{} ? to_seconds(time) / to_seconds(gpu.iteration) : 0;
}

bool FillScheduler::fits_bubbles(const JobInfo& job, const GpuState& gpu) const {
  if (!job.memory_known || gpu.memory == Bytes{}) return true;
  if (scheduling_.offload == Offload::kWhatDoesNotFit) return job.memory <= gpu.memory;
  return gpu.bubble_memory == Bytes{} || job.memory <= gpu.bubble_memory;
}

bool FillScheduler::fits_now(const JobInfo& job, const GpuState& gpu) const {
  if (!fits_bubbles(job, gpu)) return false;
  const bool any = !job.memory_known || gpu.memory == Bytes{} ||
                   scheduling_.offload == Offload::kWhatDoesNotFit;
  return any || gpu.used + job.memory <= gpu.memory;
}

bool FillScheduler::in_time(const JobInfo& job, const GpuState& gpu, Instant now) const {
  const double speed = share(gpu) * scheduling_.fraction;
  if (!job.deadline || speed <= 0) return true;
  return to_seconds(job.work) / speed <= to_seconds(*job.deadline - now);
}

bool FillScheduler::refused(const JobInfo& job, std::span<const GpuState> gpus, Instant now) {
  if (scheduling_.rule != FillRule::kDeadline || endless(job)) return false;
  bool fits = false;
  bool possible = false;
  for (const GpuState& gpu : gpus) {
    if (!fits_bubbles(job, gpu)) continue;
    fits = true;
    possible = possible || in_time(job, gpu, now);
  }
  if (fits && !possible) refused_.insert(job.id);
  return refused_.contains(job.id);
}

// Stable: jobs that the rule ranks equally stay in order of submission.
std::vector<JobInfo> FillScheduler::ordered(std::span<const JobInfo> waiting) const {
  std::vector<JobInfo> jobs(waiting.begin(), waiting.end());
  switch (scheduling_.rule) {
    case FillRule::kFirstCome: break;
    case FillRule::kShortestJob:
      std::ranges::stable_sort(
          jobs, {}, [](const JobInfo& job) { return endless(job) ? kLast : job.work; });
      break;
    case FillRule::kMakespan:
      std::ranges::stable_sort(jobs, std::greater{}, &JobInfo::work);
      break;
    case FillRule::kDeadline:
      std::ranges::stable_sort(
          jobs, {}, [](const JobInfo& job) { return job.deadline.value_or(kLast); });
      break;
  }
  return jobs;
}

std::vector<policy::Placement> FillScheduler::place(std::span<const JobInfo> waiting,
                                                    std::span<const GpuState> gpus, Instant now) {
  std::vector<policy::Placement> placements;
  std::vector<GpuState> left(gpus.begin(), gpus.end());
  for (const JobInfo& job : ordered(waiting)) {
    if (refused(job, gpus, now)) continue;
    GpuState* best = nullptr;
    for (GpuState& gpu : left) {
      const bool busy = !endless(job) && gpu.jobs > endless_[gpu.id];
      if (busy || !fits_now(job, gpu)) continue;
      if (scheduling_.rule == FillRule::kDeadline && !in_time(job, gpu, now)) continue;
      const bool fewer = best != nullptr && endless(job) && endless_[gpu.id] < endless_[best->id];
      const bool even = best == nullptr || !endless(job) || endless_[gpu.id] == endless_[best->id];
      if (fewer || (even && (best == nullptr || share(gpu) > share(*best)))) best = &gpu;
    }
    if (best == nullptr) continue;
    placements.push_back({job.id, best->id});
    best->used = best->used + job.memory;
    ++best->jobs;
    if (endless(job)) ++endless_[best->id];
  }
  return placements;
}

void FillScheduler::add_counts(CounterSet& counters) const {
  if (!refused_.empty()) counters.add(kRefused, refused_.size());
}

}  // namespace bubblesim::policies
