// Reinforcement learning: responses that are generated before the training step that uses them.
//
// Co-located (RollPacker, arXiv 2509.21009): every replica generates its samples on the GPU that it
// trains on, and all wait for the last one.
//
// Apart (RolloutPlan::generators; RollMux, arXiv 2512.11306): other GPUs generate. In iteration k
// training waits for the responses of rollout k, trains, and sends the weights to those that
// generate; rollout k begins when the weights of iteration k - d are there, d being
// RolloutPlan::distance(). With G and T the times of a rollout and of a training step an iteration
// takes G + T where d = 1, and max(G, T) where d > 1 and both are always the same. If lengths
// differ, each GPU that generates goes on by itself, d rollouts ahead at most. It takes weights
// into a buffer of their own while it generates.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/model/inference_work.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/synth/job_plan.hpp"
#include "sim/synth/rank_emitter.hpp"
#include "sim/synth/rank_memory.hpp"

namespace bubblesim::synth {

// The engine that generates a GPU's responses in a rollout: the scheduler of a language-model
// server (sim/serving) on requests that are all there at once, step by step until as many have
// ended as are kept.
//
// A step is one operation (a CUDA graph). Its time is the sum of its kernels' times, its share of
// DRAM bandwidth that of all its kernels together. It holds a block of kStepThreads threads on each
// SM. Every decoding sequence counts with the mean context, rounded to the middle of a range of
// kContextTokens tokens.

/// Responses that a GPU which generates keeps in a round, and those that it begins, which are
/// RolloutPlan::spare times as many, rounded up.
[[nodiscard]] std::uint32_t kept_responses(const PlanSpec& plan);
[[nodiscard]] std::uint32_t begun_responses(const PlanSpec& plan);

/// Tokens of the responses that a GPU begins in a round, in the order of their begin. `gpu` counts
/// generating GPUs only.
[[nodiscard]] std::vector<std::uint32_t> response_lengths(const PlanSpec& plan, std::uint32_t gpu,
                                                          std::uint32_t round);

/// Keys and values that a GPU that generates holds: RolloutPlan::kv_cache, else room for all
/// responses at their longest.
[[nodiscard]] Result<double> rollout_cache_bytes(const JobRequest& request);

/// The settings of its scheduler. Fault: a cache that does not hold the longest response.
[[nodiscard]] Result<serving::SchedulerSpec> rollout_scheduler(const JobRequest& request);

/// The steps of a round in order, each by the sums of what it computes. Precondition: the plan is
/// checked.
[[nodiscard]] std::vector<model::IterationSums> rollout_steps(const JobRequest& request,
                                                              std::uint32_t gpu,
                                                              std::uint32_t round);

/// A step as one operation. Fault: as summed_iteration_work.
[[nodiscard]] Result<TimedKernel> rollout_step(const JobRequest& request,
                                               const model::IterationSums& sums);

/// The context that stands for one of `tokens`: the middle of its range of kContextTokens.
[[nodiscard]] std::uint64_t counted_context(std::uint64_t tokens);

/// A rank's operations for the steps of an engine: alike ones are timed once.
class RolloutKernels {
 public:
  explicit RolloutKernels(const JobRequest& request) : request_(request) {}
  /// The prepared operation of a step; `prepare(TimedKernel)` makes one.
  template <class Prepare>
  [[nodiscard]] const PreparedKernel& prepared(const model::IterationSums& sums,
                                               const Prepare& prepare) {
    const auto [place, fresh] = known_.try_emplace(key_of(sums));
    if (fresh) place->second = prepare(timed(sums));
    return place->second;
  }

 private:
  using Key = std::array<double, 7>;
  static Key key_of(const model::IterationSums& sums);
  [[nodiscard]] TimedKernel timed(const model::IterationSums& sums) const;

  const JobRequest& request_;
  std::map<Key, PreparedKernel> known_;
};

/// What a rank that trains has to do with rollouts; nothing without one in the plan. Precondition:
/// the plan is checked.
class Rollout {
 public:
  explicit Rollout(RankEmitter& emitter)
      : emitter_(emitter), kernels_(emitter.plan().request) {}

  /// Before the training step: its responses, generated or received, and the wait for everybody's.
  void begin(std::uint32_t iteration);
  /// After it: sends its weights to the generating ranks, and does not wait for them.
  void end(std::uint32_t iteration);

 private:
  void generate(std::uint32_t iteration);
  void gather(const Communicator& among, std::uint32_t iteration);

  RankEmitter& emitter_;
  RolloutKernels kernels_;
};

/// The program of a GPU that generates and does not train, and what it holds: weights twice, keys
/// and values. Precondition: RolloutPlan::generators.
[[nodiscard]] program::Program generator_program(const ParallelPlan& plan,
                                                 CollectiveTable& collectives,
                                                 std::uint32_t generator);
[[nodiscard]] MemoryNeed generator_memory(const ParallelPlan& plan);

}  // namespace bubblesim::synth
