#include "sim/step_cost/engine_cost.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/divide.hpp"
#include "sim/base/input_file.hpp"
#include "sim/hardware/constant_reader.hpp"

namespace bubblesim::step_cost {
namespace {

Duration rounded(double microseconds) { return Duration(std::llround(microseconds * 1000)); }

}  // namespace

EngineCost::EngineCost(KernelTimes& kernels, const model::TransformerSpec& model,
                       const ServerLayout& layout, const EngineSpec& engine,
                       CapturedGraphs captured)
    : kernels_(kernels), model_(model), layout_(layout), engine_(engine),
      captured_(std::move(captured)), idle_(serving::decode_step(captured_.query)) {}

Duration EngineCost::step_time(std::span<const serving::ScheduledStep* const> steps, bool queued) {
  BUBBLESIM_CHECK(!steps.empty(), "a step of a group without members");
  const auto work_of = [this](const serving::ScheduledStep* step) -> const serving::ScheduledStep& {
    return step == nullptr ? idle_ : *step;
  };
  shapes_.clear();
  for (const auto* step : steps) shapes_.push_back(shape_of(work_of(step), captured_));
  serving::launch_alike(shapes_);
  double slowest = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const serving::StepShape& shape = shapes_[i];
    set_batch(work_of(steps[i]), shape, batch_);
    const double us = kernels_.batch_us(batch_) +
                      exchange_us(model_, layout_, shape.padded, shape.group, batch_.sequences);
    slowest = std::max(slowest, us);
  }
  if (model_.mixture) slowest += kernels_.experts_us(shapes_.front().group);
  Duration host = engine_.output;
  if (!queued) host += engine_.prepare;
  if (!std::exchange(has_stepped_, true)) host += engine_.first_step;
  return rounded(slowest) + host;
}

namespace {

constexpr std::uint32_t kLargestGraph = 512;

}  // namespace

serving::StepShape shape_of(std::uint32_t tokens, bool uniform, const CapturedGraphs& captured) {
  const auto size = std::ranges::lower_bound(captured.sizes, tokens);
  if (size == captured.sizes.end()) return {StepGraphs::kNone, tokens, tokens, tokens};
  return {uniform ? StepGraphs::kWhole : StepGraphs::kPieces, tokens, *size, *size};
}

serving::StepShape shape_of(const serving::ScheduledStep& step, const CapturedGraphs& captured) {
  const bool uniform = std::ranges::all_of(step.sequences, [&](const auto& sequence) {
    return sequence.new_tokens == captured.query;
  });
  return shape_of(static_cast<std::uint32_t>(step.totals.tokens()), uniform, captured);
}

CapturedGraphs vllm_graphs(const serving::SchedulerSpec& scheduler) {
  CapturedGraphs out;
  out.query = scheduler.decode_query_len();
  const std::uint64_t most =
      std::min({2 * std::uint64_t{scheduler.max_num_seqs} * out.query,
                std::uint64_t{kLargestGraph}, std::uint64_t{scheduler.max_num_batched_tokens}});
  for (std::uint32_t size = 1; size <= most;) {
    out.sizes.push_back(size);
    if (size < 8) size *= 2;
    else size += size < 256 ? 8 : 16;
  }
  const std::uint32_t largest = out.sizes.back();
  for (std::uint32_t& size : out.sizes) size = divide_up(size, out.query) * out.query;
  std::erase_if(out.sizes, [largest](std::uint32_t size) { return size > largest; });
  out.sizes.erase(std::ranges::unique(out.sizes).begin(), out.sizes.end());
  return out;
}

void set_batch(const serving::ScheduledStep& step, const serving::StepShape& shape, Batch& batch) {
  batch.shape = shape;
  batch.sequences = static_cast<std::uint32_t>(step.sequences.size());
  batch.chunks.clear();
  batch.decodes.clear();
  for (const serving::StepSequence& sequence : step.sequences) {
    if (sequence.new_tokens == 1) {
      batch.decodes.push_back(sequence.context + 1);
    } else {
      batch.chunks.push_back({sequence.new_tokens, sequence.context});
    }
  }
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
