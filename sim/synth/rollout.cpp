#include "sim/synth/rollout.hpp"

#include <cmath>

#include "sim/base/check.hpp"

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
        kernels_(plan.request) {}

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
      last = launch(
          kernels_.prepared(sums, [this](const TimedKernel& timed) { return prepare(timed); }));
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

  PreparedKernel prepare(const TimedKernel& timed) {
    return {writer_.add_profile(timed.profile, timed.launch), writer_.name(timed.name),
            timed.duration};
  }

  std::uint32_t launch(const PreparedKernel& kernel) {
    OpDraft draft;
    draft.name = kernel.name;
    draft.profile = kernel.profile;
    draft.duration = kernel.duration;
    const SoftwareSpec& software = plan_.request.software;
    return writer_.launch(draft, {}, {software.forward_gap, software.launch_call});
  }

  std::uint32_t launch(const CollectiveCall& call) {
    OpDraft draft;
    draft.kind = program::WorkKind::kCollective;
    draft.stream = call.stream;
    draft.name = writer_.name(call.name);
    draft.collective =
        collectives_.find(call.use, call.kind, call.bytes, call.communicator, call.form);
    const std::uint32_t channels = collectives_.channels(draft.collective);
    draft.profile = writer_.add_profile(
        program::profile_kernel(collective_needs(channels), program::KernelClass::kMemory,
                                plan_.request.gpu),
        collective_launch(channels));
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

RolloutKernels::Key RolloutKernels::key_of(const model::IterationSums& sums) {
  return {sums.singles.sequences,  sums.singles.keys,  sums.prompts.sequences,
          sums.prompts.queries, sums.prompts.keys, sums.prompts.pairs, sums.prompts.longest};
}

TimedKernel RolloutKernels::timed(const model::IterationSums& sums) const {
  auto timed = rollout_step(request_, sums);
  BUBBLESIM_CHECK(timed.has_value(), "a checked rollout has steps");
  return *std::move(timed);
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
  const auto prepare = [this](const TimedKernel& timed) { return emitter_.prepare(timed); };
  for (const auto& sums :
       rollout_steps(emitter_.plan().request, emitter_.place().data, iteration)) {
    emitter_.emit(kernels_.prepared(sums, prepare), HostPass::kForward);
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

}  // namespace bubblesim::synth
