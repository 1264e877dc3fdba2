#include "sim/synth/rank_memory.hpp"

#include <algorithm>
#include <numeric>

namespace bubblesim::synth {
namespace {

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Adds up something of every layer that the rank holds.
template <class Visit>
void for_each_layer(const JobPlan& plan, std::uint32_t pipeline, Visit visit) {
  for (const Stage& stage : plan.stages) {
    if (stage.pipeline != pipeline) continue;
    for (std::uint32_t i = stage.layers.first; i < stage.layers.last; ++i) {
      visit(plan.model.work.kinds[plan.kind_of(i)]);
    }
  }
}

}  // namespace

Elements elements_of(const JobPlan& plan, std::uint32_t pipeline) {
  Elements out;
  const bool copies_shared = plan.stages.front().pipeline != plan.stages.back().pipeline;
  for_each_layer(plan, pipeline, [&](const model::LayerWork& layer) {
    out.shared += sum(layer.parameter_tensors);
    out.experts += sum(layer.expert_tensors);
    if (copies_shared) out.shared += sum(layer.shared_tensors);
  });
  return out;
}

StaticMemory static_memory(const JobPlan& plan, std::uint32_t pipeline) {
  const PlanSpec& spec = plan.plan();
  const Elements elements = elements_of(plan, pipeline);
  const double replicas = spec.data * spec.context;
  const double expert_replicas = replicas / spec.expert;
  // Bytes of `each` an element, split over replicas from `from` on.
  const auto bytes = [&](double each, Sharding from) {
    const bool split = spec.sharding >= from;
    return each * (elements.shared / (split ? replicas : 1) +
                   elements.experts / (split ? expert_replicas : 1));
  };
  StaticMemory out;
  const model::OptimizerMemory each = model::optimizer_memory(spec.optimizer);
  out.parameters = bytes(each.weights, Sharding::kParameters);
  out.gradients = bytes(each.gradients, Sharding::kGradients);
  out.optimizer = bytes(each.states, Sharding::kOptimizer);
  return out;
}

double activation_bytes(const JobPlan& plan, std::uint32_t stage) {
  const StageLayers& layers = plan.stages[stage].layers;
  double total = 0;
  for (std::uint32_t i = layers.first; i < layers.last; ++i) {
    total += plan.model.work.kinds[plan.kind_of(i)].activation_bytes;
  }
  return total * plan.graph.stages[stage].micro_batch_size;
}

double working_bytes(const JobPlan& plan, std::uint32_t pipeline) {
  double most = 0;
  for_each_layer(plan, pipeline, [&](const model::LayerWork& layer) {
    most = std::max(most, layer.working_bytes);
  });
  return most;
}

MemoryNeed memory_need(const JobPlan& plan, std::uint32_t pipeline) {
  MemoryNeed need;
  need.fixed = static_memory(plan, pipeline);
  need.working = working_bytes(plan, pipeline);
  std::vector<double> kept(plan.stages.size());
  for (std::uint32_t s = 0; s < kept.size(); ++s) kept[s] = activation_bytes(plan, s);
  double held = 0;
  for (const pipeline::Action& action : plan.schedule.actions[pipeline]) {
    if (action.has_forward()) held += kept[action.stage];
    need.activations = std::max(need.activations, held);
    const bool frees = action.kind == pipeline::ActionKind::kBackward ||
                       action.kind == pipeline::ActionKind::kOverlapped ||
                       action.kind == pipeline::ActionKind::kWeightGrad;
    if (frees) held -= kept[action.backward_stage()];
  }
  return need;
}

}  // namespace bubblesim::synth
