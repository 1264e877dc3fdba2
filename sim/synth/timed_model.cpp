#include "sim/synth/timed_model.hpp"

#include <algorithm>
#include <utility>

namespace bubblesim::synth {
namespace {

double factor(const KernelSlowdown& slowdown, const model::KernelWork& work) {
  switch (work.kind) {
    case model::KernelKind::kGemm:
    case model::KernelKind::kConvolution:
      return work.gemm.batch > 1 ? slowdown.batched_gemm : slowdown.gemm;
    case model::KernelKind::kAttention: return slowdown.attention;
    default: return slowdown.streaming;
  }
}

Duration sum(const std::vector<TimedItem>& items, const std::vector<TimedKernel>& kernels) {
  Duration total{};
  for (const TimedItem& item : items) {
    if (const auto* kernel = std::get_if<std::uint32_t>(&item)) total += kernels[*kernel].duration;
  }
  return total;
}

}  // namespace

bool begins_with_norm(const model::LayerWork& layer) {
  if (layer.forward.empty()) return false;
  const auto* kernel = std::get_if<model::KernelWork>(&layer.forward.front());
  return kernel != nullptr && kernel->kind == model::KernelKind::kNormalisation;
}

program::LaunchNeeds needs_of(const model::Launch& launch) {
  return {.blocks = std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2],
          .threads_per_block = launch.block[0] * launch.block[1] * launch.block[2],
          .registers_per_thread = launch.registers_per_thread,
          .shared_memory_per_block = launch.shared_memory_bytes};
}

// The share of DRAM bandwidth is what the kernel moves in its own time; the other shares are
// those of its class (configs/devices).
TimedKernel KernelTimer::time(const model::KernelWork& work) const {
  const model::KernelTime timed = model::time_kernel(work, gpu_, efficiency_, sm_carveout_);
  TimedKernel out;
  out.name = work.name;
  out.duration = scale(timed.duration, factor(slowdown_, work));
  out.launch = timed.launch;
  out.flops = work.flops;
  out.profile = program::profile_kernel(
      needs_of(timed.launch),
      timed.memory_bound ? program::KernelClass::kMemory : program::KernelClass::kCompute, gpu_);
  out.profile.dram_share = program::dram_share(work.bytes, out.duration, gpu_);
  return out;
}

std::vector<TimedItem> KernelTimer::time(const std::vector<model::WorkItem>& items,
                                         std::vector<TimedKernel>& kernels) const {
  std::vector<TimedItem> out;
  out.reserve(items.size());
  for (const model::WorkItem& item : items) {
    if (const auto* exchange = std::get_if<model::Communication>(&item)) {
      out.emplace_back(*exchange);
      continue;
    }
    kernels.push_back(time(std::get<model::KernelWork>(item)));
    out.emplace_back(static_cast<std::uint32_t>(kernels.size() - 1));
  }
  return out;
}

std::uint32_t append_kinds(TimedModel& model, model::ModelWork work, const KernelTimer& timer,
                           model::BackwardExchanges exchanges) {
  const auto first = static_cast<std::uint32_t>(model.layers.size());
  for (model::LayerWork& kind : work.kinds) {
    TimedLayer layer;
    layer.forward = timer.time(kind.forward, model.kernels);
    layer.recompute = timer.time(kind.recompute, model.kernels);
    layer.input_grad = timer.time(kind.input_grad, model.kernels);
    layer.weight_grad = timer.time(kind.weight_grad, model.kernels);
    layer.backward = timer.time(model::backward_items(kind, exchanges), model.kernels);
    layer.norm_first = begins_with_norm(kind);
    layer.forward_time = sum(layer.forward, model.kernels);
    layer.backward_time =
        sum(layer.recompute, model.kernels) + sum(layer.backward, model.kernels);
    model.layers.push_back(std::move(layer));
    model.work.kinds.push_back(std::move(kind));
  }
  return first;
}

TimedModel time_model(model::ModelWork work, const KernelTimer& timer,
                      model::BackwardExchanges exchanges) {
  TimedModel out;
  out.work.layers = work.layers;
  out.work.inputs = work.inputs;
  (void)append_kinds(out, std::move(work), timer, exchanges);
  return out;
}

}  // namespace bubblesim::synth
