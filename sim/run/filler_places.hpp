// Places the fillers of a simulation on GPUs by the config, or by the policy's placer. Every
// placement is booked in a ClusterPlacement, which fill jobs use later.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/policy/placement.hpp"
#include "sim/run/fill_queue.hpp"
#include "sim/run/filler_instance.hpp"
#include "sim/run/loaded_run.hpp"

namespace bubblesim::run {

class FillerPlaces {
 public:
  /// `loaded` and `scenario` outlive this object.
  FillerPlaces(const LoadedRun& loaded, const RunScenario& scenario);

  /// Places all fillers, by the placer if there is one. To be called once. Fault: an illegal
  /// decision.
  Result<void> decide();
  /// The policy on the GPU refused the process: its place is free again.
  void refuse(GpuId gpu, std::size_t place);

  /// The processes on the GPU; JobInfo::kind: into RunConfig::fillers.
  [[nodiscard]] const std::vector<policy::JobInfo>& placed_on(GpuId gpu) const {
    return placed_[gpu.index()];
  }
  /// The filler's mode. In a run of fillers alone, fill jobs count as offline, without an end of
  /// requests, so that their throughput is measured.
  [[nodiscard]] observe::FillerMode mode_of(std::uint32_t filler) const;
  /// Instances of the filler that were placed on no GPU.
  [[nodiscard]] std::uint64_t unplaced(std::uint32_t filler) const { return unplaced_[filler]; }
  /// Ids from here on are free for fill jobs.
  [[nodiscard]] std::uint32_t next_job() const { return next_job_; }
  [[nodiscard]] ClusterPlacement& cluster() { return cluster_; }
  [[nodiscard]] const ClusterPlacement& cluster() const { return cluster_; }

 private:
  Result<void> place_instances(const std::vector<policy::JobInfo>& waiting);
  [[nodiscard]] std::vector<std::uint32_t> gpus_of(std::uint32_t filler) const;

  const LoadedRun& loaded_;
  const RunScenario& scenario_;
  ClusterPlacement cluster_;
  std::vector<std::vector<policy::JobInfo>> placed_;  ///< by GPU
  std::vector<std::uint64_t> unplaced_;               ///< instances, by RunConfig::fillers
  std::uint32_t next_job_ = 0;
};

}  // namespace bubblesim::run
