// One step of a pipeline schedule: what a rank does to which micro-batch of which stage.
//
// A stage is a run of layers. A rank may hold several; they are then also called chunks, or
// virtual stages. Text follows the grammar of PyTorch's torch.distributed.pipelining: "2F0" is
// the forward of micro-batch 0 on stage 2; I, W and B are the backward's input-gradient half, its
// weight-gradient half and the whole; "(0F7;7B3)OVERLAP_F_B" is both at once.
#pragma once

#include <cstdint>
#include <string>

namespace bubblesim::pipeline {

enum class ActionKind : std::uint8_t {
  kForward,     ///< F
  kInputGrad,   ///< I: half of a backward, on which the predecessor waits
  kWeightGrad,  ///< W: the other half, on which no other stage waits
  kBackward,    ///< B: I and W as one step
  kOverlapped,  ///< F of one stage and B of another at once (DualPipe)
};

struct Action {
  ActionKind kind = ActionKind::kForward;
  std::uint32_t stage = 0;              ///< kOverlapped: of the forward part
  std::uint32_t micro_batch = 0;        ///< kOverlapped: of the forward part
  std::uint32_t other_stage = 0;        ///< of the backward part; 0 unless kOverlapped
  std::uint32_t other_micro_batch = 0;  ///< of the backward part; 0 unless kOverlapped

  /// Whether a forward is (part of) it.
  [[nodiscard]] constexpr bool has_forward() const {
    return kind == ActionKind::kForward || kind == ActionKind::kOverlapped;
  }
  /// Whether it yields the gradient that the stage's producers wait for.
  [[nodiscard]] constexpr bool has_input_grad() const {
    return kind == ActionKind::kInputGrad || kind == ActionKind::kBackward ||
           kind == ActionKind::kOverlapped;
  }
  /// Stage and micro-batch of the backward part; of W too.
  [[nodiscard]] constexpr std::uint32_t backward_stage() const {
    return kind == ActionKind::kOverlapped ? other_stage : stage;
  }
  [[nodiscard]] constexpr std::uint32_t backward_micro_batch() const {
    return kind == ActionKind::kOverlapped ? other_micro_batch : micro_batch;
  }
  friend bool operator==(const Action&, const Action&) = default;
};

[[nodiscard]] constexpr Action forward(std::uint32_t stage, std::uint32_t micro_batch) {
  return {ActionKind::kForward, stage, micro_batch, 0, 0};
}
[[nodiscard]] constexpr Action input_grad(std::uint32_t stage, std::uint32_t micro_batch) {
  return {ActionKind::kInputGrad, stage, micro_batch, 0, 0};
}
[[nodiscard]] constexpr Action weight_grad(std::uint32_t stage, std::uint32_t micro_batch) {
  return {ActionKind::kWeightGrad, stage, micro_batch, 0, 0};
}
[[nodiscard]] constexpr Action backward(std::uint32_t stage, std::uint32_t micro_batch) {
  return {ActionKind::kBackward, stage, micro_batch, 0, 0};
}
[[nodiscard]] constexpr Action overlapped(std::uint32_t forward_stage,
                                          std::uint32_t forward_micro_batch,
                                          std::uint32_t backward_stage,
                                          std::uint32_t backward_micro_batch) {
  return {ActionKind::kOverlapped, forward_stage, forward_micro_batch, backward_stage,
          backward_micro_batch};
}

/// 'F', 'I', 'W', 'B'; 'O' for kOverlapped.
[[nodiscard]] char letter(ActionKind kind);

/// "0F0", "(0F7;7B3)OVERLAP_F_B".
[[nodiscard]] std::string action_text(const Action& action);

}  // namespace bubblesim::pipeline
