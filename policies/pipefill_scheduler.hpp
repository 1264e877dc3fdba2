// PipeFill's scheduler of fill jobs: one job a GPU at a time, chosen by a rule.
//
// A job fits a GPU if its memory fits into what training leaves free in every bubble, beside the
// fillers there (offloading: into the device's memory); unknown memory fits. Of the free GPUs that
// it fits, the job gets the one with the most bubble time, then the lowest number.
//   first_come    in order of submission
//   shortest_job  least work first; unknown work last
//   makespan      most work first (longest processing time, Graham 1969)
//   deadline      earliest deadline first, then jobs without one. A job that could not meet it even
//                 if it began now on the GPU with the most bubble time is refused: it waits for
//                 ever
// A job's time on a GPU is estimated as work / (share of bubbles * fill fraction); where the share
// is not known, no job is refused. The estimate leaves losses of packing out, so an accepted
// deadline may be missed. Jobs that cannot be placed are passed over. Endless jobs (instances of
// services) go to the GPUs with fewest of them, and take no job's place.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "policies/fill_plan.hpp"
#include "sim/policy/placement.hpp"

namespace bubblesim::policies {

enum class FillRule : std::uint8_t { kFirstCome, kShortestJob, kMakespan, kDeadline };

struct FillScheduling {
  FillRule rule = FillRule::kFirstCome;
  double fraction = 1;                ///< of a bubble that is filled
  Offload offload = Offload::kNever;
  bool pipeline_only = true;          ///< bubbles that wait for pipeline peers
};

class FillScheduler final : public policy::Placer {
 public:
  explicit FillScheduler(const FillScheduling& scheduling) : scheduling_(scheduling) {}

  std::vector<policy::Placement> place(std::span<const policy::JobInfo> waiting,
                                       std::span<const policy::GpuState> gpus,
                                       policy::Instant now) override;
  void add_counts(CounterSet& counters) const override;

 private:
  /// The share of training's time that fillers can use; 0: not known.
  [[nodiscard]] double share(const policy::GpuState& gpu) const;
  [[nodiscard]] bool fits_bubbles(const policy::JobInfo& job, const policy::GpuState& gpu) const;
  [[nodiscard]] bool fits_now(const policy::JobInfo& job, const policy::GpuState& gpu) const;
  [[nodiscard]] bool in_time(const policy::JobInfo& job, const policy::GpuState& gpu,
                             policy::Instant now) const;
  [[nodiscard]] bool refused(const policy::JobInfo& job, std::span<const policy::GpuState> gpus,
                             policy::Instant now);
  [[nodiscard]] std::vector<policy::JobInfo> ordered(
      std::span<const policy::JobInfo> waiting) const;

  FillScheduling scheduling_;
  std::map<GpuId, std::uint32_t> endless_;  ///< endless jobs, placed for good
  std::set<std::uint32_t> refused_;         ///< by job
};

}  // namespace bubblesim::policies
