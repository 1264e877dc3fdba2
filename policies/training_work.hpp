// Decides which outstanding operations of training count as work, for policies that run fillers
// only while training has no work, by the parameter `collectives`.
//
// The policies' original systems share the GPU of a one-GPU job and know no collectives: every
// outstanding launch is work (`work`). In a distributed job some collective is nearly always
// outstanding, mostly waiting for peers: fillers get no communication bubble. `idle` leaves
// collectives out (reconstructed). A launch's kind tells which it is, as a hook in the driver
// library does by call and kernel name; a CUDA graph is always work. Under `idle` orion also keeps
// the class of training's latest kernel that computes, and gpreempt gives all contexts the device's
// slices while training waits. docs/policies.md has rows of both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/policy/declaration.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {

enum class Collectives : std::uint8_t { kWork, kIdle };

/// `collectives: work | idle`.
[[nodiscard]] inline policy::ParameterSpec collectives_parameter() {
  return policy::declare_choice(
      "collectives", {"work", "idle"},
      {"", "Whether an outstanding collective of training counts as work, or as idle time.",
       "work: the system's code, made for one GPU; idle: reconstructed, for distributed jobs"});
}
[[nodiscard]] inline Collectives collectives_of(const policy::ParameterSet& given) {
  return given.text("collectives") == "idle" ? Collectives::kIdle : Collectives::kWork;
}

/// Training's outstanding operations.
class TrainingWork {
 public:
  explicit TrainingWork(Collectives collectives) : collectives_(collectives) {}

  /// Whether operations of this launch count.
  [[nodiscard]] bool counts(const policy::LaunchInfo& launch) const {
    return collectives_ == Collectives::kWork || launch.kind != policy::WorkKind::kCollective;
  }
  /// Training launched. True if training had no work before and has some now.
  bool launched(const policy::LaunchInfo& launch) {
    if (!counts(launch)) {
      uncounted_.insert(uncounted_.end(), launch.operations, launch.launch);
      return false;
    }
    const bool was_idle = idle();
    work_ += launch.operations;
    return was_idle && !idle();
  }
  /// An operation of training ended; an unknown one is ignored. True if it counted.
  bool ended(const policy::CompletionInfo& completion) {
    const auto place = std::find(uncounted_.begin(), uncounted_.end(), completion.launch);
    if (place != uncounted_.end()) {
      uncounted_.erase(place);
      return false;
    }
    if (work_ == 0) return false;
    --work_;
    return true;
  }

  /// Nothing that counts is outstanding.
  [[nodiscard]] bool idle() const { return work_ == 0; }
  /// Only collectives that do not count are outstanding.
  [[nodiscard]] bool waits_for_peers() const { return idle() && !uncounted_.empty(); }

 private:
  Collectives collectives_;
  std::uint64_t work_ = 0;                ///< operations
  std::vector<std::uint64_t> uncounted_;  ///< launches; one entry an operation
};

}  // namespace bubblesim::policies
