#include "sim/synth/synthesise.hpp"

#include <algorithm>
#include <utility>

#include "sim/network/topology.hpp"
#include "sim/synth/collective_table.hpp"
#include "sim/synth/expert_routing.hpp"
#include "sim/synth/lone_iteration.hpp"
#include "sim/synth/precision_check.hpp"
#include "sim/synth/rank_builder.hpp"
#include "sim/synth/rollout.hpp"

namespace bubblesim::synth {
namespace {

double flops_of(const std::vector<TimedItem>& items, const TimedModel& model) {
  double total = 0;
  for (const TimedItem& item : items) {
    if (const auto* kernel = std::get_if<std::uint32_t>(&item)) {
      total += model.kernels[*kernel].flops;
    }
  }
  return total;
}

// Sets both counts of FLOPs, of layers with the mean of the experts' tokens: who holds which expert
// changes no work. Each stage works on its own number of micro-batches.
void count_flops(const ParallelPlan& plan, SynthesisedJob& out) {
  double once = 0;
  double recomputed = 0;
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    const StageLayers& run = plan.stages[s].layers;
    const double times = plan.graph.stages[s].micro_batches;
    for (std::uint32_t i = run.first; i < run.last; ++i) {
      const TimedLayer& layer = plan.model.layers[plan.mean_kinds + plan.kind_of(i)];
      recomputed += times * flops_of(layer.recompute, plan.model);
      once += times * (flops_of(layer.forward, plan.model) +
                       flops_of(layer.input_grad, plan.model) +
                       flops_of(layer.weight_grad, plan.model));
    }
  }
  const PlanSpec& spec = plan.plan();
  const double ranks = 1.0 * spec.data * spec.context * spec.tensor;
  out.model_flops = once * ranks;
  out.flops = (once + recomputed) * ranks;
}

// Ranks with fewer tokens than the busiest one, which stands for them.
std::uint64_t hidden_expert_ranks(const ParallelPlan& plan) {
  if (plan.grid.experts_apart()) return 0;
  const double most = busiest_load(plan.expert_loads);
  const auto fewer = std::ranges::count_if(plan.expert_loads,
                                           [&](double load) { return load < most; });
  return plan.plan().trainers() / plan.expert_loads.size() * static_cast<std::uint64_t>(fewer);
}

// SMs that a plan gives exchanges among tensor ranks, and that these do not hold: each channel is
// one block, and NCCL opens fewer (sim/network, collective_plan.cpp).
std::uint64_t unused_overlap_sms(const ParallelPlan& plan) {
  const auto& overlap = plan.plan().tensor_overlap;
  if (!overlap) return 0;
  const hardware::ClusterSpec& cluster = plan.request.cluster;
  const std::uint32_t opened = plan.plan().tensor > cluster.gpus_per_node
                                   ? cluster.collectives.net_channels
                                   : cluster.collectives.node_channels;
  return overlap->blocks > opened ? overlap->blocks - opened : 0;
}

}  // namespace

SynthesisedJob synthesise(const ParallelPlan& plan) {
  SynthesisedJob out;
  const network::Topology topology(plan.request.cluster);
  out.program.links = topology.links();
  CollectiveTable collectives(topology, out.program);
  std::vector<MemoryNeed> needs;
  for (std::uint32_t p = 0; p < plan.plan().pipeline; ++p) needs.push_back(memory_need(plan, p));
  for (const std::uint32_t rank : plan.grid.simulated()) {
    const RankPlace place = plan.grid.place(rank);
    out.program.ranks.push_back(RankBuilder(plan, collectives, place).build());
    out.memory.push_back(needs[place.pipeline]);
  }
  for (std::uint32_t g = 0; plan.plan().rollout && g < plan.plan().rollout->generators; ++g) {
    out.program.ranks.push_back(generator_program(plan, collectives, g));
    out.memory.push_back(generator_memory(plan));
  }
  out.world_size = plan.plan().world_size();
  out.fold = plan.grid.fold();
  out.samples = static_cast<double>(plan.plan().global_batch);
  count_flops(plan, out);
  count_replaced_precision(plan.request.efficiency, plan.plan().precision, out.program.counters);
  out.program.counters.add(kFoldedRanks, out.world_size - out.program.ranks.size());
  out.program.counters.add(kHiddenExpertRanks, hidden_expert_ranks(plan));
  out.program.counters.add(kUnusedOverlapSms, unused_overlap_sms(plan));
  if (plan.plan().wide_area.mode == WideAreaMode::kAsynchronous) {
    out.program.counters.add(kLateExchanges, late_exchanges(out.program, plan.request.gpu));
  }
  return out;
}

}  // namespace bubblesim::synth
