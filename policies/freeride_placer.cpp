#include "policies/freeride_placer.hpp"

#include <algorithm>
#include <tuple>

namespace bubblesim::policies {
namespace {

using policy::GpuState;
using policy::JobInfo;

constexpr CounterSpec kNowhere{"freeride_tasks_without_headroom", Severity::kNotice,
                               "side tasks whose memory is not below the headroom of any GPU"};

Bytes headroom_of(const GpuState& gpu) {
  return {gpu.memory.value - std::min(gpu.used, gpu.memory).value};
}

}  // namespace

// First called before any placement: all memory used then is training's.
FreeRidePlacer::Queue& FreeRidePlacer::queue_of(const GpuState& gpu) {
  return queues_.try_emplace(gpu.id, Queue{headroom_of(gpu), {}, 0}).first->second;
}

const GpuState* FreeRidePlacer::choose(const JobInfo& job, std::span<const GpuState> gpus) {
  const GpuState* best = nullptr;
  const auto rank = [&](const GpuState& gpu) {
    const Queue& queue = queue_of(gpu);
    const std::uint64_t most_headroom = job.memory_known ? 0 : ~queue.headroom.value;
    return std::tuple(most_headroom, gpu.jobs + queue.jobs.size(), gpu.id);
  };
  for (const GpuState& gpu : gpus) {
    const bool known = job.memory_known && gpu.memory != Bytes{};
    if (known && job.memory >= queue_of(gpu).headroom) continue;
    if (best == nullptr || rank(gpu) < rank(*best)) best = &gpu;
  }
  return best;
}

std::vector<policy::Placement> FreeRidePlacer::place(std::span<const JobInfo> waiting,
                                                     std::span<const GpuState> gpus,
                                                     policy::Instant) {
  std::vector<policy::Placement> placements;
  std::vector<GpuState> now(gpus.begin(), gpus.end());
  for (const JobInfo& job : waiting) {
    if (assigned_.contains(job.id)) continue;
    const GpuState* gpu = choose(job, now);
    if (gpu == nullptr) {
      nowhere_.insert(job.id);
      continue;
    }
    assigned_.insert(job.id);
    Queue& queue = queues_[gpu->id];
    if (job.work > Duration{}) {
      queue.jobs.push_back(job.id);
      continue;
    }
    placements.push_back({job.id, gpu->id});
    ++queue.endless;
    ++std::ranges::find(now, gpu->id, &GpuState::id)->jobs;
  }
  for (const GpuState& gpu : now) {
    Queue& queue = queues_[gpu.id];
    if (queue.jobs.empty() || gpu.jobs > queue.endless) continue;
    const auto job = std::ranges::find(waiting, queue.jobs.front(), &JobInfo::id);
    if (job == waiting.end()) continue;
    const bool known = job->memory_known && gpu.memory != Bytes{};
    if (known && gpu.used + job->memory > gpu.memory) continue;
    placements.push_back({job->id, gpu.id});
    queue.jobs.pop_front();
  }
  return placements;
}

void FreeRidePlacer::add_counts(CounterSet& counters) const {
  if (!nowhere_.empty()) counters.add(kNowhere, nowhere_.size());
}

}  // namespace bubblesim::policies
