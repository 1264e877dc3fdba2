#include "sim/synth/rollout_engine.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/base/check.hpp"
#include "sim/serving/scheduler.hpp"
#include "sim/workload/arrivals/request_lengths.hpp"

namespace bubblesim::synth {
namespace {

constexpr std::uint64_t kContextTokens = 256;
constexpr std::uint32_t kStepThreads = 256;
constexpr std::uint32_t kStepRegisters = 64;

model::Launch step_launch(const hardware::GpuSpec& gpu) {
  model::Launch launch;
  launch.grid = {gpu.sm_count, 1, 1};
  launch.block = {kStepThreads, 1, 1};
  launch.registers_per_thread = kStepRegisters;
  return launch;
}

model::IterationSums sums_of_step(const serving::ScheduledStep& step) {
  const serving::StepTotals& totals = step.totals;
  model::IterationSums sums;
  for (const serving::StepSequence& part : step.sequences) {
    if (part.prefill) sums.prompts.add({part.new_tokens, part.context});
  }
  if (totals.decode_sequences > 0) {
    const std::uint64_t mean = totals.decode_context / totals.decode_sequences;
    for (std::uint32_t i = 0; i < totals.decode_sequences; ++i) {
      sums.singles.add({1, counted_context(mean)});
    }
  }
  sums.tokens = totals.tokens();
  sums.rows = step.sequences.size();
  return sums;
}

}  // namespace

std::uint64_t counted_context(std::uint64_t tokens) {
  return tokens / kContextTokens * kContextTokens + kContextTokens / 2;
}

std::uint32_t kept_responses(const PlanSpec& plan) {
  const std::uint32_t gpus = plan.rollout->generators > 0 ? plan.rollout->generators : plan.data;
  return static_cast<std::uint32_t>(plan.global_batch / gpus);
}

std::uint32_t begun_responses(const PlanSpec& plan) {
  return static_cast<std::uint32_t>(std::ceil(kept_responses(plan) * plan.rollout->spare));
}

std::vector<std::uint32_t> response_lengths(const PlanSpec& plan, std::uint32_t gpu,
                                            std::uint32_t round) {
  const RolloutPlan& rollout = *plan.rollout;
  workload::DrawnLengths spec;
  spec.output = workload::LognormalLength{rollout.mean_tokens, rollout.cv, 1, rollout.most_tokens};
  workload::LengthSequence lengths(
      spec, RandomStream(rollout.seed, "responses of replica " + std::to_string(gpu) +
                                           " in round " + std::to_string(round)));
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < begun_responses(plan); ++i) {
    out.push_back(lengths.length_of(i).output_tokens);
  }
  return out;
}

Result<double> rollout_cache_bytes(const JobRequest& request) {
  const RolloutPlan& rollout = *request.plan.rollout;
  if (rollout.kv_cache.value > 0) return static_cast<double>(rollout.kv_cache.value);
  const double longest = rollout.prompt_tokens + static_cast<double>(rollout.most_tokens);
  return model::kv_cache_bytes(request.model, {}, request.plan.precision,
                               begun_responses(request.plan) * longest);
}

Result<serving::SchedulerSpec> rollout_scheduler(const JobRequest& request) {
  const RolloutPlan& rollout = *request.plan.rollout;
  const std::uint32_t begun = begun_responses(request.plan);
  serving::SchedulerSpec spec;
  spec.max_num_seqs = rollout.max_num_seqs > 0 ? rollout.max_num_seqs : begun;
  spec.max_num_batched_tokens = std::max(rollout.max_num_batched_tokens, spec.max_num_seqs);
  spec.max_model_len = rollout.prompt_tokens + rollout.most_tokens;
  const std::uint32_t longest = serving::blocks_of(spec, spec.max_model_len);
  spec.kv_blocks = begun * longest;
  if (rollout.kv_cache.value == 0) return spec;
  BUBBLESIM_ASSIGN_OR_RETURN(
      const double block,
      model::kv_cache_bytes(request.model, {}, request.plan.precision, spec.block_size));
  const double blocks = std::floor(static_cast<double>(rollout.kv_cache.value) / block);
  if (blocks < longest) {
    return fail("a cache of " + std::to_string(std::llround(blocks)) + " blocks; expected " +
                std::to_string(longest) + ", which the longest response takes");
  }
  spec.kv_blocks = static_cast<std::uint32_t>(std::min<double>(blocks, spec.kv_blocks));
  return spec;
}

std::vector<model::IterationSums> rollout_steps(const JobRequest& request, std::uint32_t gpu,
                                                std::uint32_t round) {
  const auto spec = rollout_scheduler(request);
  BUBBLESIM_CHECK(spec.has_value(), "a checked rollout has a scheduler");
  serving::Scheduler scheduler(*spec);
  for (const std::uint32_t tokens : response_lengths(request.plan, gpu, round)) {
    serving::Request response;
    response.number = scheduler.counts().arrived;
    response.prompt_tokens = request.plan.rollout->prompt_tokens;
    response.output_tokens = tokens;
    scheduler.arrive(response);
  }
  std::vector<model::IterationSums> steps;
  std::size_t ended = 0;
  while (ended < kept_responses(request.plan)) {
    const serving::ScheduledStep* step = scheduler.next_step(kSimStart);
    BUBBLESIM_CHECK(step != nullptr, "responses that never end");
    steps.push_back(sums_of_step(*step));
    ended += scheduler.finish_step(kSimStart).finished.size();
  }
  return steps;
}

Result<TimedKernel> rollout_step(const JobRequest& request, const model::IterationSums& sums) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      const model::ModelWork work,
      model::summed_iteration_work(request.model, {}, request.plan.precision, sums));
  const KernelTimer timer = timer_of(request);
  TimedKernel out;
  double bytes = 0;
  for (const std::uint32_t kind : work.layers) {
    for (const model::WorkItem& item : work.kinds[kind].forward) {
      const auto& kernel = std::get<model::KernelWork>(item);
      out.duration += timer.time(kernel).duration;
      out.flops += kernel.flops;
      bytes += kernel.bytes;
    }
  }
  const bool prompts = sums.prompts.sequences > 0;
  out.name = prompts ? "rollout step with prompts" : "rollout decode step";
  out.launch = step_launch(request.gpu);
  out.profile = program::profile_kernel(
      needs_of(out.launch),
      prompts ? program::KernelClass::kCompute : program::KernelClass::kMemory, request.gpu);
  out.profile.dram_share = program::dram_share(bytes, out.duration, request.gpu);
  return out;
}

}  // namespace bubblesim::synth
