// Dilu's scheduler: packs instances by SM shares and memory (scheduling/scheduler.py and
// simulations/baseline/scheduler_dilu.py of github.com/sigserverless/Dilu at 1134655a). A GPU can
// take a job if the requests stay within `oversubscribed_requests` of it, the limits within
// `oversubscribed_limits`, and the memory fits. Among those: first the GPUs of the training job
// without an instance of this filler, once another of its GPUs has one (so that all workers of the
// job are slowed alike), then all; within each the best fit, the lowest of
//     sm_weight (1 - requests) + (1 - sm_weight) (1 - memory share), the job included.
// Differs: every GPU has a worker of one training job, so all are active and none is fresh;
// training itself is not placed; a language model is not split over GPUs. Where instances ran is
// remembered until the GPU has none at all.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "policies/job_slots.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::policies {

struct DiluPlacerConstants {
  double requests = 1.0;  ///< a GPU's requests sum up to this at most
  double limits = 1.5;
  double sm_weight = 0.6;
  double training_request = 0.3;  ///< of the worker on each GPU
  double training_limit = 0.9;
  double job_request = 0.3;  ///< of a job that says nothing
  double job_limit = 0.6;
  Bytes reserve;
};

class DiluPlacer final : public policy::Placer {
 public:
  explicit DiluPlacer(const DiluPlacerConstants& constants) : constants_(constants) {}
  /// Jobs in order; ties: the GPU's number. What has no room waits.
  std::vector<policy::Placement> place(std::span<const policy::JobInfo> waiting,
                                       std::span<const policy::GpuState> gpus,
                                       policy::Instant now) override;

 private:
  [[nodiscard]] bool can_take(const policy::GpuState& gpu, const policy::JobInfo& job) const;
  [[nodiscard]] double score(const policy::GpuState& gpu, const policy::JobInfo& job) const;
  [[nodiscard]] double request(const policy::JobInfo& job) const;
  [[nodiscard]] double limit(const policy::JobInfo& job) const;
  [[nodiscard]] bool has_instance(std::uint32_t kind, GpuId gpu) const;

  DiluPlacerConstants constants_;
  JobSlots slots_;
  /// Kinds of jobs and where they were placed; forgotten when the GPU has no jobs any more.
  std::vector<std::pair<std::uint32_t, GpuId>> placed_;
};

/// Nothing where `placement` is as_configured.
[[nodiscard]] std::unique_ptr<policy::Placer> make_dilu_placer(const policy::ParameterSet& given);
/// The placer's own parameters; shares of training and of services are the policy's.
[[nodiscard]] std::vector<policy::ParameterSpec> dilu_placer_parameters();

}  // namespace bubblesim::policies
