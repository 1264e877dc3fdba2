// Steps of an engine as passes of a program: each kernel takes what the model's own iteration of
// the same sequences takes.
#include "sim/synth/server_program.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "sim/model/inference_work.hpp"
#include "sim/synth/inference_program.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/synth/inference/requests.hpp"

namespace bubblesim::synth {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

EngineSettings engine_settings() {
  EngineSettings settings;
  settings.scheduler.max_model_len = 4096;
  settings.cache = CacheBlocks{1000};
  return settings;
}

ServerPlan plan_of(DecodeMode decode, Duration step_host = {}) {
  InferenceRequest request = generation(1, 1, decode);
  request.step_host = step_host;
  return must(plan_server(request, engine_settings()));
}

std::unique_ptr<ServerProgram> server_of(const ServerPlan& plan) {
  return must(ServerProgram::make(plan));
}

serving::ScheduledStep step_of(const std::vector<serving::StepSequence>& sequences) {
  serving::ScheduledStep step;
  for (const serving::StepSequence& part : sequences) step.add(part);
  return step;
}

serving::StepSequence decode_at(std::uint32_t context) {
  serving::StepSequence part;
  part.context = context;
  part.emits = true;
  return part;
}

serving::StepSequence prompt_of(std::uint32_t tokens, std::uint32_t context = 0) {
  serving::StepSequence part;
  part.new_tokens = tokens;
  part.context = context;
  part.prefill = true;
  return part;
}

/// Kernels of a thread, name and duration, in order; copies left out.
std::vector<std::pair<std::string, Duration>> kernels_of(const program::Program& program,
                                                         std::uint32_t thread) {
  std::vector<std::pair<std::string, Duration>> kernels;
  for (const program::Step& step : program.threads[thread].steps) {
    if (step.kind != program::StepKind::kLaunch) continue;
    for (std::uint32_t i = step.target; i < step.target + step.count; ++i) {
      const program::Op& op = program.ops[i];
      if (op.kind == program::WorkKind::kCopy) continue;
      kernels.emplace_back(program.names[op.name], op.duration);
    }
  }
  return kernels;
}

/// The other road: the model's iteration of these sequences, timed kernel by kernel.
std::vector<std::pair<std::string, Duration>> iteration_of(
    const ServerPlan& plan, const std::vector<model::SequenceState>& sequences) {
  PassWriter passes(plan.request);
  const auto work =
      must(model::iteration_work(plan.request.model, {}, plan.request.precision, sequences));
  EXPECT_TRUE(passes.pass(work, serving::StepGraphs::kNone));
  return kernels_of(passes.writer().finish(), 0);
}

TEST(ServerProgram, AMixedStepHasTheKernelsOfTheModelsIteration) {
  const ServerPlan plan = plan_of(DecodeMode::kEager);
  const auto server = server_of(plan);
  const auto step = step_of({decode_at(700), decode_at(31), prompt_of(300, 512)});
  EXPECT_EQ(kernels_of(server->program(), set_alone(*server, step)),
            iteration_of(plan, {{1, 700}, {1, 31}, {300, 512}}));
}

/// Three tokens a step, drafted by a model of two blocks.
ServerPlan drafting_plan(DecodeMode decode = DecodeMode::kEager) {
  InferenceRequest request = generation(1, 1, decode);
  std::get<Generation>(request.shape).speculation = DraftSpeculation{
      must(model::find_model("llama-68m", configs("models"))), model::chain(3), 0};
  EngineSettings settings = engine_settings();
  settings.scheduler.speculation = {3, serving::independent_acceptance(3, 0.6)};
  return must(plan_server(request, settings));
}

/// The draft model's iteration, as iteration_of().
std::vector<std::pair<std::string, Duration>> draft_of(
    const ServerPlan& plan, const std::vector<model::SequenceState>& sequences) {
  ServerPlan draft = plan;
  draft.request.model = std::get<Generation>(plan.request.shape).speculation->draft;
  return iteration_of(draft, sequences);
}

template <class List>
void append(List& list, const List& more) {
  list.insert(list.end(), more.begin(), more.end());
}

/// A sequence that checks three drafted tokens.
serving::StepSequence check_at(std::uint32_t context) {
  serving::StepSequence part = decode_at(context);
  part.new_tokens = 4;
  part.drafted = 3;
  return part;
}

// Three passes of the draft model, a token further each; then all four tokens of each sequence,
// with attention of single tokens and logits of every token.
TEST(ServerProgram, ADraftModelRunsOnceForEachDraftedToken) {
  const ServerPlan plan = drafting_plan();
  const auto server = server_of(plan);
  const auto thread = set_alone(*server, step_of({check_at(700), check_at(31)}));
  auto expected = draft_of(plan, {{1, 700}, {1, 31}});
  append(expected, draft_of(plan, {{1, 701}, {1, 32}}));
  append(expected, draft_of(plan, {{1, 702}, {1, 33}}));
  const std::size_t drafts = expected.size();
  const auto kernels = kernels_of(server->program(), thread);
  ASSERT_GT(kernels.size(), drafts);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), kernels.begin()));
  model::IterationSums sums =
      sums_of(step_of({check_at(700), check_at(31)}), {serving::StepGraphs::kNone, 8, 8, 8});
  EXPECT_EQ(sums.rows, 8U);
  PassWriter passes(plan.request);
  ASSERT_TRUE(passes.pass(must(model::summed_iteration_work(plan.request.model, {},
                                                            plan.request.precision, sums)),
                          serving::StepGraphs::kNone));
  const auto verify = kernels_of(passes.writer().finish(), 0);
  EXPECT_TRUE(std::equal(verify.begin(), verify.end(), kernels.begin() + drafts, kernels.end()));
}

TEST(ServerProgram, ADraftModelReadsPromptsToo) {
  const ServerPlan plan = drafting_plan();
  const auto server = server_of(plan);
  auto prompts = draft_of(plan, {{300, 512}});
  append(prompts, iteration_of(plan, {{300, 512}}));
  EXPECT_EQ(kernels_of(server->program(), set_alone(*server, step_of({prompt_of(300, 512)}))),
            prompts);
  const auto mixed = step_of({check_at(700), prompt_of(300, 512)});
  auto drafts = draft_of(plan, {{1, 700}, {300, 512}});
  append(drafts, draft_of(plan, {{1, 701}}));
  append(drafts, draft_of(plan, {{1, 702}}));
  const auto kernels = kernels_of(server->program(), set_alone(*server, mixed));
  EXPECT_TRUE(std::equal(drafts.begin(), drafts.end(), kernels.begin()));
}

TEST(ServerPlan, ADraftModelTakesMemoryToo) {
  const ServerPlan plan = drafting_plan();
  const ServerPlan alone = plan_of(DecodeMode::kEager);
  EXPECT_NEAR(plan.memory.weights - alone.memory.weights, 2 * 68e6, 2e6);
  EXPECT_EQ(plan.block_bytes - alone.block_bytes, 16 * 2 * 2 * 768 * 2.0);  // 2 blocks of 768
}

TEST(ServerProgram, StepsOfOneKindHaveTheirOwnThreadsAndAreSetAnew) {
  const ServerPlan plan = plan_of(DecodeMode::kEager);
  const auto server = server_of(plan);
  const auto decode = step_of({decode_at(700), decode_at(31)});
  const auto prompts = step_of({prompt_of(40), prompt_of(2000, 16)});
  const std::uint32_t first = set_alone(*server, decode);
  EXPECT_EQ(kernels_of(server->program(), first), iteration_of(plan, {{1, 700}, {1, 31}}));
  const std::uint32_t second = set_alone(*server, prompts);
  EXPECT_NE(first, second);
  EXPECT_EQ(kernels_of(server->program(), second), iteration_of(plan, {{40, 0}, {2000, 16}}));
  const auto later = step_of({decode_at(1700), decode_at(1031)});
  EXPECT_EQ(kernels_of(server->program(), set_alone(*server, later)),
            iteration_of(plan, {{1, 1700}, {1, 1031}}));
}

TEST(ServerProgram, AGraphOfDecodeStepsIsPaddedAndLaunchedAtOnce) {
  const ServerPlan plan = plan_of(DecodeMode::kGraph);
  const auto server = server_of(plan);
  const std::vector<serving::StepSequence> nine(9, decode_at(100));
  const auto thread = set_alone(*server, step_of(nine));
  const auto kernels = kernels_of(server->program(), thread);
  const auto of_nine = iteration_of(plan, std::vector(9, model::SequenceState{1, 100}));
  const auto of_sixteen = iteration_of(plan, std::vector(16, model::SequenceState{1, 100}));
  ASSERT_EQ(kernels.size(), of_nine.size());
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const bool exact = kernels[i].first == "decode attention" ||
                       kernels[i].first == "logits gemm" || kernels[i].first == "sampling";
    EXPECT_EQ(kernels[i], exact ? of_nine[i] : of_sixteen[i]);
  }
}

std::size_t launches_of(ServerProgram& server, const serving::ScheduledStep& step,
                        const serving::StepShape& shape) {
  const std::uint32_t thread = server.set(step, shape, false);
  return static_cast<std::size_t>(std::ranges::count(server.program().threads[thread].steps,
                                                     program::StepKind::kLaunch,
                                                     &program::Step::kind));
}

std::size_t launches_of(ServerProgram& server, const serving::ScheduledStep& step) {
  return launches_of(server, step, server.shape_of(step));
}

// A copy; a piece and an attention in each of 32 blocks; the last piece, with the result's copy. A
// prompt beside decodes has two attention kernels.
TEST(ServerProgram, AStepWithPromptsLaunchesThePiecesBetweenItsAttentions) {
  const auto server = server_of(plan_of(DecodeMode::kGraph));
  EXPECT_EQ(launches_of(*server, step_of({decode_at(100)})), 2U);
  EXPECT_EQ(launches_of(*server, step_of({prompt_of(512)})), 1 + 32 * 2 + 1U);
  EXPECT_EQ(launches_of(*server, step_of({prompt_of(300), decode_at(100)})), 1 + 32 * 3 + 1U);
  EXPECT_EQ(launches_of(*server, step_of({prompt_of(1)})), 2U);  // decoded like any other token
  const std::size_t alone = kernels_of(server->program(), 0).size() + 2;
  EXPECT_EQ(launches_of(*server, step_of({prompt_of(513)})), alone);  // no graph is as large
}

// The draft model has two blocks, and pieces always; its two later passes have no prompts. A step
// is whole if each sequence checks three drafts.
TEST(ServerProgram, AStepThatChecksAllDraftsIsOneGraphBehindTheDraftModelsPieces) {
  const auto server = server_of(drafting_plan(DecodeMode::kGraph));
  constexpr std::size_t kDrafts = 3 * (2 * 2 + 1);
  EXPECT_EQ(launches_of(*server, step_of({check_at(700), check_at(31)})), 1 + kDrafts + 1);
  EXPECT_EQ(launches_of(*server, step_of({check_at(700), decode_at(31)})),
            1 + kDrafts + (32 * 2 + 1));
  EXPECT_EQ(launches_of(*server, step_of({check_at(700), prompt_of(100)})),
            1 + (kDrafts + 2) + (32 * 3 + 1));
}

TEST(ServerProgram, AStepOfAGroupIsLaunchedAsTheOthersAre) {
  const auto drafting = server_of(drafting_plan(DecodeMode::kGraph));
  const auto checks = step_of({check_at(700)});
  EXPECT_EQ(launches_of(*drafting, checks, {serving::StepGraphs::kPieces, 4, 4, 604}),
            1 + 3 * (2 * 2 + 1) + (32 * 2 + 1U));
  const auto server = server_of(plan_of(DecodeMode::kGraph));
  EXPECT_EQ(
      launches_of(*server, step_of({decode_at(100)}), {serving::StepGraphs::kNone, 1, 1, 601}),
      kernels_of(server->program(), 1).size() + 2);
}

TEST(ServerProgram, AQueuedStepHasItsHostTimeBehindIt) {
  const auto server = server_of(plan_of(DecodeMode::kEager, std::chrono::microseconds{300}));
  const auto step = step_of({decode_at(10)});
  const auto host_time = [&](bool queued) {
    const std::uint32_t thread = set_alone(*server, step, queued);
    return server->program().threads[thread].steps.front().think.duration();
  };
  EXPECT_EQ(host_time(false), std::chrono::microseconds{300});
  EXPECT_EQ(host_time(true), Duration::zero());
  EXPECT_EQ(host_time(false), std::chrono::microseconds{300});
}

TEST(ServerProgram, SwappedBlocksAreCopiedBeforeTheStep) {
  const auto server = server_of(plan_of(DecodeMode::kEager));
  auto step = step_of({decode_at(10)});
  const auto copies = [&] {
    const std::uint32_t thread = set_alone(*server, step);
    const program::Program& program = server->program();
    return program.ops[program.threads[thread].steps.front().target].duration;
  };
  const Duration before = copies();
  step.blocks_swapped_in = 100;  // of 16 tokens, 512 KiB each
  EXPECT_EQ(copies() - before, copy_time(8 + 100 * 16 * 524288.0) - copy_time(8));
}

/// LLaMA2-7B's 32 layers, swapped in groups of blocks.
ServerPlan swapping_plan(serving::SwapTiming timing) {
  EngineSettings settings = engine_settings();
  settings.scheduler.preemption = serving::CachePreemption::kSwap;
  settings.scheduler.swap_timing = timing;
  settings.host_cache = Bytes{8'000'000'000};
  return must(plan_server(generation(1, 1, DecodeMode::kEager), settings));
}

/// 100 blocks out in 3 copies of each layer's keys, and of its values.
serving::ScheduledStep swapping_step() {
  serving::ScheduledStep step = step_of({decode_at(10)});
  step.blocks_swapped_out = 100;
  step.swap_copies = 3;
  return step;
}

const Duration kSwapTime = 2 * 32 * 3 * kCopyLatency + Duration{33'554'432};  // 100 of 8 MiB

TEST(ServerProgram, EachCopyOfAGroupOfBlocksHasItsLatency) {
  const auto server = server_of(swapping_plan(serving::SwapTiming::kBefore));
  const std::uint32_t thread = set_alone(*server, swapping_step());
  const program::Program& program = server->program();
  const std::uint32_t input = program.threads[thread].steps.front().target;
  EXPECT_EQ(program.ops[input].duration, copy_time(8) + kSwapTime);
}

TEST(ServerProgram, BesideTheStepTheyAreCopiedOnAStreamOfTheirOwn) {
  const auto server = server_of(swapping_plan(serving::SwapTiming::kBeside));
  serving::ScheduledStep step = swapping_step();
  const std::uint32_t thread = set_alone(*server, step);
  const program::Program& program = server->program();
  const std::uint32_t swap = program.threads[thread].steps.front().target;
  EXPECT_EQ(program.ops[swap].duration, kSwapTime);
  EXPECT_NE(program.ops[swap].stream, program.ops[swap + 1].stream);
  EXPECT_EQ(program.ops[swap + 1].duration, copy_time(8));
  const program::Step& last = *(program.threads[thread].steps.rbegin() + 1);  // before the end
  EXPECT_EQ(last.kind, program::StepKind::kWaitOp);
  EXPECT_EQ(last.target, swap);
  step.awaits_swaps = true;  // nobody else to compute for: before the kernels
  (void)set_alone(*server, step);
  EXPECT_EQ(program.ops[swap].duration, Duration{});
  EXPECT_EQ(program.ops[swap + 1].duration, copy_time(8) + kSwapTime);
}

// 100 tokens are 7 blocks of 8 MiB: 58,720,256 bytes over 25 GB/s, and 5 us for each write.
TEST(ServerPlan, APromptGoesOverTheLinkByItsBytesAndItsWrites) {
  EngineSettings settings = engine_settings();
  settings.prefill = PrefillSplit{1, {25e9}, std::chrono::microseconds{5}, KvWrites::kContiguous};
  ServerPlan plan = must(plan_server(generation(1, 1), settings));
  EXPECT_EQ(handover_time(plan, 100), Duration{2'348'810 + 5'000});
  plan.prefill->writes = KvWrites::kBlocks;  // keys and values of 32 layers: 448 writes
  EXPECT_EQ(handover_time(plan, 100), Duration{2'348'810 + 448 * 5'000});
}

TEST(ServerPlan, TheCacheHasWhatTheShareOfMemoryLeaves) {
  InferenceRequest request = generation(1, 1);
  EngineSettings settings = engine_settings();
  settings.cache = MemoryShare{0.5};
  const ServerPlan plan = must(plan_server(request, settings));
  const double gpu = static_cast<double>(request.gpu.memory.value);
  constexpr double kBlock = 16 * 524288.0;
  EXPECT_EQ(plan.scheduler.kv_blocks,
            static_cast<std::uint32_t>(
                (0.5 * gpu - plan.memory.weights - plan.memory.activations) / kBlock));
  EXPECT_NEAR(plan.memory.weights, 6.74e9 * 2, 0.02e9);  // 6.74 billion weights
  EXPECT_LE(plan.memory.total(), 0.5 * gpu);
  EXPECT_GT(plan.memory.total(), 0.5 * gpu - kBlock);
}

TEST(ServerPlan, FaultsSayWhatThereIsNoRoomFor) {
  EngineSettings settings = engine_settings();
  settings.cache = MemoryShare{0.1};
  EXPECT_THAT(error_of(plan_server(generation(1, 1), settings)).text(),
              HasSubstr("leaves the KV cache no block of 8 MB"));
  settings.cache = CacheBlocks{1'000'000};
  EXPECT_THAT(error_of(plan_server(generation(1, 1), settings)).text(),
              HasSubstr("expected a smaller KV cache or model"));
}

class FixedKernels final : public StepKernels {
 public:
  explicit FixedKernels(Duration together) : together_(together) {}
  Duration kernel_time(const serving::ScheduledStep&, const serving::StepShape&) override {
    return together_;
  }

 private:
  Duration together_;
};

/// From the first kernel's start to the last one's end, if the stream never waits.
Duration span_of(const program::Program& program, std::uint32_t thread) {
  Duration span{};
  bool first = true;
  for (const program::Step& step : program.threads[thread].steps) {
    if (step.kind != program::StepKind::kLaunch) continue;
    for (std::uint32_t i = step.target; i < step.target + step.count; ++i) {
      const program::Op& op = program.ops[i];
      if (op.kind != program::WorkKind::kKernel) continue;
      span += op.duration + (first ? Duration{} : op.gap.duration());
      first = false;
    }
  }
  return span;
}

TEST(ServerProgram, MeasuredStepsTakeWhatWasMeasuredInTheModelsProportions) {
  for (const DecodeMode mode : {DecodeMode::kEager, DecodeMode::kGraph}) {
    ServerPlan plan = plan_of(mode);
    const auto modelled = server_of(plan);
    plan.kernels = [] { return std::make_unique<FixedKernels>(40ms); };
    const auto measured = server_of(plan);
    for (const auto& step : {step_of({decode_at(100)}), step_of({prompt_of(300)}),
                             step_of({prompt_of(300), decode_at(100)})}) {
      const std::uint32_t thread = set_alone(*measured, step);
      ASSERT_EQ(set_alone(*modelled, step), thread);
      EXPECT_EQ(span_of(measured->program(), thread), 40ms);
      const auto theirs = kernels_of(modelled->program(), thread);
      const auto ours = kernels_of(measured->program(), thread);
      ASSERT_EQ(ours.size(), theirs.size());
      const double share = to_seconds(ours[0].second) / to_seconds(theirs[0].second);
      for (std::size_t i = 0; i < ours.size(); ++i) {
        const double wanted = share * to_seconds(theirs[i].second);
        EXPECT_NEAR(to_seconds(ours[i].second), wanted, 1e-3 * wanted);
      }
    }
  }
}

}  // namespace
}  // namespace bubblesim::synth
