#include "sim/step_cost/engine_cost.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::step_cost {
namespace {

Duration rounded(double microseconds) { return Duration(std::llround(microseconds * 1000)); }

// Members of a group run graphs only where each batch fits into one, and then all run the largest
// of these; else none is padded (vLLM, `coordinate_batch_across_dp` in vllm/v1/worker/dp_utils.py).
void pad_together(std::vector<Batch>& batches, const CaptureSizes& sizes) {
  if (batches.size() < 2) return;
  const std::uint32_t tokens = std::ranges::max_element(batches, {}, &Batch::tokens)->tokens;
  const std::uint32_t padded =
      std::ranges::max_element(batches, {}, &Batch::padded_tokens)->padded_tokens;
  const bool graphs = fits_graph(tokens, sizes);
  for (Batch& batch : batches) {
    batch.padded_tokens = graphs ? padded : batch.tokens;
    batch.in_graph = graphs && batch.decodes_only();
  }
}

}  // namespace

EngineCost::EngineCost(KernelTimes& kernels, const model::TransformerSpec& model,
                       const ServerLayout& layout, const EngineSpec& engine,
                       CaptureSizes capture_sizes)
    : kernels_(kernels), model_(model), layout_(layout), engine_(engine),
      capture_sizes_(std::move(capture_sizes)) {}

Duration EngineCost::step_time(std::span<const serving::ScheduledStep* const> steps, bool queued) {
  BUBBLESIM_CHECK(!steps.empty(), "a step of a group without members");
  batches_.resize(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] == nullptr) batches_[i] = idle_batch();
    else set_batch(*steps[i], capture_sizes_, batches_[i]);
  }
  pad_together(batches_, capture_sizes_);
  std::uint32_t group_tokens = 0;
  for (const Batch& batch : batches_) group_tokens += batch.padded_tokens;
  double slowest = 0;
  for (Batch& batch : batches_) {
    batch.group_tokens = group_tokens;
    const double us = kernels_.batch_us(batch) + exchange_us(model_, layout_, batch.padded_tokens,
                                                             group_tokens, batch.sequences);
    slowest = std::max(slowest, us);
  }
  if (model_.mixture) slowest += kernels_.experts_us(group_tokens);
  Duration host = engine_.output;
  if (!queued) host += engine_.prepare;
  if (!std::exchange(has_stepped_, true)) host += engine_.first_step;
  return rounded(slowest) + host;
}

}  // namespace bubblesim::step_cost
