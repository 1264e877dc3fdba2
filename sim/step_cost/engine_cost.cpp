#include "sim/step_cost/engine_cost.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/input_file.hpp"
#include "sim/hardware/constant_reader.hpp"

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
  for (Batch& batch : batches) {
    batch.graphs = graphs_of(tokens, batch.decodes_only(), sizes);
    batch.padded_tokens = batch.graphs == StepGraphs::kNone ? batch.tokens : padded;
  }
}

/// A batch without useful work, run by an idle member of a data-parallel group.
Batch idle_batch() {
  Batch batch;
  batch.tokens = batch.padded_tokens = batch.group_tokens = batch.sequences = 1;
  batch.decodes = {1};
  return batch;
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

namespace {

constexpr std::uint32_t kLargestGraph = 512;

}  // namespace

StepGraphs graphs_of(std::uint32_t tokens, bool decodes_only, const CaptureSizes& sizes) {
  if (sizes.empty() || tokens > sizes.back()) return StepGraphs::kNone;
  return decodes_only ? StepGraphs::kWhole : StepGraphs::kPieces;
}

std::uint32_t padded_tokens(std::uint32_t tokens, const CaptureSizes& sizes) {
  const auto size = std::lower_bound(sizes.begin(), sizes.end(), tokens);
  return size == sizes.end() ? tokens : *size;
}

CaptureSizes vllm_capture_sizes(const serving::SchedulerSpec& scheduler) {
  const std::uint64_t decoding =
      std::uint64_t{scheduler.max_num_seqs} * (1 + scheduler.speculation.tokens);
  const std::uint64_t most = std::min({2 * decoding, std::uint64_t{kLargestGraph},
                                       std::uint64_t{scheduler.max_num_batched_tokens}});
  CaptureSizes sizes;
  for (std::uint32_t size = 1; size <= most;) {
    sizes.push_back(size);
    if (size < 8) size *= 2;
    else size += size < 256 ? 8 : 16;
  }
  return sizes;
}

void set_batch(const serving::ScheduledStep& step, const CaptureSizes& sizes, Batch& batch) {
  batch.tokens = 0;
  batch.sequences = static_cast<std::uint32_t>(step.sequences.size());
  batch.chunks.clear();
  batch.decodes.clear();
  for (const serving::StepSequence& sequence : step.sequences) {
    batch.tokens += sequence.new_tokens;
    if (sequence.new_tokens == 1) {
      batch.decodes.push_back(sequence.context + 1);
    } else {
      batch.chunks.push_back({sequence.new_tokens, sequence.context});
    }
  }
  batch.padded_tokens = batch.group_tokens = padded_tokens(batch.tokens, sizes);
  batch.graphs = graphs_of(batch.tokens, batch.decodes_only(), sizes);
}

namespace {

constexpr double kActivationBytes = 2;

double link_us(const ServerLink& link, double bytes, double latencies) {
  return 1e6 * (bytes / link.bandwidth.value + latencies * to_seconds(link.latency));
}

/// All-gather, or reduce-scatter.
double half_ring_us(const ServerLink& link, double bytes, double ranks) {
  return ranks <= 1 ? 0 : link_us(link, (ranks - 1) / ranks * bytes, ranks - 1);
}

/// An all-reduce over the GPUs that share a layer.
double reduce_us(const ServerLink& link, double bytes, std::uint32_t ranks) {
  const auto direct = model::server_reduce(bytes, ranks, link.mesh);
  return direct ? link_us(link, direct->port_bytes, direct->stages)
                : 2 * half_ring_us(link, bytes, ranks);
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

namespace {

constexpr Duration kLongestHostTime = std::chrono::seconds(60);

Duration span(ObjectReader& root, std::string_view key) {
  return hardware::constant(root, key).duration("value", {Duration::zero(), kLongestHostTime});
}

}  // namespace

EngineSpec read_engine(ObjectReader& root) {
  EngineSpec out;
  out.first_step = span(root, "first_step");
  out.prepare = span(root, "prepare");
  out.output = span(root, "output");
  out.gpu_memory_utilization = hardware::number(root, "gpu_memory_utilization", "share", {0.01, 1});
  out.reserved = hardware::constant(root, "reserved").bytes("value");
  root.finish();
  return out;
}

CheckedResult<EngineSpec> find_engine(std::string_view name, const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path, find_data_file(name, folder, "engine"));
  BUBBLESIM_ASSIGN_OR_RETURN(EngineSpec out, read_whole_file(path, read_engine));
  out.id = data_file_id(path);
  return out;
}

}  // namespace bubblesim::step_cost
