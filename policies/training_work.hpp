// Decides which outstanding operations of training count as work, for policies that run fillers
// only while training has no work, by the parameter `collectives`.
//
// The policies' original systems share the GPU of a one-GPU job, and most see a collective as any
// launch: it is work (`work`). In a distributed job some collective is nearly always outstanding,
// mostly waiting for peers: fillers get no communication bubble. `idle` leaves collectives out: it
// is Tally's code, whose scheduler sees kernels alone, neither NCCL's calls nor copies, and
// reconstructed for the others. A launch's kind tells which it is, as a hook in the driver library
// does by call and kernel name; a CUDA graph is always work. Under `idle` orion also keeps the
// class of training's latest kernel that computes, and gpreempt gives all contexts the device's
// slices while training waits. docs/policies.md has rows of both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/policy/declaration.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {

enum class Collectives : std::uint8_t { kWork, kIdle };
enum class Copies : std::uint8_t { kWork, kIdle };  ///< and memsets

/// `collectives: work | idle`; the first is the system's own.
[[nodiscard]] inline policy::ParameterSpec collectives_parameter(
    Collectives own = Collectives::kWork) {
  const bool work = own == Collectives::kWork;
  return policy::declare_choice(
      "collectives",
      work ? std::vector<std::string>{"work", "idle"} : std::vector<std::string>{"idle", "work"},
      {"", "Whether an outstanding collective of training counts as work, or as idle time.",
       work ? "work: the system's code, made for one GPU; idle: reconstructed, for distributed jobs"
            : "idle: the system's code, whose scheduler sees no collectives; work: reconstructed"});
}
[[nodiscard]] inline Collectives collectives_of(const policy::ParameterSet& given) {
  return given.text("collectives") == "idle" ? Collectives::kIdle : Collectives::kWork;
}

/// Training's outstanding operations.
class TrainingWork {
 public:
  explicit TrainingWork(Collectives collectives, Copies copies = Copies::kWork)
      : collectives_(collectives), copies_(copies) {}

  /// Whether operations of this launch count.
  [[nodiscard]] bool counts(const policy::LaunchInfo& launch) const {
    switch (launch.kind) {
      case policy::WorkKind::kKernel: return true;
      case policy::WorkKind::kCollective: return collectives_ == Collectives::kWork;
      case policy::WorkKind::kCopy:
      case policy::WorkKind::kMemset: break;
    }
    return copies_ == Copies::kWork;
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
  /// Only launches that do not count are outstanding; without Copies::kIdle, collectives.
  [[nodiscard]] bool waits_for_peers() const { return idle() && !uncounted_.empty(); }

 private:
  Collectives collectives_;
  Copies copies_;
  std::uint64_t work_ = 0;                ///< operations
  std::vector<std::uint64_t> uncounted_;  ///< launches; one entry an operation
};

}  // namespace bubblesim::policies
