// The engine that generates a GPU's responses in a rollout: the scheduler of a language-model
// server (sim/serving) on requests that are all there at once, step by step until as many have
// ended as are kept.
//
// A step is one operation (a CUDA graph): its time is the sum of its kernels', its share of DRAM
// bandwidth theirs together; it holds a block of kStepThreads threads on each SM. Contexts of
// sequences that decode count as their mean, in steps of kContextTokens at their middle.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/model/inference_work.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/synth/job_plan.hpp"

namespace bubblesim::synth {

/// Responses that a GPU which generates keeps in a round, and those that it begins, which are
/// RolloutPlan::spare times as many, rounded up.
[[nodiscard]] std::uint32_t kept_responses(const PlanSpec& plan);
[[nodiscard]] std::uint32_t begun_responses(const PlanSpec& plan);

/// Tokens of the responses that a GPU begins in a round, in the order in which it does. `gpu`: of
/// those that generate.
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

/// The middle of the contexts that count as this one.
[[nodiscard]] std::uint64_t counted_context(std::uint64_t tokens);

}  // namespace bubblesim::synth
