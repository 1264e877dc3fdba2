#include "sim/model/model_spec.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace bubblesim::model {

ModelSpec gpt(std::uint64_t hidden, std::uint32_t layers, std::uint32_t heads,
              std::uint64_t vocabulary, std::uint64_t sequence) {
  TransformerSpec spec;
  spec.hidden = hidden;
  spec.layers = layers;
  spec.heads = heads;
  spec.kv_heads = heads;
  spec.head_size = heads > 0 && hidden % heads == 0 ? hidden / heads : 0;
  spec.ffn = 4 * hidden;
  spec.vocabulary = vocabulary;
  spec.max_sequence = sequence;
  return ModelSpec{"gpt h" + std::to_string(hidden) + " l" + std::to_string(layers), spec};
}

double busy_experts(const MixtureSpec& mixture, double ranks, double tokens) {
  const double idle = std::pow(1.0 - static_cast<double>(mixture.top_k) / mixture.experts, tokens);
  return mixture.experts / ranks * (1 - idle);
}

Result<void> check_sequence(const ModelSpec& model, std::uint64_t tokens) {
  const auto* spec = std::get_if<TransformerSpec>(&model.network);
  if (spec == nullptr || spec->positions != Positions::kLearned || tokens <= spec->max_sequence) {
    return {};
  }
  return fail("found " + std::to_string(tokens) + " tokens; " + model.name +
              " has positions for " + std::to_string(spec->max_sequence));
}

bool has_experts(const TransformerSpec& spec, std::uint32_t layer) {
  if (!spec.mixture || layer < spec.mixture->first_dense) return false;
  const std::uint32_t interval = std::max(spec.mixture->interval, 1U);
  return (layer - spec.mixture->first_dense) % interval == interval - 1;
}

}  // namespace bubblesim::model
