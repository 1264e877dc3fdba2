#include "sim/model/optimizer_work.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/model/work_items.hpp"

namespace bubblesim::model {
namespace {

constexpr double kFp32 = 4.0;
// apex: chunk size 2048 x 32, depth_to_max_blocks 320.
constexpr double kElementsOfLaunch = 65536.0 * 320.0;
constexpr double kMaxElements = 1e13;  // bounds the list: half a million launches

bool has_copies(const OptimizerSpec& spec) { return bytes_of(spec.weights) < kFp32; }

double gradient_bytes(const OptimizerSpec& spec) {
  if (spec.gradients == GradientStore::kAccumulateFp32) return kFp32;
  return bytes_of(stored(spec.weights));
}

void add(std::vector<WorkItem>& items, const std::string& name, double elements,
         double bytes_each, double flops_each) {
  for (double done = 0; done < elements; done += kElementsOfLaunch) {
    items.push_back(stream_kernel(name, KernelKind::kOptimizer,
                                  std::min(kElementsOfLaunch, elements - done), bytes_each,
                                  Precision::kFp32, flops_each));
  }
}

}  // namespace

OptimizerMemory optimizer_memory(const OptimizerSpec& spec) {
  const double moments = spec.kind == Optimizer::kAdam ? 2.0 : 1.0;
  const double copies = has_copies(spec) ? 1.0 : 0.0;
  return {bytes_of(stored(spec.weights)), gradient_bytes(spec), kFp32 * (moments + copies)};
}

Result<std::vector<WorkItem>> optimizer_work(double elements, const OptimizerSpec& spec) {
  if (!(elements >= 0.0) || elements > kMaxElements) {
    return fail("an optimiser over " + std::to_string(elements) +
                " parameters; expected 0 to 1e13");
  }
  std::vector<WorkItem> items;
  const double g = gradient_bytes(spec);
  if (spec.weights == Precision::kFp16) {
    add(items, "gradient unscale", elements, 2.0 * g, 2.0);
  }
  if (spec.clipping == GradientClipping::kByNorm) {
    add(items, "gradient norm", elements, g, 2.0);
    add(items, "gradient clip", elements, 2.0 * g, 1.0);
  }
  // Gradient read; weights and moments read and written.
  if (spec.kind == Optimizer::kAdam) {
    add(items, "adam", elements, g + 6.0 * kFp32, 16.0);
  } else {
    add(items, "sgd momentum", elements, g + 4.0 * kFp32, 5.0);
  }
  if (has_copies(spec)) {
    add(items, "weight copy", elements, kFp32 + bytes_of(stored(spec.weights)), 0.0);
  }
  add(items, "gradient zero", elements, g, 0.0);
  return items;
}

}  // namespace bubblesim::model
