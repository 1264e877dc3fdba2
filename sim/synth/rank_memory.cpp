#include "sim/synth/rank_memory.hpp"

#include <algorithm>
#include <numeric>

#include "sim/base/check.hpp"
#include "sim/synth/rollout.hpp"
#include "sim/synth/transfers.hpp"

namespace bubblesim::synth {
namespace {

// Activations of layers under way to the host, and of those that have come back ahead of their use.
double host_buffers(const ParallelPlan& plan, std::uint32_t pipeline) {
  const HostPlan& host = plan.plan().host;
  if (host.activations == 0) return 0;
  double largest = 0;
  for_each_layer(plan, pipeline, [&](std::uint32_t layer) {
    largest =
        std::max(largest, plan.model.work.kinds[plan.kind_of(layer)].activation_bytes);
  });
  return 2.0 * (host.ahead + 1.0) * host.activations * largest;
}

Elements operator+(const Elements& a, const Elements& b) {
  return {a.shared + b.shared, a.experts + b.experts};
}

Elements elements_of(const ParallelPlan& plan, const StageLayers& layers) {
  Elements out;
  for (std::uint32_t i = layers.first; i < layers.last; ++i) {
    out = out + elements_of_layer(plan, i);
  }
  return out;
}

/// Elements of the gradients that a replica holds of its `whole` ones, of which `part` is its own.
double held_gradients(const ParallelPlan& plan, std::uint32_t pipeline, double whole,
                      double part) {
  switch (scattering_of(plan.plan())) {
    case Scattering::kAtEnd: return whole;
    case Scattering::kEachMicroBatch: return part;
    case Scattering::kEachRun: break;
  }
  double largest = 0;  // stage, whose run is under way
  for (const Stage& stage : plan.stages) {
    if (stage.pipeline != pipeline) continue;
    const Elements held = elements_of(plan, stage.layers);
    largest = std::max(largest, held.shared + held.experts);
  }
  return std::min(whole, part + largest);
}

}  // namespace

double split_over_replicas(const ParallelPlan& plan, const Elements& elements) {
  return elements.shared / plan.grid.replicas({}).group.size() +
         elements.experts / plan.grid.expert_replicas({}).group.size();
}

double sum(const std::vector<double>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), 0.0);
}

Elements elements_of_layer(const ParallelPlan& plan, std::uint32_t layer) {
  const model::LayerWork& work = plan.model.work.kinds[plan.kind_of(layer)];
  return {sum(work.parameter_tensors) + (plan.embeddings_apart() ? sum(work.shared_tensors) : 0),
          sum(work.expert_tensors)};
}

Elements elements_of(const ParallelPlan& plan, std::uint32_t pipeline) {
  Elements out;
  for (const Stage& stage : plan.stages) {
    if (stage.pipeline == pipeline) out = out + elements_of(plan, stage.layers);
  }
  return out;
}

double own_elements(const ParallelPlan& plan, std::uint32_t pipeline) {
  const Elements elements = elements_of(plan, pipeline);
  if (plan.plan().sharding != Sharding::kNone) return split_over_replicas(plan, elements);
  return elements.shared + elements.experts;
}

Scattering scattering_of(const PlanSpec& plan) {
  if (plan.sharding == Sharding::kParameters) return Scattering::kEachMicroBatch;
  const bool parts = plan.sharding == Sharding::kGradients &&
                     plan.gradients.sync == GradientSync::kOverlapped;
  if (!parts) return Scattering::kAtEnd;
  return plan.pipeline > 1 ? Scattering::kEachRun : Scattering::kEachMicroBatch;
}

StaticMemory static_memory(const ParallelPlan& plan, std::uint32_t pipeline) {
  const PlanSpec& spec = plan.plan();
  const Elements elements = elements_of(plan, pipeline);
  const double whole = elements.shared + elements.experts;
  const double part = split_over_replicas(plan, elements);
  const model::OptimizerMemory memory = model::optimizer_memory(spec.optimizer);
  StaticMemory out;
  const double kept = spec.parameters.primary > 0 ? whole / spec.parameters.primary : part;
  out.parameters = memory.weights * (spec.sharding == Sharding::kParameters ? kept : whole);
  if (spec.parameters.secondary > 0) {
    out.parameters += memory.weights * elements.shared / spec.parameters.secondary;
  }
  out.gradients = memory.gradients * held_gradients(plan, pipeline, whole, part);
  out.optimizer = memory.states * (spec.sharding != Sharding::kNone ? part : whole);
  if (updates_on_host(spec)) out.optimizer = 0;
  return out;
}

KeptBytes activation_bytes(const ParallelPlan& plan, std::uint32_t stage) {
  KeptBytes out;
  const StageLayers& layers = plan.stages[stage].layers;
  for (std::uint32_t i = layers.first; i < layers.last; ++i) {
    const model::LayerWork& work = plan.model.work.kinds[plan.kind_of(i)];
    out.forward += work.activation_bytes * (1 - plan.plan().host.activations);
    out.after_input_grad += work.weight_grad_bytes;
  }
  return out;
}

HeldActivations::HeldActivations(const ParallelPlan& plan) {
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    kept_.push_back(activation_bytes(plan, s));
  }
}

void HeldActivations::begin_action(const pipeline::Action& action) {
  if (action.has_forward()) bytes_ += kept_[action.stage].forward;
}

void HeldActivations::end_action(const pipeline::Action& action) {
  const std::uint32_t stage = action.backward_stage();
  switch (action.kind) {
    case pipeline::ActionKind::kForward: return;
    case pipeline::ActionKind::kInputGrad:
      bytes_ += kept_[stage].after_input_grad - kept_[stage].forward;
      return;
    case pipeline::ActionKind::kWeightGrad: bytes_ -= kept_[stage].after_input_grad; return;
    case pipeline::ActionKind::kBackward:
    case pipeline::ActionKind::kOverlapped: bytes_ -= kept_[stage].forward; return;
  }
}

double working_bytes(const ParallelPlan& plan, std::uint32_t pipeline) {
  const PlanSpec& spec = plan.plan();
  double most = 0;
  double largest = 0;
  for_each_layer(plan, pipeline, [&](std::uint32_t layer) {
    const Elements elements = elements_of_layer(plan, layer);
    largest = std::max(largest, elements.shared + elements.experts);
    most = std::max(most, plan.model.work.kinds[plan.kind_of(layer)].working_bytes);
  });
  most += host_buffers(plan, pipeline);
  if (spec.sharding != Sharding::kParameters) return most;
  const model::OptimizerMemory memory = model::optimizer_memory(spec.optimizer);
  return most + largest * (memory.weights * (1 + spec.gradients.prefetch) + memory.gradients);
}

double own_rollout_cache(const ParallelPlan& plan) {
  if (!plan.plan().rollout || plan.plan().rollout->generators > 0) return 0;
  const auto cache = rollout_cache_bytes(plan.request);
  BUBBLESIM_CHECK(cache.has_value(), "a checked rollout has keys and values");
  return *cache;
}

MemoryNeed memory_need(const ParallelPlan& plan, std::uint32_t pipeline) {
  MemoryNeed need{.fixed = static_memory(plan, pipeline), .working = working_bytes(plan, pipeline)};
  HeldActivations held(plan);
  for (const pipeline::Action& action : plan.schedule.actions[pipeline]) {
    held.begin_action(action);
    need.activations = std::max(need.activations, held.bytes());
    held.end_action(action);
    need.activations = std::max(need.activations, held.bytes());
  }
  need.activations = std::max(need.activations, own_rollout_cache(plan));
  return need;
}

}  // namespace bubblesim::synth
