#include "sim/step_cost/layout.hpp"

#include <cmath>

#include "sim/model/layer_work.hpp"

namespace bubblesim::step_cost {
namespace {

constexpr double kActivationBytes = 2;

/// All-gather, or reduce-scatter.
double half_ring_us(const ServerLink& link, double bytes, double ranks) {
  if (ranks <= 1) return 0;
  const double transfer = (ranks - 1) / ranks * bytes / link.bandwidth.value;
  return 1e6 * (transfer + (ranks - 1) * to_seconds(link.latency));
}

/// An all-reduce over the GPUs that share a layer.
double reduce_us(const ServerLink& link, double bytes, double ranks) {
  if (ranks == 2 && bytes < model::kLeastRingBytes) {
    return 1e6 * (bytes / link.bandwidth.value + to_seconds(link.latency));
  }
  return 2 * half_ring_us(link, bytes, ranks);
}

double blocks_with_experts(const model::TransformerSpec& model) {
  if (!model.mixture) return 0;
  return std::ceil((model.layers - model.mixture->first_dense) /
                   static_cast<double>(model.mixture->interval));
}

}  // namespace

double exchange_us(const model::TransformerSpec& model, const ServerLayout& layout, double tokens,
                   double group_tokens, double sequences) {
  const double row = kActivationBytes * static_cast<double>(model.hidden);
  const double logits = kActivationBytes * static_cast<double>(model.vocabulary);
  const double expert_ranks = layout.expert_ranks();
  const double mixtures = blocks_with_experts(model);
  // A mixture over several GPUs reduces what comes of it itself.
  const double reduces = 1 + 2.0 * model.layers - (expert_ranks > 1 ? mixtures : 0);
  const bool scattered = layout.data > 1 && expert_ranks > 1;
  const double regather = scattered ? half_ring_us(layout.link, tokens * row, layout.tensor) : 0;
  return reduces * reduce_us(layout.link, tokens * row, layout.tensor) +
         half_ring_us(layout.link, sequences * logits, layout.tensor) +
         mixtures * (2 * half_ring_us(layout.link, group_tokens * row, expert_ranks) + regather);
}

}  // namespace bubblesim::step_cost
