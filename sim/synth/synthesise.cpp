#include "sim/synth/synthesise.hpp"

#include <utility>

#include "sim/network/topology.hpp"
#include "sim/synth/collective_table.hpp"
#include "sim/synth/rank_builder.hpp"

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

// Sets both counts of FLOPs.
void count_flops(const JobPlan& plan, SynthesisedJob& out) {
  double layers = 0;
  double again = 0;
  for (const std::uint32_t kind : plan.model.work.layers) {
    const TimedLayer& layer = plan.model.layers[kind];
    again += flops_of(layer.recompute, plan.model);
    layers += flops_of(layer.forward, plan.model) + flops_of(layer.input_grad, plan.model) +
              flops_of(layer.weight_grad, plan.model);
  }
  const PlanSpec& spec = plan.plan();
  const double times = 1.0 * spec.micro_batches() * spec.data * spec.context * spec.tensor;
  out.model_flops = layers * times;
  out.flops = (layers + again) * times;
}

}  // namespace

SynthesisedJob synthesise(const JobPlan& plan) {
  SynthesisedJob out;
  const network::Topology topology(plan.request.cluster);
  out.program.links = topology.links();
  CollectiveTable collectives(topology, out.program);
  for (const std::uint32_t rank : plan.grid.simulated()) {
    const RankPlace place = plan.grid.place(rank);
    out.program.ranks.push_back(RankBuilder(plan, collectives, place).build());
    out.memory.push_back(memory_need(plan, place.pipeline));
  }
  out.world_size = plan.plan().world_size();
  out.fold = plan.grid.fold();
  out.samples = static_cast<double>(plan.plan().global_batch);
  count_flops(plan, out);
  out.program.counters.add(kFoldedRanks, out.world_size - out.program.ranks.size());
  return out;
}

}  // namespace bubblesim::synth
