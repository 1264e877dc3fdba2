// Finds when the bubbles of training begin and end, for a simulated GPU and a replayed job alike.
//
// A bubble that was measured beforehand begins when the operation before it ends and no other
// kernel of training runs; it ends when the next kernel starts. Collectives, copies and memsets
// neither begin nor end a bubble.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <span>
#include <utility>

#include "sim/policy/policy.hpp"

namespace bubblesim::policy {

/// Time without a computing kernel of training, measured while the job ran alone.
struct MeasuredBubble {
  std::uint32_t after_op = 0;  ///< index into the rank's program; its end begins the bubble
  BubbleInfo info;
};

/// Follows one rank's kernels. Must hear of every operation, in order of time.
class BubbleWatch {
 public:
  /// `bubbles`, in order of `after_op`, outlive the watch.
  explicit BubbleWatch(std::span<const MeasuredBubble> bubbles) : bubbles_(bubbles) {}

  /// Whether an open bubble ends now.
  [[nodiscard]] bool op_started(WorkKind kind) {
    if (kind != WorkKind::kKernel) return false;
    ++running_;
    return std::exchange(open_, false);
  }

  /// The bubble that begins now; null: none.
  [[nodiscard]] const BubbleInfo* op_finished(std::uint32_t op, WorkKind kind) {
    if (kind != WorkKind::kKernel) return nullptr;
    // A device observed from outside may lose the report of a start.
    if (running_ > 0) --running_;
    if (running_ > 0) return nullptr;
    const auto place = std::ranges::lower_bound(bubbles_, op, {}, &MeasuredBubble::after_op);
    if (place == bubbles_.end() || place->after_op != op) return nullptr;
    open_ = true;
    return &place->info;
  }

 private:
  std::span<const MeasuredBubble> bubbles_;
  std::uint32_t running_ = 0;  ///< kernels other than collectives
  bool open_ = false;
};

}  // namespace bubblesim::policy
