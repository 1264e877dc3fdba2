#include "sim/synth/rollout.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/base/check.hpp"
#include "sim/serving/scheduler.hpp"
#include "sim/workload/arrivals/request_lengths.hpp"

namespace bubblesim::synth {
namespace {

constexpr double kTokenNumberBytes = 8;  // PyTorch's token numbers are 64-bit

/// All ranks, with those that generate.
Communicator everybody(const ParallelPlan& plan) {
  const std::uint32_t ranks = plan.plan().world_size();
  return {network::strided_group(0, ranks), ranks, 0};
}

/// Everybody's responses go to everybody, padded to the longest that there may be: rewards are
/// compared among all of a prompt.
CollectiveCall responses_call(const ParallelPlan& plan, const Communicator& among,
                              std::uint32_t iteration) {
  CollectiveCall call;
  call.use = {Channel::kResponses, among.first_rank, iteration};
  call.kind = network::CollectivePattern::kAllGather;
  call.bytes = kTokenNumberBytes * plan.plan().rollout->most_tokens *
               static_cast<double>(plan.plan().global_batch);
  call.communicator = among;
  call.stream = kGradientStream;
  call.name = "gather responses";
  return call;
}

CollectiveCall weights_call(const ParallelPlan& plan, std::uint32_t iteration) {
  CollectiveCall call;
  const Elements elements = elements_of(plan, 0);
  call.communicator = everybody(plan);
  call.use = {Channel::kWeights, 0, iteration};
  call.kind = network::CollectivePattern::kBroadcast;
  call.bytes = (elements.shared + elements.experts) * model::bytes_of(plan.plan().precision);
  call.stream = kWideAreaStream;
  call.name = "weights to rollouts";
  return call;
}

/// Writes the program of a GPU that generates.
class Generator {
 public:
  Generator(const ParallelPlan& plan, CollectiveTable& collectives, std::uint32_t generator)
      : plan_(plan), collectives_(collectives), generator_(generator),
        writer_(plan.plan().world_size() - rollout().generators + generator, plan.request.gpu),
        kernels_(plan.request, writer_) {}

  program::Program build() {
    for (std::uint32_t i = 0; i < rollout().rounds; ++i) iterate(i);
    wait_for_weights();
    return writer_.finish();
  }

 private:
  [[nodiscard]] const RolloutPlan& rollout() const { return *plan_.plan().rollout; }

  void iterate(std::uint32_t iteration) {
    const SoftwareSpec& software = plan_.request.software;
    writer_.begin_iteration();
    writer_.mark_memory(
        static_cast<std::uint64_t>(std::llround(generator_memory(plan_).total())));
    writer_.pause(software.iteration);
    waits_.push_back(writer_.reserve_wait());
    std::uint32_t last = program::kNoIndex;
    for (const auto& sums : rollout_steps(plan_.request, generator_, iteration)) {
      last = launch(kernels_.prepared(sums));
    }
    writer_.wait_for(last);
    (void)launch(responses_call(plan_, everybody(plan_), iteration));
    weights_.push_back(launch(weights_call(plan_, iteration)));
  }

  // Rollout i needs the weights of iteration i - d, which may be one of an earlier pass.
  void wait_for_weights() {
    const std::int64_t rounds = rollout().rounds;
    for (std::int64_t i = 0; i < rounds; ++i) {
      std::int64_t iteration = i - rollout().distance();
      std::uint32_t passes_back = 0;
      for (; iteration < 0; iteration += rounds) ++passes_back;
      writer_.set_wait(waits_[static_cast<std::size_t>(i)],
                       weights_[static_cast<std::size_t>(iteration)], passes_back);
    }
  }

  std::uint32_t launch(const OpDraft& kernel) {
    const SoftwareSpec& software = plan_.request.software;
    return writer_.launch(kernel, {}, {software.forward_gap, software.launch_call});
  }

  std::uint32_t launch(const CollectiveCall& call) {
    OpDraft draft = draft_of(call, collectives_, writer_);
    const TimedKernel kernel =
        collective_kernel(collectives_.channels(draft.collective), plan_.request.gpu);
    draft.profile = writer_.add_profile(kernel.profile, kernel.launch);
    const SoftwareSpec& software = plan_.request.software;
    return writer_.launch(draft, {}, {software.collective_call, software.launch_call});
  }

  const ParallelPlan& plan_;
  CollectiveTable& collectives_;
  std::uint32_t generator_;
  ProgramWriter writer_;
  RolloutKernels kernels_;
  std::vector<std::size_t> waits_;      ///< by iteration
  std::vector<std::uint32_t> weights_;  ///< that it receives, likewise
};

}  // namespace

const OpDraft& RolloutKernels::prepared(const model::IterationSums& sums) {
  const model::AttentionSums& singles = sums.singles;
  const model::AttentionSums& prompts = sums.prompts;
  const auto [place, fresh] =
      known_.try_emplace({singles.sequences, singles.keys, prompts.sequences, prompts.queries,
                          prompts.keys, prompts.pairs, prompts.longest});
  if (fresh) {
    const auto timed = rollout_step(request_, sums);
    BUBBLESIM_CHECK(timed.has_value(), "a checked rollout has steps");
    place->second = writer_.prepare(*timed);
  }
  return place->second;
}

void Rollout::begin(std::uint32_t iteration) {
  const ParallelPlan& plan = emitter_.plan();
  if (!plan.plan().rollout) return;
  if (plan.plan().rollout->generators == 0) {
    generate(iteration);
    return gather(plan.grid.data(emitter_.place()), iteration);
  }
  gather(everybody(plan), iteration);
  if (plan.plan().rollout->jobs > 1) emitter_.writer().pause(plan.plan().rollout->switch_time);
}

void Rollout::generate(std::uint32_t iteration) {
  for (const auto& sums :
       rollout_steps(emitter_.plan().request, emitter_.place().data, iteration)) {
    emitter_.emit(kernels_.prepared(sums), HostPass::kForward);
  }
}

void Rollout::gather(const Communicator& among, std::uint32_t iteration) {
  std::uint32_t op = emitter_.last_compute();
  if (among.group.size() > 1) {
    const CollectiveCall call = responses_call(emitter_.plan(), among, iteration);
    op = emitter_.launch(call, emitter_.plan().request.software.collective_call);
    emitter_.wait_next(op);
  }
  emitter_.writer().wait_for(op);
}

void Rollout::end(std::uint32_t iteration) {
  const ParallelPlan& plan = emitter_.plan();
  if (!plan.plan().rollout || plan.plan().rollout->generators == 0) return;
  emitter_.launch(weights_call(plan, iteration), plan.request.software.collective_call);
}

program::Program generator_program(const ParallelPlan& plan, CollectiveTable& collectives,
                                   std::uint32_t generator) {
  return Generator(plan, collectives, generator).build();
}

MemoryNeed generator_memory(const ParallelPlan& plan) {
  const Elements elements = elements_of(plan, 0);
  MemoryNeed need;
  need.fixed.parameters =
      2 * (elements.shared + elements.experts) * model::bytes_of(plan.plan().precision);
  const auto cache = rollout_cache_bytes(plan.request);
  BUBBLESIM_CHECK(cache.has_value(), "a checked rollout has keys and values");
  need.activations = *cache;
  return need;
}

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
