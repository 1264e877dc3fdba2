#include "sim/model/layer_work.hpp"

#include <numeric>

namespace bubblesim::model {
namespace {

void mark_overlap(std::vector<WorkItem>& items) {
  if (items.empty()) return;
  if (auto* exchange = std::get_if<Communication>(&items.back())) exchange->overlaps_next = true;
}

}  // namespace

std::vector<WorkItem> backward_items(const LayerWork& layer, BackwardExchanges exchanges) {
  std::vector<WorkItem> out;
  std::size_t weight = 0;
  const bool overlapped = exchanges == BackwardExchanges::kOverlapped;
  // An exchange of one list is followed by an item of the other only where that does not need it.
  for (std::size_t input = 0; input <= layer.input_grad.size(); ++input) {
    bool from_input = input > 0;
    while (weight < layer.weight_grad.size() && layer.weight_grad_after[weight] <= input) {
      if (from_input && overlapped) mark_overlap(out);
      from_input = false;
      out.push_back(layer.weight_grad[weight++]);
    }
    if (input == layer.input_grad.size()) break;
    if (!from_input && overlapped) mark_overlap(out);
    out.push_back(layer.input_grad[input]);
  }
  return out;
}

double flops_of(const std::vector<WorkItem>& items) {
  double sum = 0;
  for (const WorkItem& item : items) {
    if (const auto* kernel = std::get_if<KernelWork>(&item)) sum += kernel->flops;
  }
  return sum;
}

double parameters_of(const LayerWork& layer) {
  const double dense =
      std::accumulate(layer.parameter_tensors.begin(), layer.parameter_tensors.end(), 0.0);
  return std::accumulate(layer.expert_tensors.begin(), layer.expert_tensors.end(), dense);
}

}  // namespace bubblesim::model
