#include "sim/synth/rollout.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/base/check.hpp"
#include "sim/model/inference_work.hpp"
#include "sim/workload/arrivals/request_lengths.hpp"

namespace bubblesim::synth {
namespace {

constexpr std::uint64_t kContextTokens = 256;
constexpr std::uint32_t kStepThreads = 256;
constexpr std::uint32_t kStepRegisters = 64;
constexpr double kTokenNumberBytes = 8;  // PyTorch's token numbers are 64-bit

std::uint32_t samples_of(const PlanSpec& plan) {
  return static_cast<std::uint32_t>(plan.global_batch / plan.data);
}

/// Responses that a replica draws to keep so many.
std::uint32_t drawn_for(std::uint32_t kept, const RolloutPlan& plan) {
  return static_cast<std::uint32_t>(std::ceil(kept * plan.spare));
}

model::Launch step_launch(const hardware::GpuSpec& gpu) {
  model::Launch launch;
  launch.grid = {gpu.sm_count, 1, 1};
  launch.block = {kStepThreads, 1, 1};
  launch.registers_per_thread = kStepRegisters;
  return launch;
}

}  // namespace

std::uint64_t counted_context(std::uint64_t tokens) {
  return tokens / kContextTokens * kContextTokens + kContextTokens / 2;
}

std::vector<std::uint32_t> response_lengths(const RolloutPlan& plan, std::uint32_t kept,
                                            std::uint32_t replica, std::uint32_t round) {
  workload::DrawnLengths spec;
  spec.output = workload::LognormalLength{plan.mean_tokens, plan.cv, 1, plan.most_tokens};
  workload::LengthSequence lengths(
      spec, RandomStream(plan.seed, "responses of replica " + std::to_string(replica) +
                                        " in round " + std::to_string(round)));
  const std::uint32_t drawn = drawn_for(kept, plan);
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < drawn; ++i) out.push_back(lengths.of(i).output_tokens);
  std::sort(out.begin(), out.end());
  out.resize(kept);
  return out;
}

Result<TimedKernel> generation_step(const JobRequest& request, std::uint32_t sequences,
                                    std::uint64_t new_tokens, std::uint64_t context) {
  const std::vector<model::SequenceState> states(sequences, {new_tokens, context});
  BUBBLESIM_ASSIGN_OR_RETURN(
      const model::ModelWork work,
      model::iteration_work(request.model, {}, request.plan.precision, states));
  const KernelTimer timer(request.gpu, request.efficiency, request.software.slowdown);
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
  out.name = new_tokens > 1 ? "rollout prompt" : "rollout decode step";
  out.launch = step_launch(request.gpu);
  out.profile = program::profile_kernel(
      needs_of(out.launch),
      new_tokens > 1 ? program::KernelClass::kCompute : program::KernelClass::kMemory,
      request.gpu);
  const double moved = to_seconds(out.duration) * request.gpu.dram_bandwidth.value;
  out.profile.dram_share = std::clamp(bytes / moved, 0.0, 1.0);
  return out;
}

Result<double> rollout_cache_bytes(const JobRequest& request) {
  const RolloutPlan& rollout = *request.plan.rollout;
  const std::uint32_t responses = drawn_for(samples_of(request.plan), rollout);
  return model::kv_cache_bytes(
      request.model, {}, request.plan.precision,
      responses * (rollout.prompt_tokens + static_cast<double>(rollout.most_tokens)));
}

void Rollout::generate(std::uint32_t iteration) {
  const ParallelPlan& plan = emitter_.plan();
  if (!plan.plan().rollout) return;
  const RolloutPlan& rollout = *plan.plan().rollout;
  const std::uint32_t kept = samples_of(plan.plan());
  const std::vector<std::uint32_t> lengths =
      response_lengths(rollout, kept, emitter_.place().data, iteration);
  const PreparedKernel& prompt = step(1, rollout.prompt_tokens, 0);
  const std::uint32_t drawn = drawn_for(kept, rollout);
  for (std::uint32_t i = 0; i < drawn; ++i) emitter_.emit(prompt, HostPass::kForward);
  decode(lengths);
  exchange();
}

// The prompt's pass gives the first token, each step one more of each response that has not ended.
// Of those drawn and not kept, the longest, all run until the last one that is kept has ended.
void Rollout::decode(const std::vector<std::uint32_t>& lengths) {
  const RolloutPlan& rollout = *emitter_.plan().plan().rollout;
  const auto kept = static_cast<std::uint32_t>(lengths.size());
  const std::uint32_t others = drawn_for(kept, rollout) - kept;
  std::size_t ended = 0;
  for (std::uint32_t tokens = 1; tokens < lengths.back(); ++tokens) {
    while (lengths[ended] <= tokens) ++ended;
    const auto running = static_cast<std::uint32_t>(lengths.size() - ended) + others;
    emitter_.emit(step(running, 1, counted_context(rollout.prompt_tokens + tokens)),
                  HostPass::kForward);
  }
}

const PreparedKernel& Rollout::step(std::uint32_t sequences, std::uint64_t new_tokens,
                                    std::uint64_t context) {
  const auto [place, fresh] = steps_.try_emplace({sequences, new_tokens, context});
  if (fresh) {
    const auto timed = generation_step(emitter_.plan().request, sequences, new_tokens, context);
    BUBBLESIM_CHECK(timed.has_value(), "a checked rollout has prompts and decode steps");
    place->second = emitter_.prepare(*timed);
  }
  return place->second;
}

// Everybody's responses go to everybody, padded to the longest that there may be: rewards are
// compared among all of a prompt.
void Rollout::exchange() {
  const ParallelPlan& plan = emitter_.plan();
  const Communicator all = plan.grid.data(emitter_.place());
  std::uint32_t op = emitter_.last_compute();
  if (all.group.size() > 1) {
    CollectiveCall call;
    call.use = {Channel::kResponses, all.first_rank, uses_++};
    call.kind = network::CollectiveKind::kAllGather;
    call.bytes = kTokenNumberBytes * plan.plan().rollout->most_tokens *
                 static_cast<double>(plan.plan().global_batch);
    call.communicator = all;
    call.stream = kGradientStream;
    call.name = "gather responses";
    op = emitter_.launch(call, plan.request.software.collective_call);
    emitter_.wait_next(op);
  }
  emitter_.writer().wait_for(op);
}

}  // namespace bubblesim::synth
