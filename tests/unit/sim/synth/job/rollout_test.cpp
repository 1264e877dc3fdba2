// Rollouts before training steps: lengths, times by sums of their steps, and who waits for whom.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <vector>

#include "sim/synth/plan_file.hpp"
#include "sim/synth/rank_memory.hpp"
#include "sim/synth/rollout.hpp"
#include "sim/workload/lone_job.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/synth/job/tiny_job.hpp"

namespace bubblesim::synth {
namespace {

using testing::HasSubstr;

/// A Llama-like model of 2 blocks, trained by `data` replicas of one GPU on 4 samples each.
JobRequest rollout_job(std::uint32_t data, double spare = 1) {
  JobRequest request = tiny_job();
  model::TransformerSpec spec = llama_like(2, 1024);
  spec.max_sequence = 8192;
  request.model = {"small decoder", spec};
  request.plan.attention = model::AttentionKernels::kFlash;
  request.plan.sequence = 256;
  request.plan.micro_batch = 4;
  request.plan.data = data;
  request.plan.folding = Folding::kNothing;
  request.plan.rollout = RolloutPlan{.prompt_tokens = 100, .mean_tokens = 300, .cv = 1,
                                     .most_tokens = 1000, .spare = spare};
  set_micro_batches(request, 1);
  return request;
}

/// So many responses of one GPU, as their plan says.
PlanSpec lengths_plan(std::uint32_t responses, const RolloutPlan& rollout) {
  PlanSpec plan;
  plan.global_batch = responses;
  plan.rollout = rollout;
  return plan;
}

TEST(Rollout, LengthsAreThoseOfTheirDistribution) {
  const PlanSpec plan = lengths_plan(20000, {.prompt_tokens = 1, .mean_tokens = 1000, .cv = 0.5,
                                             .most_tokens = 100000});
  const std::vector<std::uint32_t> lengths = response_lengths(plan, 0, 0);
  double sum = 0;
  for (const std::uint32_t length : lengths) sum += length;
  EXPECT_NEAR(sum / 20000, 1000, 15);  // three standard errors of 500 / sqrt(20,000) are 11
  EXPECT_EQ(response_lengths(plan, 0, 0), lengths);
  EXPECT_NE(response_lengths(plan, 1, 0), lengths);
  EXPECT_NE(response_lengths(plan, 0, 1), lengths);
}

TEST(Rollout, SpareResponsesAreBegunToo) {
  RolloutPlan rollout{.prompt_tokens = 1, .mean_tokens = 1000, .cv = 1, .most_tokens = 100000};
  rollout.spare = 1.5;
  const PlanSpec plan = lengths_plan(10, rollout);
  EXPECT_EQ(kept_responses(plan), 10U);
  EXPECT_EQ(response_lengths(plan, 0, 0).size(), 15U);
  rollout.most_tokens = 700;
  const auto cut = response_lengths(lengths_plan(10, rollout), 0, 0);
  EXPECT_LE(*std::max_element(cut.begin(), cut.end()), 700U);
}

/// One step of sequences with the same context, or of prompts.
double step_seconds(const JobRequest& request, std::uint32_t sequences, std::uint64_t new_tokens,
                    std::uint64_t context) {
  model::IterationSums sums;
  model::AttentionSums& group = new_tokens > 1 ? sums.prompts : sums.singles;
  for (std::uint32_t i = 0; i < sequences; ++i) group.add({new_tokens, context});
  sums.tokens = sequences * new_tokens;
  sums.rows = sequences;
  return to_seconds(rollout_step(request, sums)->duration);
}

/// All prompts in one step, then each step with those that have not ended, until only spare ones
/// are left: the second road to a replica's time.
double replica_seconds(const JobRequest& request, std::uint32_t replica, std::uint32_t round = 0) {
  const RolloutPlan& plan = *request.plan.rollout;
  std::vector<std::uint32_t> lengths = response_lengths(request.plan, replica, round);
  std::sort(lengths.begin(), lengths.end());
  const auto begun = static_cast<std::uint32_t>(lengths.size());
  double sum = step_seconds(request, begun, plan.prompt_tokens, 0);
  const std::uint32_t last = lengths[kept_responses(request.plan) - 1];
  for (std::uint32_t token = 1; token < last; ++token) {
    const auto ended = std::count_if(lengths.begin(), lengths.end(),
                                     [&](std::uint32_t length) { return length <= token; });
    const auto running = begun - static_cast<std::uint32_t>(ended);
    // The token before this one is sampled, and has no keys yet.
    sum += step_seconds(request, running, 1, counted_context(plan.prompt_tokens + token - 1));
  }
  return sum;
}

double training_seconds(JobRequest request) {
  request.plan.rollout.reset();
  return seconds(request);
}

// All replicas train when the slowest has its responses.
TEST(Rollout, TakesWhatItsSlowestReplicaTakes) {
  for (const double spare : {1.0, 1.5}) {
    JobRequest request = rollout_job(4, spare);
    double slowest = 0;
    for (std::uint32_t r = 0; r < 4; ++r) {
      slowest = std::max(slowest, replica_seconds(request, r));
    }
    const double training = training_seconds(request);
    EXPECT_NEAR(seconds(request), slowest + training, 2e-3 * (slowest + training)) << spare;
  }
}

TEST(Rollout, RoundsHaveLengthsOfTheirOwn) {
  JobRequest request = rollout_job(2);
  request.plan.rollout->rounds = 3;
  const SynthesisedJob job = synthesise(plan_of(request));
  EXPECT_EQ(job.program.ranks[0].iterations, 3U);
  std::size_t steps = 0;
  for (const program::Op& op : job.program.ranks[1].ops) {
    if (job.program.ranks[1].names[op.name] == "rollout decode step") ++steps;
  }
  std::size_t expected = 0;
  for (std::uint32_t round = 0; round < 3; ++round) {
    const auto lengths = response_lengths(request.plan, 1, round);
    expected += *std::max_element(lengths.begin(), lengths.end()) - 1;
  }
  EXPECT_EQ(steps, expected);
}

// 4 responses of up to 1,100 tokens: keys and values of 2 layers and 1,024 columns in 2 bytes.
TEST(Rollout, MemoryHasRoomForEveryResponse) {
  EXPECT_EQ(*rollout_cache_bytes(rollout_job(1)), 4.0 * 1100 * 2 * 2 * 1024 * 2);
  JobRequest large = rollout_job(1);
  large.plan.rollout->most_tokens = 7000;
  EXPECT_GE(memory_need(plan_of(large), 0).activations, *rollout_cache_bytes(large));
}

// The cache is there while responses are generated, and gone when training begins.
TEST(Rollout, MarksHaveRoomForEveryResponse) {
  JobRequest large = rollout_job(1);
  large.plan.rollout->most_tokens = 7000;
  const SynthesisedJob job = synthesise(plan_of(large));
  const auto& marks = job.program.ranks[0].memory;
  const MemoryNeed& need = job.memory[0];
  EXPECT_EQ(need.activations, *rollout_cache_bytes(large));  // more than its activations
  ASSERT_GE(marks.size(), 3U);
  EXPECT_NEAR(static_cast<double>(marks[0].bytes), need.fixed.total(), 1);
  EXPECT_NEAR(static_cast<double>(marks[1].bytes), need.total(), 1);
  EXPECT_NEAR(static_cast<double>(marks[2].bytes), need.fixed.total(), 1);
}

TEST(Rollout, WhatMakesNoSenseIsRefused) {
  JobRequest folded = rollout_job(2);
  folded.plan.folding = Folding::kAll;
  EXPECT_THAT(fault_of(folded), HasSubstr("/folding: replicas end their rollouts apart"));
  JobRequest sharded = rollout_job(2);
  sharded.plan.sharding = Sharding::kParameters;
  EXPECT_THAT(fault_of(sharded), HasSubstr("/rollout: expected replicas of one GPU"));
  JobRequest cut = rollout_job(1);
  cut.plan.rollout->most_tokens = 299;
  EXPECT_THAT(fault_of(cut), HasSubstr("/rollout/most_tokens: found 299; expected at least "
                                            "\"mean_tokens\", 300"));
  JobRequest linear = tiny_job();
  linear.plan.rollout = RolloutPlan{};
  EXPECT_THAT(fault_of(linear), HasSubstr("/rollout: "));
}

std::uint32_t largest_step(const JobRequest& request) {
  double most = 0;
  for (const auto& step : rollout_steps(request, 0, 0)) {
    most = std::max(most, step.singles.sequences);
  }
  return static_cast<std::uint32_t>(most);
}

/// 40 responses of 300 tokens each to prompts of 100.
JobRequest equal_responses() {
  JobRequest request = rollout_job(1);
  request.plan.global_batch = 40;
  request.plan.rollout->cv = 0.01;
  request.plan.rollout->most_tokens = 300;
  request.plan.rollout->mean_tokens = 400;  // all are cut
  return request;
}

// 10 at a time: four waves of a step of prompts and 299 of decodes, where all at once take one.
TEST(Rollout, TheEngineRunsAsManyAsItMayAndRefills) {
  JobRequest request = equal_responses();
  request.plan.rollout->max_num_batched_tokens = 4000;
  EXPECT_EQ(rollout_steps(request, 0, 0).size(), 300U);
  EXPECT_EQ(largest_step(request), 40U);
  request.plan.rollout->max_num_seqs = 10;
  EXPECT_EQ(rollout_steps(request, 0, 0).size(), 1200U);
  EXPECT_EQ(largest_step(request), 10U);
}

// A cache of 100 blocks of 16 tokens: four responses of 100 + 300 tokens take 25 blocks each.
TEST(Rollout, ACacheThatIsFullMakesResponsesWait) {
  JobRequest request = equal_responses();
  request.plan.rollout->kv_cache = Bytes{100 * 16 * 2 * 2 * 1024 * 2};
  EXPECT_EQ(rollout_scheduler(request)->kv_blocks, 100U);
  EXPECT_EQ(*rollout_cache_bytes(request), 100.0 * 16 * 2 * 2 * 1024 * 2);
  // What 40 responses of at most 400 tokens need, four at a time and more while they are short.
  EXPECT_GT(rollout_steps(request, 0, 0).size(), 1200U);
  request.plan.rollout->kv_cache = Bytes{20 * 16 * 2 * 2 * 1024 * 2};
  EXPECT_THAT(error_of(rollout_scheduler(request)).text(),
              HasSubstr("a cache of 20 blocks; expected 25"));
}

/// Two replicas that train, two GPUs that generate for them.
JobRequest apart_job(std::uint32_t rounds = 1) {
  JobRequest request = rollout_job(2);
  request.plan.rollout->generators = 2;
  request.plan.rollout->rounds = rounds;
  return request;
}

double rollout_seconds(const JobRequest& request, std::uint32_t round = 0) {
  return std::max(replica_seconds(request, 0, round), replica_seconds(request, 1, round));
}

class LastEnd final : public workload::RunObserver {
 public:
  void on_iteration(workload::ProgramRun&, std::uint32_t, SimTime now) override { end = now; }
  SimTime end = kSimStart;
};

/// When the first replica has done so many passes.
double end_seconds(const JobRequest& request, std::uint64_t passes) {
  const SynthesisedJob job = synthesise(plan_of(request));
  std::vector<LastEnd> ends(job.program.ranks.size());
  workload::LoneSetup setup;
  setup.repeat = workload::Repeat::kLoop;
  setup.passes = passes;
  workload::LoneJob lone(job.program, request.gpu, setup, workload::pointers_to(ends));
  lone.run();
  EXPECT_TRUE(lone.finished());
  return to_seconds(ends.front().end - kSimStart);
}

// In turn where a rollout waits for the weights of the step before; one behind the other where it
// does not, or where another job's iteration lies between.
TEST(Rollout, ApartItTakesBothInTurnOrTheLongerOfTheTwo) {
  JobRequest request = apart_job();
  const double generates = rollout_seconds(request);
  const double trains = training_seconds(request);
  EXPECT_NEAR(seconds(request), generates + trains, 0.01 * (generates + trains));
  request.plan.rollout->staleness = 1;
  const double longer = std::max(generates, trains);
  EXPECT_NEAR(seconds(request), longer, 0.01 * longer);
  request.plan.rollout->staleness = 0;
  request.plan.rollout->jobs = 2;
  EXPECT_NEAR(seconds(request), longer, 0.01 * longer);
}

// With rollouts of different lengths, on each GPU that generates: end of rollout k = max(end of its
// rollout k-1, end of step k-d) + its length; end of step k = max(end of step k-1, of all rollouts
// k) + T.
TEST(Rollout, ApartItFollowsTheRecurrence) {
  for (const std::uint32_t staleness : {0U, 1U, 3U}) {
    JobRequest request = apart_job(4);
    request.plan.rollout->staleness = staleness;
    const double trains = training_seconds(request);
    constexpr std::size_t kIterations = 48;
    std::array<std::array<double, 4>, 2> lasts{};
    for (std::uint32_t gpu = 0; gpu < 2; ++gpu) {
      for (std::uint32_t i = 0; i < 4; ++i) lasts[gpu][i] = replica_seconds(request, gpu, i);
    }
    std::array<double, 2> rolled{};
    std::vector<double> trained(kIterations);
    for (std::size_t k = 0; k < kIterations; ++k) {
      const std::size_t back = staleness + 1;
      const double weights = k < back ? 0 : trained[k - back];
      for (std::size_t gpu = 0; gpu < 2; ++gpu) {
        rolled[gpu] = std::max(rolled[gpu], weights) + lasts[gpu][k % 4];
      }
      trained[k] = std::max({k == 0 ? 0 : trained[k - 1], rolled[0], rolled[1]}) + trains;
    }
    EXPECT_NEAR(end_seconds(request, kIterations / 4), trained.back(), 0.01 * trained.back())
        << staleness;
  }
}

TEST(Rollout, ApartThoseWhoGenerateHoldWeightsTwiceAndTheCache) {
  const JobRequest request = apart_job();
  const ParallelPlan plan = plan_of(request);
  const SynthesisedJob job = synthesise(plan);
  ASSERT_EQ(job.program.ranks.size(), 4U);
  EXPECT_EQ(job.world_size, 4U);
  EXPECT_EQ(job.program.ranks[2].rank, 2U);
  EXPECT_EQ(job.memory[3].total(), 4 * elements_of(plan, 0).shared + *rollout_cache_bytes(request));
  ASSERT_EQ(job.program.ranks[3].memory.size(), 1U);
  EXPECT_NEAR(static_cast<double>(job.program.ranks[3].memory[0].bytes), job.memory[3].total(), 1);
}

TEST(Rollout, WhatNeedsGpusOfItsOwnIsRefusedWithoutThem) {
  JobRequest stale = rollout_job(2);
  stale.plan.rollout->staleness = 1;
  EXPECT_THAT(fault_of(stale), HasSubstr("expected \"generators\""));
  JobRequest uneven = apart_job();
  uneven.plan.rollout->generators = 3;
  EXPECT_THAT(fault_of(uneven), HasSubstr("found 3 for a batch of 8; expected a divisor"));
  JobRequest switches = apart_job();
  switches.plan.rollout->switch_time = Duration{1};
  EXPECT_THAT(fault_of(switches), HasSubstr("expected \"jobs\""));
}

TEST(Rollout, JobsThatTakeTurnsSayWhatThatTakes) {
  const auto with_jobs = [](const std::string& keys) {
    return parse_plan(R"({"global_batch": 4, "rollout": {"prompt_tokens": 1, "mean_tokens": 1,
        "cv": 1, "most_tokens": 1, "generators": 4)" + keys + "}}", "p");
  };
  const auto unsaid = error_of(with_jobs(R"(, "jobs": 2)"));
  EXPECT_THAT(unsaid.front().text(), HasSubstr("/rollout/switch: missing beside \"jobs\""));
  EXPECT_TRUE(with_jobs(R"(, "jobs": 2, "switch": "0ns")").has_value());
  EXPECT_TRUE(with_jobs(R"(, "jobs": 1)").has_value());
}

TEST(Rollout, KeysAreReadAndMayBeLeftOut) {
  const auto with = parse_plan(R"({"global_batch": 1, "rollout": {"prompt_tokens": 512,
      "mean_tokens": 2000, "cv": 1, "most_tokens": 16000, "spare": 1.25, "rounds": 4,
      "seed": 7, "max_num_seqs": 32, "max_num_batched_tokens": 4096, "kv_cache": "40GB",
      "generators": 4, "staleness": 1, "jobs": 2, "switch": "3s"}})", "p");
  ASSERT_TRUE(with.has_value() && with->rollout.has_value());
  EXPECT_EQ(with->rollout->prompt_tokens, 512U);
  EXPECT_EQ(with->rollout->spare, 1.25);
  EXPECT_EQ(with->rollout->rounds, 4U);
  EXPECT_EQ(with->rollout->max_num_seqs, 32U);
  EXPECT_EQ(with->rollout->kv_cache.value, 40'000'000'000U);
  EXPECT_EQ(with->rollout->distance(), 4U);
  EXPECT_EQ(with->rollout->switch_time, std::chrono::seconds{3});
  EXPECT_EQ(with->world_size(), 5U);
  EXPECT_FALSE(parse_plan(R"({"global_batch": 1})", "p")->rollout.has_value());
}

}  // namespace
}  // namespace bubblesim::synth
