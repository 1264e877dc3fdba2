#include "sim/synth/tensor_overlap.hpp"

#include <variant>
#include <vector>

#include "sim/synth/timed_model.hpp"

namespace bubblesim::synth {
namespace {

using model::Communication;
using model::KernelWork;
using model::WorkItem;

bool is_transformer_block(const model::LayerWork& layer) {
  return layer.kind == "block" || layer.kind == "expert block";
}

bool is_tensor_reduction(const WorkItem& item) {
  const auto* exchange = std::get_if<Communication>(&item);
  return exchange != nullptr && exchange->axis == model::ParallelAxis::kTensor &&
         exchange->exchange == model::Exchange::kAllReduce;
}

// Of a kernel that can be part of the exchange before it; null: it cannot.
const KernelWork* fusible(const WorkItem& item) {
  const auto* kernel = std::get_if<KernelWork>(&item);
  if (kernel == nullptr) return nullptr;
  const bool streams = kernel->kind == model::KernelKind::kElementwise ||
                       kernel->kind == model::KernelKind::kNormalisation;
  return streams ? kernel : nullptr;
}

void fuse(std::vector<WorkItem>& items, double next_norm) {
  std::vector<WorkItem> out;
  for (WorkItem& item : items) {
    const KernelWork* kernel = fusible(item);
    if (kernel != nullptr && !out.empty() && is_tensor_reduction(out.back())) {
      std::get<Communication>(out.back()).fused_bytes += kernel->bytes;
    } else {
      out.push_back(std::move(item));
    }
  }
  if (!out.empty() && is_tensor_reduction(out.back())) {
    std::get<Communication>(out.back()).fused_bytes += next_norm;
  }
  items = std::move(out);
}

}  // namespace

void fuse_norms(model::ModelWork& work) {
  for (model::LayerWork& layer : work.kinds) {
    if (!is_transformer_block(layer)) continue;
    const double norm =
        begins_with_norm(layer) ? std::get<KernelWork>(layer.forward.front()).bytes : 0;
    fuse(layer.forward, norm);
    fuse(layer.recompute, 0);
  }
}

}  // namespace bubblesim::synth
