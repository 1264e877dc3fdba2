#include "sim/run/cluster_placement.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/units.hpp"

namespace bubblesim::run {
ClusterPlacement::ClusterPlacement(std::string policy, std::unique_ptr<policy::Placer> placer,
                                   std::vector<policy::GpuState> gpus)
    : policy_(std::move(policy)), placer_(std::move(placer)), gpus_(std::move(gpus)),
      booked_(gpus_.size()), workers_now_(gpus_.size()), workers_most_(gpus_.size()) {
  for (const policy::GpuState& gpu : gpus_) training_.push_back(gpu.used);
}

void ClusterPlacement::add_fixed(const policy::JobInfo& job, GpuId gpu) { book(job, gpu, false); }

void ClusterPlacement::book(const policy::JobInfo& job, GpuId gpu, bool placed) {
  booked_[gpu.index()].push_back({job, placed});
  update(gpu);
}

void ClusterPlacement::remove(const policy::JobInfo& job, GpuId gpu) {
  auto& booked = booked_[gpu.index()];
  booked.erase(std::ranges::find_if(
      booked, [&job](const Booked& entry) { return entry.job.id == job.id; }));
  update(gpu);
}

// From nothing each time: sums of shares do not depend on what came and went.
void ClusterPlacement::update(GpuId gpu) {
  policy::GpuState& state = gpus_[gpu.index()];
  state.used = training_[gpu.index()];
  state.request = state.limit = 0;
  state.jobs = 0;
  Bytes workers;
  std::set<std::uint32_t> counted;
  for (const Booked& booked : booked_[gpu.index()]) {
    state.jobs += booked.placed ? 1U : 0U;
    const bool worker = worker_kinds_.contains(booked.job.kind);
    if (worker && !counted.insert(booked.job.kind).second) continue;
    state.used = state.used + booked.job.memory;
    state.request += booked.job.request;
    state.limit += booked.job.limit;
    if (!worker) continue;
    const auto resident = worker_resident_.find({gpu, booked.job.kind});
    workers = workers + (resident == worker_resident_.end() ? booked.job.memory : resident->second);
  }
  workers_now_[gpu.index()] = workers;
  workers_most_[gpu.index()] = std::max(workers_most_[gpu.index()], workers);
}

bool ClusterPlacement::fits(const policy::JobInfo& job, GpuId gpu) const {
  const policy::GpuState& state = gpus_[gpu.index()];
  return unified_ || state.memory == Bytes{} || job.memory == Bytes{} ||
         state.used + job.memory <= state.memory;
}

std::vector<policy::Placement> ClusterPlacement::first_come(
    std::span<const policy::JobInfo> waiting, std::span<const std::uint32_t> allowed) const {
  std::vector<policy::Placement> placements;
  std::set<std::uint32_t> free;
  for (const std::uint32_t gpu : allowed) {
    if (gpus_[gpu].jobs == 0) free.insert(gpu);
  }
  for (const policy::JobInfo& job : waiting) {
    const auto gpu = std::ranges::find_if(
        free, [&](std::uint32_t candidate) { return fits(job, GpuId{candidate}); });
    if (gpu == free.end()) continue;
    placements.push_back({job.id, GpuId{*gpu}});
    free.erase(gpu);
  }
  return placements;
}

Result<std::vector<policy::Placement>> ClusterPlacement::place(
    std::span<const policy::JobInfo> waiting, std::span<const std::uint32_t> allowed,
    policy::Instant now) {
  std::vector<policy::Placement> placements;
  if (placer_ != nullptr) {
    std::vector<policy::GpuState> seen;
    for (const std::uint32_t gpu : allowed) seen.push_back(gpus_[gpu]);
    placements = placer_->place(waiting, seen, now);
  } else {
    placements = first_come(waiting, allowed);
  }
  BUBBLESIM_RETURN_IF_ERROR(check(placements, waiting, allowed, now));
  for (const policy::Placement& placement : placements) {
    book(*std::ranges::find(waiting, placement.job, &policy::JobInfo::id), placement.gpu, true);
  }
  return placements;
}

Result<void> ClusterPlacement::check(std::span<const policy::Placement> placements,
                                     std::span<const policy::JobInfo> waiting,
                                     std::span<const std::uint32_t> allowed,
                                     policy::Instant now) const {
  std::set<std::uint32_t> placed;
  for (const policy::Placement& placement : placements) {
    const std::string name = "job " + std::to_string(placement.job);
    if (std::ranges::find(waiting, placement.job, &policy::JobInfo::id) == waiting.end()) {
      return illegal(now, name + " is placed, which does not wait");
    }
    if (std::ranges::find(allowed, placement.gpu.value) == allowed.end()) {
      return illegal(now, name + " is placed on GPU " + std::to_string(placement.gpu.value) +
                              ", which is none of those it may use");
    }
    if (!placed.insert(placement.job).second) return illegal(now, name + " is placed twice");
  }
  return {};
}

Result<void> ClusterPlacement::check_memory(policy::Instant now) const {
  if (unified_ || placer_ == nullptr) return {};
  for (const policy::GpuState& gpu : gpus_) {
    if (gpu.jobs == 0 || gpu.memory == Bytes{} || gpu.used <= gpu.memory) continue;
    return illegal(now, format_bytes(gpu.used) + " on GPU " + std::to_string(gpu.id.value) +
                            ", which has " + format_bytes(gpu.memory));
  }
  return {};
}

void ClusterPlacement::add_counts(CounterSet& counters) const {
  if (placer_ != nullptr) placer_->add_counts(counters);
}

tl::unexpected<Error> ClusterPlacement::illegal(policy::Instant now,
                                                const std::string& reason) const {
  return fail({}, "policy " + policy_,
              "illegal placement at " + format_duration(now) + ": " + reason);
}

}  // namespace bubblesim::run
