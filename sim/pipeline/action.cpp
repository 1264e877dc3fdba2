#include "sim/pipeline/action.hpp"

namespace bubblesim::pipeline {
namespace {

std::string part(std::uint32_t stage, char kind, std::uint32_t micro_batch) {
  return std::to_string(stage) + kind + std::to_string(micro_batch);
}

}  // namespace

char letter(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward: return 'F';
    case ActionKind::kInputGrad: return 'I';
    case ActionKind::kWeightGrad: return 'W';
    case ActionKind::kBackward: return 'B';
    case ActionKind::kOverlapped: return 'O';
  }
  return '?';
}

std::string action_text(const Action& action) {
  if (action.kind != ActionKind::kOverlapped) {
    return part(action.stage, letter(action.kind), action.micro_batch);
  }
  return "(" + part(action.stage, 'F', action.micro_batch) + ";" +
         part(action.other_stage, 'B', action.other_micro_batch) + ")OVERLAP_F_B";
}

}  // namespace bubblesim::pipeline
