// Pipelines whose stages form a graph (GraphPipe, arXiv 2406.17145).
#include <gmock/gmock.h>

#include "sim/model/model_spec.hpp"
#include "sim/synth/plan_file.hpp"
#include "sim/synth/stage_layers.hpp"
#include "tests/unit/sim/synth/job/tiny_job.hpp"

namespace bubblesim::synth {
namespace {

using testing::HasSubstr;

GraphStageSpec stage(std::uint32_t first, std::uint32_t last, std::vector<std::uint32_t> after,
                     std::uint32_t micro_batch = 1) {
  return {first, last, {}, std::move(after), micro_batch};
}

// Two branches of 8 layers (0 to 7, 8 to 15), then join and output (16, 17).
JobRequest two_branches(std::vector<GraphStageSpec> stages) {
  JobRequest request = tiny_job();
  request.model = linear_layers(8, 2);
  request.plan.pipeline = static_cast<std::uint32_t>(stages.size());
  request.plan.schedule = "graph";
  request.plan.stages = std::move(stages);
  set_micro_batches(request, 8);
  return request;
}

std::vector<GraphStageSpec> chain() {
  return {stage(0, 4, {}), stage(4, 8, {0}), stage(8, 12, {1}), stage(12, 16, {2}),
          stage(16, 18, {3})};
}

std::vector<GraphStageSpec> branches(std::uint32_t size = 1) {
  return {stage(0, 4, {}, size), stage(4, 8, {0}, size), stage(8, 12, {}, size),
          stage(12, 16, {2}, size), stage(16, 18, {1, 3}, size)};
}

TEST(GraphPipeline, ParallelBranchesHaveAShorterWarmUp) {
  const ParallelPlan chained = plan_of(two_branches(chain()));
  const ParallelPlan two = plan_of(two_branches(branches()));
  EXPECT_EQ(pipeline::depth(chained.graph), 5U);
  EXPECT_EQ(pipeline::depth(two.graph), 3U);
  const double long_way = seconds(chained, synthesise(chained));
  const double short_way = seconds(two, synthesise(two));
  // Both have 8 micro-batches of equal stages: about 8 + 4 slots against 8 + 2.
  EXPECT_NEAR(long_way / short_way, 12.0 / 10, 0.06);
  EXPECT_NEAR((short_way - optimizer_seconds(synthesise(two).program.ranks[0])) /
                  table_seconds(two), 1, 0.03);
}

TEST(GraphPipeline, AnOutputIsRelayedWhereThereIsNoEdge) {
  const ParallelPlan plan = plan_of(two_branches(chain()));
  const double stage = 1024.0 * 4096 * 2;
  // The first branch's output goes on beside the second branch's.
  EXPECT_EQ(plan.stages[0].sent_bytes[0], stage);
  EXPECT_EQ(plan.stages[1].sent_bytes[0], stage);
  EXPECT_EQ(plan.stages[2].sent_bytes[0], 2 * stage);
  EXPECT_EQ(plan.stages[3].sent_bytes[0], 2 * stage);
}

TEST(GraphPipeline, LargerMicroBatchesHaveLargerAndFewerKernels) {
  const ParallelPlan ones = plan_of(two_branches(branches()));
  const ParallelPlan twos = plan_of(two_branches(branches(2)));
  const SynthesisedJob a = synthesise(ones);
  const SynthesisedJob b = synthesise(twos);
  EXPECT_NEAR(b.flops / a.flops, 1, 1e-9);
  EXPECT_EQ(twos.graph.stages[0].micro_batches, 4U);
  EXPECT_EQ(activation_bytes(twos, 0).forward, 2 * activation_bytes(ones, 0).forward);
  EXPECT_EQ(bytes_of_kind(a, traces::CollectiveKind::kSend),
            bytes_of_kind(b, traces::CollectiveKind::kSend));
  EXPECT_LT(b.program.ranks[0].ops.size(), a.program.ranks[0].ops.size());
}

TEST(GraphPipeline, StagesWithDifferentMicroBatchesRunToTheEnd) {
  for (const std::uint32_t last : {1U, 2U, 4U}) {
    auto stages = branches();
    stages[2].micro_batch = stages[3].micro_batch = 2;
    stages[4].micro_batch = last;
    const ParallelPlan plan = plan_of(two_branches(stages));
    const SynthesisedJob job = synthesise(plan);
    EXPECT_TRUE(time_alone(job.program, plan.request.gpu)) << last;
    // What is sent does not depend on how it is cut: 4 edges, both ways, 8 micro-batches.
    EXPECT_EQ(bytes_of_kind(job, traces::CollectiveKind::kSend), 4 * 2 * 8 * 1024.0 * 4096 * 2);
  }
}

// The last stage takes 300 micro-batches of the others at once: its first kernel waits for 600
// receives, on the two streams that they came by.
TEST(GraphPipeline, AKernelWaitsForMoreReceivesThanItHasEdges) {
  auto stages = branches();
  stages[4].micro_batch = 300;
  JobRequest request = two_branches(stages);
  set_micro_batches(request, 300);
  const ParallelPlan plan = plan_of(request);
  const SynthesisedJob job = synthesise(plan);
  EXPECT_TRUE(time_alone(job.program, plan.request.gpu));
  EXPECT_EQ(bytes_of_kind(job, traces::CollectiveKind::kSend), 4 * 2 * 300 * 1024.0 * 4096 * 2);
}

TEST(GraphPipeline, ShippedModelsRunByNamesOfBranches) {
  for (const auto& [model, branch, count] :
       {std::tuple{"mmt", "modality", 4}, std::tuple{"candle-uno", "feature", 7}}) {
    JobRequest request = tiny_job();
    request.model = *model::find_model(model, std::string(BUBBLESIM_SOURCE_DIR) +
                                                  "/configs/models");
    GraphStageSpec join;
    join.branches = {"join"};
    for (int i = 0; i < count; ++i) {
      GraphStageSpec stage;
      stage.branches = {std::string(branch) + "/" + std::to_string(i)};
      request.plan.stages.push_back(stage);
      join.after.push_back(static_cast<std::uint32_t>(i));
    }
    request.plan.stages.push_back(join);
    request.plan.pipeline = static_cast<std::uint32_t>(count + 1);
    request.plan.schedule = "graph";
    request.plan.micro_batch = 4;
    set_micro_batches(request, 8);
    const double parallel = seconds(request);
    for (std::uint32_t i = 1; i < request.plan.pipeline; ++i) {
      request.plan.stages[i].after = {i - 1};
    }
    EXPECT_LT(parallel, seconds(request)) << model;
  }
}

std::string fault_of(std::vector<GraphStageSpec> stages) {
  const auto plan = plan_job(two_branches(std::move(stages)));
  return plan ? "none" : plan.error().front().text();
}

TEST(GraphPipeline, FaultsOfStages) {
  auto stages = branches();
  stages[4].after = {1};
  EXPECT_THAT(fault_of(stages), HasSubstr("/stages/4/after: stage 4 reads layer 15, which is in "
                                          "stage 3; expected 3 in \"after\""));
  stages = branches();
  stages[3].first = 13;
  EXPECT_THAT(fault_of(stages), HasSubstr("layers 12 to 12 are in no stage"));
  stages = branches();
  stages[3].first = 11;
  EXPECT_THAT(fault_of(stages), HasSubstr("layer 11 is in two stages"));
  stages = branches();
  stages[4].last = 20;
  EXPECT_THAT(fault_of(stages), HasSubstr("the model has 18"));
  stages = branches();
  stages[0].after = {4};
  EXPECT_THAT(fault_of(stages), HasSubstr("cycle"));
  stages = branches(3);
  EXPECT_THAT(fault_of(stages), HasSubstr("nearest: 6 or 9"));
  stages = branches();
  stages[0] = {0, 0, {"dens/0"}, {}, 1};
  EXPECT_THAT(fault_of(stages), HasSubstr("did you mean \"dense/0\"?"));
}

// An embedding, 4 blocks and an output layer: 0 to 5, each of which reads the one before.
JobRequest decoder(std::vector<GraphStageSpec> stages) {
  JobRequest request = two_branches(std::move(stages));
  request.model = {"small decoder", llama_like(4, 1024)};
  request.plan.sequence = 256;
  request.plan.micro_batch = 4;
  set_micro_batches(request, 8);
  return request;
}

std::string fault_of_decoder(std::vector<GraphStageSpec> stages) {
  const auto plan = plan_job(decoder(std::move(stages)));
  return plan ? "none" : plan.error().front().text();
}

TEST(GraphPipeline, StagesOfAModelInARowFollowItsLayers) {
  EXPECT_THAT(fault_of_decoder({stage(0, 3, {}), stage(3, 6, {})}),
              HasSubstr("/stages/1/after: stage 1 reads layer 2, which is in stage 0; expected 0 "
                        "in \"after\", or a stage that comes after it"));
  EXPECT_THAT(fault_of_decoder({stage(0, 3, {1}), stage(3, 6, {})}),
              HasSubstr("/stages/1/after: stage 1 reads layer 2, which is in stage 0"));
  EXPECT_THAT(fault_of_decoder({stage(0, 2, {}), stage(2, 4, {0}), stage(4, 6, {0})}),
              HasSubstr("/stages/2/after: stage 2 reads layer 3, which is in stage 1"));
  const ParallelPlan plan = plan_of(decoder({stage(0, 3, {}), stage(3, 6, {0})}));
  EXPECT_EQ(plan.stages[0].sent_bytes, std::vector<double>{4 * 256 * 1024 * 2});
}

TEST(GraphPipeline, IsReadFromPlans) {
  const auto plan = parse_plan(R"({"pipeline": 2, "global_batch": 8, "schedule": "graph",
      "stages": [{"layers": [0, 4]}, {"branches": ["join"], "after": [0], "micro_batch": 2}]})",
                               "here");
  ASSERT_TRUE(plan) << plan.error().front().text();
  ASSERT_EQ(plan->stages.size(), 2U);
  EXPECT_EQ(plan->stages[0].last, 4U);
  EXPECT_EQ(plan->stages[1].branches, std::vector<std::string>{"join"});
  EXPECT_EQ(plan->stages[1].after, std::vector<std::uint32_t>{0});
  EXPECT_EQ(plan->stages[1].micro_batch, 2U);
}

}  // namespace
}  // namespace bubblesim::synth
