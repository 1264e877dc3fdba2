// Builds the program of one rank: its actions of the pipeline schedule, layer by layer, then
// gradients and optimiser, iteration by iteration.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/synth/gradient_exchange.hpp"
#include "sim/synth/host_transfers.hpp"
#include "sim/synth/rank_emitter.hpp"
#include "sim/synth/rollout.hpp"
#include "sim/synth/stage_transfers.hpp"

namespace bubblesim::synth {

class RankBuilder {
 public:
  RankBuilder(const ParallelPlan& plan, CollectiveTable& collectives, const RankPlace& place);

  /// Once.
  [[nodiscard]] program::Program build();

 private:
  using Layers = std::vector<std::uint32_t>;  ///< into ModelWork::layers, in the order of use

  void iterate(std::uint32_t iteration);
  void begin_rollout(std::uint32_t iteration);
  void run(std::size_t number);
  void forward(const pipeline::Action& action);
  void backward(const pipeline::Action& action);
  void input_grad(const pipeline::Action& action);
  void weight_grad(const pipeline::Action& action);
  void overlapped(const pipeline::Action& action);
  void emit(std::uint32_t layer, std::vector<TimedItem> TimedLayer::* items, HostPass pass,
            std::size_t done = 0);
  [[nodiscard]] bool norm_is_done(const Layers& layers, std::size_t at) const;
  void forward_layer(const Layers& layers, std::size_t at, std::uint32_t micro_batch);
  void backward_layer(const Layers& layers, std::size_t at, std::uint32_t micro_batch);
  void wait_after(ComputeWait what);
  void wait_for_compute();
  /// Marks the memory that the rank holds from the next operation on: its constant part,
  /// activations, and `besides`.
  void mark_memory(double besides);

  [[nodiscard]] Layers forward_layers(std::uint32_t stage) const;
  [[nodiscard]] Layers backward_layers(std::uint32_t stage) const;
  [[nodiscard]] const TimedLayer& timed(std::uint32_t layer) const;
  /// The timed layer of part `number` of a micro-batch.
  [[nodiscard]] const TimedLayer& part(std::uint32_t layer, std::size_t number) const;

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

}  // namespace bubblesim::synth
