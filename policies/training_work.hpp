// Which outstanding operations of training count as work, for policies that run fillers only while
// training has none: the declared parameter `collectives`, and the account kept under it.
//
// The systems that these policies come from share one GPU's job, and know no collective: whatever
// was launched and has not ended is work (`work`). In a distributed job some collective is nearly
// always outstanding, and most of its time is a wait for peers: fillers get no communication
// bubble. `idle` leaves collectives out (reconstructed). A launch is told apart by its kind, as a
// hook in the driver library tells it by route and kernel name; a CUDA graph is work, whatever it
// holds. Under `idle` orion also keeps the class of training's latest kernel that computes, and
// gpreempt gives all contexts the device's slices while training waits. docs/policies.md has rows
// of both.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/policy/declaration.hpp"

namespace bubblesim::policies {

enum class Collectives : std::uint8_t { kWork, kIdle };

/// `collectives: work | idle`.
[[nodiscard]] policy::ParameterSpec collectives_parameter();
[[nodiscard]] Collectives collectives_of(const policy::ParameterSet& given);

/// Training's outstanding operations.
class TrainingWork {
 public:
  explicit TrainingWork(Collectives collectives) : collectives_(collectives) {}

  /// Whether operations of this launch count.
  [[nodiscard]] bool counts(const policy::LaunchInfo& launch) const {
    return collectives_ == Collectives::kWork || launch.kind != policy::WorkKind::kCollective;
  }
  /// A launch of training passed. True if it gave work to training, which had none.
  bool launched(const policy::LaunchInfo& launch);
  /// An operation of training ended; an unknown one is ignored. True if it counted.
  bool ended(const policy::CompletionInfo& completion);

  /// Nothing that counts is outstanding.
  [[nodiscard]] bool idle() const { return work_ == 0; }
  /// Collectives that do not count are outstanding, and nothing else is.
  [[nodiscard]] bool waits_for_peers() const { return idle() && !uncounted_.empty(); }

 private:
  Collectives collectives_;
  std::uint64_t work_ = 0;                ///< operations
  std::vector<std::uint64_t> uncounted_;  ///< launches; one entry an operation
};

}  // namespace bubblesim::policies
