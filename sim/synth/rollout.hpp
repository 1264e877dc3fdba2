// Reinforcement learning: responses that are generated before the training step that uses them.
//
// Co-located (RollPacker, arXiv 2509.21009): every replica generates its samples on its training
// GPU, and all wait for the last one.
//
// Apart (RolloutPlan::generators; RollMux, arXiv 2512.11306): other GPUs generate. In iteration k
// training waits for the responses of rollout k, trains, and sends the weights to the generating
// GPUs; rollout k begins when the weights of iteration k - d have arrived, with d =
// RolloutPlan::distance(). If a rollout always takes G and a training step T, an iteration takes G
// + T for d = 1, and max(G, T) for d > 1. If lengths differ, each generating GPU runs at most d
// rollouts ahead. It receives weights into a separate buffer while it generates.
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
// server (sim/serving), whose requests all arrive at once, step by step until the kept number has
// ended.
//
// A step is one operation (a CUDA graph). Its time is the sum of its kernels' times, and its share
// of DRAM bandwidth that of all its kernels together. It holds a block of kStepThreads threads on
// each SM. Every decoding sequence counts with the mean context, rounded to the middle of a range
// of kContextTokens tokens.

/// Responses that a generating GPU keeps in a round, and those that it begins, RolloutPlan::spare
/// times as many, rounded up.
[[nodiscard]] std::uint32_t kept_responses(const PlanSpec& plan);
[[nodiscard]] std::uint32_t begun_responses(const PlanSpec& plan);

/// Tokens of the responses that a GPU begins in a round, in order. `gpu` counts generating GPUs
/// only.
[[nodiscard]] std::vector<std::uint32_t> response_lengths(const PlanSpec& plan, std::uint32_t gpu,
                                                          std::uint32_t round);

/// Keys and values on a generating GPU: RolloutPlan::kv_cache, else enough for all responses at
/// their longest.
[[nodiscard]] Result<double> rollout_cache_bytes(const JobRequest& request);

/// Its scheduler's settings. Fault: a cache too small for the longest response.
[[nodiscard]] Result<serving::SchedulerSpec> rollout_scheduler(const JobRequest& request);

/// The steps of a round in order, each by its sums. Precondition: the plan is checked.
[[nodiscard]] std::vector<model::IterationSums> rollout_steps(const JobRequest& request,
                                                              std::uint32_t gpu,
                                                              std::uint32_t round);

/// A step as one operation. Fault: as summed_iteration_work.
[[nodiscard]] Result<TimedKernel> rollout_step(const JobRequest& request,
                                               const model::IterationSums& sums);

/// The context used for one of `tokens`: the middle of its range of kContextTokens.
[[nodiscard]] std::uint64_t counted_context(std::uint64_t tokens);

/// A rank's operations for the steps of an engine: equal ones are timed once.
class RolloutKernels {
 public:
  /// Both outlive this; `writer` writes the rank's program.
  RolloutKernels(const JobRequest& request, ProgramWriter& writer)
      : request_(request), writer_(writer) {}
  /// The operation of a step.
  [[nodiscard]] const OpDraft& prepared(const model::IterationSums& sums);

 private:
  const JobRequest& request_;
  ProgramWriter& writer_;
  std::map<std::array<double, 7>, OpDraft> known_;  ///< by sums
};

/// A training rank's part in rollouts; nothing if the plan has none. Precondition: the plan is
/// checked.
class Rollout {
 public:
  explicit Rollout(RankEmitter& emitter)
      : emitter_(emitter), kernels_(emitter.plan().request, emitter.writer()) {}

  /// To be called before the training step: generates or receives its responses, and waits for all
  /// ranks' responses.
  void begin(std::uint32_t iteration);
  /// To be called after the training step: sends its weights to the generating ranks, without
  /// waiting.
  void end(std::uint32_t iteration);

 private:
  void generate(std::uint32_t iteration);
  void gather(const Communicator& among, std::uint32_t iteration);

  RankEmitter& emitter_;
  RolloutKernels kernels_;
};

/// The program of a GPU that generates and does not train, and its memory: weights twice, keys and
/// values. Precondition: RolloutPlan::generators.
[[nodiscard]] program::Program generator_program(const ParallelPlan& plan,
                                                 CollectiveTable& collectives,
                                                 std::uint32_t generator);
[[nodiscard]] MemoryNeed generator_memory(const ParallelPlan& plan);

}  // namespace bubblesim::synth
