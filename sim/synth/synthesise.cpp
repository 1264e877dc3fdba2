#include "sim/synth/synthesise.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "sim/network/topology.hpp"
#include "sim/synth/collective_table.hpp"
#include "sim/synth/expert_routing.hpp"
#include "sim/synth/find_job.hpp"
#include "sim/synth/gradient_exchange.hpp"
#include "sim/synth/rank_emitter.hpp"
#include "sim/synth/rollout.hpp"
#include "sim/synth/transfers.hpp"
#include "sim/workload/lone_job.hpp"

namespace bubblesim::synth {
namespace {

using pipeline::Action;
using pipeline::ActionKind;

bool completes_gradients(const Action& action) {
  return action.kind == ActionKind::kBackward || action.kind == ActionKind::kWeightGrad ||
         action.kind == ActionKind::kOverlapped;
}

// ---- Builds the program of one rank: its actions of the pipeline schedule, layer by layer, then
// gradients and optimiser, iteration by iteration.

class RankBuilder {
 public:
  RankBuilder(const ParallelPlan& plan, CollectiveTable& collectives, const RankPlace& place)
      : plan_(plan), emitter_(plan, collectives, place), transfers_(emitter_),
        gradients_(emitter_), host_(emitter_), rollout_(emitter_),
        exchanges_(plan.schedule.actions[place.pipeline].size(), LastPass::kNo), held_(plan),
        fixed_bytes_(static_memory(plan, place.pipeline).total()),
        working_bytes_(working_bytes(plan, place.pipeline)) {
    const bool each_run = scattering_of(plan.plan()) == Scattering::kEachRun;
    const auto& actions = plan.schedule.actions[place.pipeline];
    std::vector<bool> followed(plan.stages.size(), false);
    std::size_t next = plan.stages.size();  // stage of the backward pass that follows
    for (std::size_t i = actions.size(); i-- > 0;) {
      if (!completes_gradients(actions[i])) continue;
      const std::size_t stage = actions[i].backward_stage();
      const bool last = each_run ? stage != next : !followed[stage];
      exchanges_[i] = last ? LastPass::kYes : LastPass::kNo;
      followed[stage] = true;
      next = stage;
    }
  }

  /// Once.
  program::Program build() {
    const WideAreaPlan& wide = plan_.plan().wide_area;
    std::uint32_t iterations = wide.mode == WideAreaMode::kEveryIteration
                                   ? std::max(plan_.plan().host.checkpoint_every, 1U)
                                   : wide.interval;
    if (plan_.plan().rollout) iterations = plan_.plan().rollout->rounds;
    for (std::uint32_t i = 0; i < iterations; ++i) iterate(i);
    return emitter_.writer().finish();
  }

 private:
  using Layers = std::vector<std::uint32_t>;  ///< into ModelWork::layers, in the order of use

  void iterate(std::uint32_t iteration) {
    ProgramWriter& writer = emitter_.writer();
    writer.begin_iteration();
    mark_memory(0);
    writer.pause(plan_.request.software.iteration);
    begin_rollout(iteration);
    transfers_.begin_iteration(iteration);
    host_.begin_iteration(iteration);
    const auto& actions = plan_.schedule.actions[emitter_.place().pipeline];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      writer.pause(plan_.request.software.action);
      run(i);
      // Not the whole device: a send ends when its receiver has come to it.
      wait_after(ComputeWait::kAction);
    }
    gradients_.finish();
    host_.before_step();
    gradients_.step(iteration, host_);
    // An asynchronous exchange between regions runs on into the next iteration.
    if (plan_.plan().wide_area.mode == WideAreaMode::kAsynchronous) {
      wait_for_compute();
    } else {
      writer.wait_for_device();
    }
    rollout_.end(iteration);
  }

  // The room for a backward pass stays taken while responses are generated, as memory_need()
  // counts.
  void begin_rollout(std::uint32_t iteration) {
    const double cache = own_rollout_cache(plan_);
    if (cache > 0) mark_memory(cache + working_bytes_);
    rollout_.begin(iteration);
    if (cache > 0) mark_memory(0);
  }

  void wait_after(ComputeWait what) {
    if (plan_.request.software.compute_wait == what) wait_for_compute();
  }

  void wait_for_compute() {
    const std::uint32_t last = emitter_.last_compute();
    if (last != program::kNoIndex) emitter_.writer().wait_for(last);
  }

  void run(std::size_t number) {
    const Action& action = plan_.schedule.actions[emitter_.place().pipeline][number];
    last_pass_ = exchanges_[number];
    held_.begin_action(action);
    mark_memory(action.kind == ActionKind::kForward ? 0 : working_bytes_);
    switch (action.kind) {
      case ActionKind::kForward: forward(action); break;
      case ActionKind::kBackward: backward(action); break;
      case ActionKind::kInputGrad: input_grad(action); break;
      case ActionKind::kWeightGrad: weight_grad(action); break;
      case ActionKind::kOverlapped: overlapped(action); break;
    }
    held_.end_action(action);
    if (action.kind != ActionKind::kForward) mark_memory(0);
  }

  void forward(const Action& action) {
    transfers_.receive_inputs(action.stage, action.micro_batch);
    const Layers layers = forward_layers(action.stage);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      forward_layer(layers, i, action.micro_batch);
    }
    emitter_.join_parts();
    transfers_.send_outputs(action.stage, action.micro_batch);
  }

  void backward(const Action& action) {
    transfers_.receive_gradients(action.stage, action.micro_batch);
    const Layers layers = backward_layers(action.stage);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      backward_layer(layers, i, action.micro_batch);
    }
    emitter_.join_parts();
    gradients_.end_pass(last_pass_);
    transfers_.send_gradients(action.stage, action.micro_batch);
  }

  void input_grad(const Action& action) {
    transfers_.receive_gradients(action.stage, action.micro_batch);
    const Layers layers = backward_layers(action.stage);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      pass_back(layers, i, action.micro_batch, &TimedLayer::input_grad);
    }
    emitter_.join_parts();
    transfers_.send_gradients(action.stage, action.micro_batch);
  }

  void weight_grad(const Action& action) {
    for (const std::uint32_t layer : backward_layers(action.stage)) {
      emit(layer, &TimedLayer::weight_grad, HostPass::kBackward);
      gradients_.after_backward(layer, last_pass_);
    }
    emitter_.join_parts();
    gradients_.end_pass(last_pass_);
  }

  // Layer about layer: while one part's exchange is under way the other part computes (DualPipe).
  void overlapped(const Action& action) {
    transfers_.receive_inputs(action.stage, action.micro_batch);
    emitter_.select_lane(1);
    transfers_.receive_gradients(action.other_stage, action.other_micro_batch);
    const Layers ahead = forward_layers(action.stage);
    const Layers back = backward_layers(action.other_stage);
    for (std::size_t i = 0; i < std::max(ahead.size(), back.size()); ++i) {
      emitter_.select_lane(0);
      if (i < ahead.size()) forward_layer(ahead, i, action.micro_batch);
      emitter_.select_lane(1);
      if (i < back.size()) backward_layer(back, i, action.other_micro_batch);
    }
    emitter_.join_parts();
    transfers_.send_gradients(action.other_stage, action.other_micro_batch);
    emitter_.select_lane(0);
    emitter_.join_parts();
    transfers_.send_outputs(action.stage, action.micro_batch);
    gradients_.end_pass(last_pass_);
  }

  // The layer's items but for the first `done`; where micro-batches are in two parts, items of both
  // alternate.
  void emit(std::uint32_t layer, std::vector<TimedItem> TimedLayer::* items, HostPass pass,
            std::size_t done = 0) {
    const auto rest = [&](const TimedLayer& timed) {
      return std::span(timed.*items).subspan(done);
    };
    if (plan_.part_kinds.empty()) return emitter_.emit(rest(timed(layer)), pass);
    emitter_.emit_in_turns(rest(part(layer, 0)), rest(part(layer, 1)), pass);
  }

  // Whether the last exchange of the layer before has the layer's first norm fused into it.
  bool norm_is_done(const Layers& layers, std::size_t at) const {
    const auto& overlap = plan_.plan().tensor_overlap;
    if (at == 0 || !overlap || !overlap->fused_norm) return false;
    const auto* last =
        std::get_if<model::Communication>(&part(layers[at - 1], 0).forward.back());
    return last != nullptr && last->fused_bytes > 0 && timed(layers[at]).norm_first;
  }

  void forward_layer(const Layers& layers, std::size_t at, std::uint32_t micro_batch) {
    gradients_.before_layer(layers, at, HostPass::kForward);
    host_.before_forward(layers[at]);
    emit(layers[at], &TimedLayer::forward, HostPass::kForward, norm_is_done(layers, at) ? 1 : 0);
    host_.after_forward(layers[at], micro_batch);
    host_.after_pass();
    wait_after(ComputeWait::kLayer);
  }

  void backward_layer(const Layers& layers, std::size_t at, std::uint32_t micro_batch) {
    pass_back(layers, at, micro_batch, &TimedLayer::backward);
    wait_after(ComputeWait::kLayer);
    gradients_.after_backward(layers[at], last_pass_);
  }

  void pass_back(const Layers& layers, std::size_t at, std::uint32_t micro_batch,
                 std::vector<TimedItem> TimedLayer::* items) {
    gradients_.before_layer(layers, at, HostPass::kBackward);
    host_.before_backward(layers, at, micro_batch);
    emit(layers[at], &TimedLayer::recompute, HostPass::kForward);
    emit(layers[at], items, HostPass::kBackward);
    host_.after_pass();
  }

  // Marks the memory that the rank holds from the next operation on: its constant part,
  // activations, and `besides`.
  void mark_memory(double besides) {
    emitter_.writer().mark_memory(
        static_cast<std::uint64_t>(std::llround(fixed_bytes_ + held_.bytes() + besides)));
  }

  Layers forward_layers(std::uint32_t stage) const {
    Layers out;
    const StageLayers& run = plan_.stages[stage].layers;
    for (std::uint32_t i = run.first; i < run.last; ++i) out.push_back(i);
    return out;
  }

  Layers backward_layers(std::uint32_t stage) const {
    Layers out = forward_layers(stage);
    std::reverse(out.begin(), out.end());
    return out;
  }

  const TimedLayer& timed(std::uint32_t layer) const {
    return plan_.model.layers[plan_.own_kind(layer, emitter_.place())];
  }

  // The timed layer of part `number` of a micro-batch.
  const TimedLayer& part(std::uint32_t layer, std::size_t number) const {
    return plan_.model.layers[plan_.part_kinds[number] + plan_.own_kind(layer, emitter_.place())];
  }

  const ParallelPlan& plan_;
  RankEmitter emitter_;
  StageTransfers transfers_;
  GradientExchange gradients_;
  HostTransfers host_;
  Rollout rollout_;
  std::vector<LastPass> exchanges_;         ///< by action
  HeldActivations held_;
  double fixed_bytes_;
  double working_bytes_;                    ///< MemoryNeed::working, while a backward pass runs
  LastPass last_pass_ = LastPass::kNo;      ///< of the present action
};

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
// one block, and NCCL opens fewer (sim/network, topology.cpp).
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
    out.late_exchanges = late_exchanges(out.program, plan.request.gpu);
    out.program.counters.add(kLateExchanges, out.late_exchanges);
  }
  return out;
}

namespace {

// When each pass of a rank ended.
class PassClock final : public workload::RunObserver {
 public:
  void on_iteration(workload::ProgramRun& run, std::uint32_t index, SimTime now) override {
    if (index == run.program().iterations) ends.push_back(now);
  }
  std::vector<SimTime> ends;
};

// Whether an exchange between regions ends while the pass after its own runs, or before.
class ExchangeWatch final : public workload::RunObserver {
 public:
  void on_iteration(workload::ProgramRun& run, std::uint32_t index, SimTime) override {
    if (index == run.program().iterations) ++passes_;
  }
  void on_op_finished(const workload::OpRecord& record) override {
    if (record.run->program().ops[record.op].stream != kWideAreaStream) return;
    exchanges_ = true;
    in_time_ = in_time_ || passes_ < 2;
  }
  [[nodiscard]] bool is_late() const { return exchanges_ && !in_time_; }

 private:
  std::uint32_t passes_ = 0;
  bool exchanges_ = false;
  bool in_time_ = false;
};

const workload::LoneSetup kTwoPasses{workload::Repeat::kLoop, 2, {}};

}  // namespace

std::uint64_t late_exchanges(const workload::JobProgram& job, const hardware::GpuSpec& gpu) {
  std::vector<ExchangeWatch> watches(job.ranks.size());
  workload::LoneJob lone(job, gpu, kTwoPasses, workload::pointers_to(watches));
  lone.run();
  return static_cast<std::uint64_t>(std::ranges::count_if(watches, &ExchangeWatch::is_late));
}

Result<LoneIteration> time_alone(const workload::JobProgram& job, const hardware::GpuSpec& gpu) {
  std::vector<PassClock> clocks(job.ranks.size());
  workload::LoneJob lone(job, gpu, kTwoPasses, workload::pointers_to(clocks));
  lone.run();
  BUBBLESIM_RETURN_IF_ERROR(lone.finished());
  LoneIteration out;
  const auto& ends = clocks.front().ends;
  out.time = scale(ends.at(1) - ends.at(0), 1.0 / job.ranks.front().iterations);
  out.events = lone.events();
  for (const program::Program& rank : job.ranks) out.kernels += rank.ops.size();
  return out;
}

}  // namespace bubblesim::synth
