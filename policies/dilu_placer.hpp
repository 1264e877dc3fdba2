// Dilu's scheduler: packs instances by SM shares and memory (scheduling/scheduler.py and
// simulations/baseline/scheduler_dilu.py of github.com/sigserverless/Dilu at 1134655a). A GPU can
// take a job if the requests stay within `oversubscribed_requests` of it, the limits within
// `oversubscribed_limits`, and the memory fits. Among such GPUs the best fit is chosen, which has
// the lowest
//     sm_weight (1 - requests) + (1 - sm_weight) (1 - memory share), the job included.
// Once some GPU has an instance of this filler, GPUs without one come first, so that all workers of
// the training job are slowed alike.
// Differences from the source: every GPU has a worker of one training job, so all GPUs are active
// and none is fresh; training itself is not placed; a language model is not split over GPUs. A GPU
// counts as having had an instance until all of its fill jobs have ended.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "policies/job_slots.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::policies {

struct DiluPlacerConstants {
  double requests = 1.0;  ///< bound on the sum of a GPU's requests
  double limits = 1.5;    ///< bound on the sum of its limits
  double sm_weight = 0.6;
  double training_request = 0.5;  ///< of the worker on each GPU
  double training_limit = 0.9;
  double job_request = 0.3;  ///< of a job that declares no request; also its default limit
  double job_limit = 0.6;
  Bytes reserve{};
};

class DiluPlacer final : public policy::Placer {
 public:
  explicit DiluPlacer(const DiluPlacerConstants& constants) : constants_(constants) {}
  /// Places jobs in their order; of equal GPUs the lowest number. A job without room waits.
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
  /// Kinds of jobs and their GPUs; an entry is removed when its GPU has no jobs left.
  std::vector<std::pair<std::uint32_t, GpuId>> placed_;
};

/// Null if `placement` is as_configured.
[[nodiscard]] std::unique_ptr<policy::Placer> make_dilu_placer(const policy::ParameterSet& given);
/// The placer's own parameters; the policy declares the shares of training and of services.
[[nodiscard]] std::vector<policy::ParameterSpec> dilu_placer_parameters();

}  // namespace bubblesim::policies
