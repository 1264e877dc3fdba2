// Places the fillers of a simulation on GPUs: where the config says, or where the policy's placer
// decides. Each is booked in a ClusterPlacement, which fill jobs use later.
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
  /// A filler's process on a GPU, and what the placement books for it.
  struct Placed {
    std::uint32_t filler = 0;
    policy::JobInfo job;
  };

  /// Both outlive this.
  FillerPlaces(const LoadedRun& loaded, const RunScenario& scenario);

  /// Asks the placer, if there is one. Once. Fault: an illegal decision.
  Result<void> decide();
  /// The policy on the GPU did not let the process in: its place is free again.
  void refuse(GpuId gpu, std::size_t place);

  [[nodiscard]] const std::vector<Placed>& placed_on(GpuId gpu) const {
    return placed_[gpu.index()];
  }
  /// Alone, the requests of fill jobs never end: what is measured is how fast they are served.
  [[nodiscard]] observe::FillerMode mode_of(std::uint32_t filler) const;
  /// Instances of the filler that no GPU was found for.
  [[nodiscard]] std::uint64_t unplaced(std::uint32_t filler) const { return unplaced_[filler]; }
  /// Ids from here on are free for fill jobs.
  [[nodiscard]] std::uint32_t next_job() const { return next_job_; }
  [[nodiscard]] ClusterPlacement& cluster() { return cluster_; }
  [[nodiscard]] const ClusterPlacement& cluster() const { return cluster_; }

 private:
  Result<void> place_instances(const std::vector<Placed>& waiting);
  [[nodiscard]] std::vector<std::uint32_t> gpus_of(std::uint32_t filler) const;

  const LoadedRun& loaded_;
  const RunScenario& scenario_;
  ClusterPlacement cluster_;
  std::vector<std::vector<Placed>> placed_;  ///< by GPU
  std::vector<std::uint64_t> unplaced_;      ///< instances, by RunConfig::fillers
  std::uint32_t next_job_ = 0;
};

}  // namespace bubblesim::run
