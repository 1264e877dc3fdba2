// The rollout of reinforcement learning before each training step: every replica generates its
// samples on the GPU on which it trains, and all wait for the last one (synchronous, co-located:
// RollPacker, arXiv 2509.21009).
//
// A replica's responses begin together: their prompts one by one, then decode steps with all that
// are not at their end, so that the batch shrinks to the longest response alone. A step is one
// operation (a CUDA graph): its time is the sum of its kernels', its share of DRAM bandwidth theirs
// together; it holds a block of kStepThreads threads on each SM. Contexts count in steps of
// kContextTokens, at their middle.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/synth/rank_emitter.hpp"

namespace bubblesim::synth {

/// Tokens of the responses that a replica keeps in a round, ascending: the shortest `kept` of those
/// drawn, which are `spare` times as many, rounded up.
[[nodiscard]] std::vector<std::uint32_t> response_lengths(const RolloutPlan& plan,
                                                          std::uint32_t kept,
                                                          std::uint32_t replica,
                                                          std::uint32_t round);

/// One pass of the model as one operation: `sequences` of `new_tokens` each, with `context` cached.
[[nodiscard]] Result<TimedKernel> generation_step(const JobRequest& request,
                                                  std::uint32_t sequences,
                                                  std::uint64_t new_tokens, std::uint64_t context);

/// Of keys and values, the most that a replica may hold in a rollout: all responses at their
/// longest.
[[nodiscard]] Result<double> rollout_cache_bytes(const JobRequest& request);

/// The middle of the contexts that count as this one.
[[nodiscard]] std::uint64_t counted_context(std::uint64_t tokens);

class Rollout {
 public:
  explicit Rollout(RankEmitter& emitter) : emitter_(emitter) {}

  /// The iteration's responses, and the wait for everybody's. Nothing without a rollout in the
  /// plan. Precondition: the plan is checked.
  void generate(std::uint32_t iteration);

 private:
  using Key = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;  ///< generation_step's

  void decode(const std::vector<std::uint32_t>& lengths);
  [[nodiscard]] const PreparedKernel& step(std::uint32_t sequences, std::uint64_t new_tokens,
                                           std::uint64_t context);
  void exchange();

  RankEmitter& emitter_;
  std::map<Key, PreparedKernel> steps_;
  std::uint64_t uses_ = 0;
};

}  // namespace bubblesim::synth
