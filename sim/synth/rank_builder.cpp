#include "sim/synth/rank_builder.hpp"

#include <algorithm>
#include <cmath>

#include "sim/synth/rank_memory.hpp"

namespace bubblesim::synth {
namespace {

using pipeline::Action;
using pipeline::ActionKind;

bool completes_gradients(const Action& action) {
  return action.kind == ActionKind::kBackward || action.kind == ActionKind::kWeightGrad ||
         action.kind == ActionKind::kOverlapped;
}

}  // namespace

RankBuilder::RankBuilder(const JobPlan& plan, CollectiveTable& collectives,
                         const RankPlace& place)
    : plan_(plan), emitter_(plan, collectives, place), transfers_(emitter_),
      gradients_(emitter_), last_gradient_(plan.stages.size(), 0) {
  const auto& actions = plan.schedule.actions[place.pipeline];
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (completes_gradients(actions[i])) last_gradient_[actions[i].backward_stage()] = i;
  }
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    kept_bytes_.push_back(activation_bytes(plan, s));
  }
}

workload::Program RankBuilder::build() {
  const WideAreaPlan& wide = plan_.plan().wide_area;
  const std::uint32_t iterations =
      wide.mode == WideAreaMode::kEveryIteration ? 1 : wide.every;
  for (std::uint32_t i = 0; i < iterations; ++i) iterate(i);
  return emitter_.writer().finish();
}

void RankBuilder::iterate(std::uint32_t iteration) {
  ProgramWriter& writer = emitter_.writer();
  writer.begin_iteration();
  mark_memory();
  writer.pause(plan_.request.software.iteration);
  const auto& actions = plan_.schedule.actions[emitter_.place().pipeline];
  for (std::size_t i = 0; i < actions.size(); ++i) {
    writer.pause(plan_.request.software.action);
    run(i);
    // Not the whole device: a send ends when its receiver has come to it.
    wait_after(ComputeWait::kAction);
  }
  gradients_.finish();
  gradients_.step(iteration);
  // An exchange between regions that nobody waits for runs on into the next iteration.
  if (plan_.plan().wide_area.mode == WideAreaMode::kAsynchronous) {
    writer.wait_for(emitter_.last_compute());
  } else {
    writer.wait_for_device();
  }
}

void RankBuilder::wait_after(ComputeWait what) {
  if (plan_.request.software.compute_wait != what) return;
  emitter_.writer().wait_for(emitter_.last_compute());
}

void RankBuilder::run(std::size_t number) {
  const Action& action = plan_.schedule.actions[emitter_.place().pipeline][number];
  last_pass_ = completes_gradients(action) && last_gradient_[action.backward_stage()] == number;
  switch (action.kind) {
    case ActionKind::kForward: return forward(action);
    case ActionKind::kBackward: return backward(action);
    case ActionKind::kInputGrad: return input_grad(action);
    case ActionKind::kWeightGrad: return weight_grad(action);
    case ActionKind::kOverlapped: return overlapped(action);
  }
}

void RankBuilder::forward(const Action& action) {
  hold(action.stage);
  transfers_.receive_inputs(action.stage, action.micro_batch);
  const Layers layers = forward_layers(action.stage);
  for (std::size_t i = 0; i < layers.size(); ++i) forward_layer(layers, i);
  transfers_.send_outputs(action.stage, action.micro_batch);
}

void RankBuilder::backward(const Action& action) {
  transfers_.receive_gradients(action.stage, action.micro_batch);
  const Layers layers = backward_layers(action.stage);
  for (std::size_t i = 0; i < layers.size(); ++i) backward_layer(layers, i);
  transfers_.send_gradients(action.stage, action.micro_batch);
  release(action.stage);
}

void RankBuilder::input_grad(const Action& action) {
  transfers_.receive_gradients(action.stage, action.micro_batch);
  const Layers layers = backward_layers(action.stage);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    gradients_.before_layer(layers, i);
    emitter_.emit(timed(layers[i]).recompute, Pass::kForward);
    emitter_.emit(timed(layers[i]).input_grad, Pass::kBackward);
  }
  transfers_.send_gradients(action.stage, action.micro_batch);
}

void RankBuilder::weight_grad(const Action& action) {
  for (const std::uint32_t layer : backward_layers(action.stage)) {
    emitter_.emit(timed(layer).weight_grad, Pass::kBackward);
    gradients_.after_backward(layer);
    if (last_pass_) gradients_.layer_done(layer);
  }
  release(action.stage);
}

// Layer about layer: while one part's exchange is under way the other part computes (DualPipe).
void RankBuilder::overlapped(const Action& action) {
  hold(action.stage);
  transfers_.receive_inputs(action.stage, action.micro_batch);
  emitter_.select_lane(1);
  transfers_.receive_gradients(action.other_stage, action.other_micro_batch);
  const Layers ahead = forward_layers(action.stage);
  const Layers back = backward_layers(action.other_stage);
  for (std::size_t i = 0; i < std::max(ahead.size(), back.size()); ++i) {
    emitter_.select_lane(0);
    if (i < ahead.size()) forward_layer(ahead, i);
    emitter_.select_lane(1);
    if (i < back.size()) backward_layer(back, i);
  }
  transfers_.send_gradients(action.other_stage, action.other_micro_batch);
  emitter_.select_lane(0);
  transfers_.send_outputs(action.stage, action.micro_batch);
  release(action.other_stage);
}

void RankBuilder::forward_layer(const Layers& layers, std::size_t at) {
  gradients_.before_layer(layers, at);
  emitter_.emit(timed(layers[at]).forward, Pass::kForward);
  wait_after(ComputeWait::kLayer);
}

void RankBuilder::backward_layer(const Layers& layers, std::size_t at) {
  const TimedLayer& layer = timed(layers[at]);
  gradients_.before_layer(layers, at);
  emitter_.emit(layer.recompute, Pass::kForward);
  emitter_.emit(layer.backward, Pass::kBackward);
  wait_after(ComputeWait::kLayer);
  gradients_.after_backward(layers[at]);
  if (last_pass_) gradients_.layer_done(layers[at]);
}

void RankBuilder::hold(std::uint32_t stage) {
  held_bytes_ += kept_bytes_[stage];
  mark_memory();
}

void RankBuilder::release(std::uint32_t stage) {
  held_bytes_ -= kept_bytes_[stage];
  mark_memory();
}

void RankBuilder::mark_memory() {
  const double fixed = static_memory(plan_, emitter_.place().pipeline).total();
  emitter_.writer().mark_memory(static_cast<std::uint64_t>(std::llround(fixed + held_bytes_)));
}

RankBuilder::Layers RankBuilder::forward_layers(std::uint32_t stage) const {
  Layers out;
  const StageLayers& run = plan_.stages[stage].layers;
  for (std::uint32_t i = run.first; i < run.last; ++i) out.push_back(i);
  return out;
}

RankBuilder::Layers RankBuilder::backward_layers(std::uint32_t stage) const {
  Layers out = forward_layers(stage);
  std::reverse(out.begin(), out.end());
  return out;
}

const TimedLayer& RankBuilder::timed(std::uint32_t layer) const {
  return plan_.model.layers[plan_.kind_of(layer)];
}

}  // namespace bubblesim::synth
