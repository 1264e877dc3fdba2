// What is refused, with which words and which way out.
#include <gmock/gmock.h>

#include <fstream>
#include <functional>

#include "sim/synth/plan_file.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/synth/job/tiny_job.hpp"

namespace bubblesim::synth {
namespace {

using testing::HasSubstr;

std::string fault_of(const std::function<void(JobRequest&)>& change) {
  JobRequest request = tiny_job();
  change(request);
  const auto plan = plan_job(request);
  return plan ? "none" : plan.error().front().text();
}

TEST(Faults, ABatchThatDoesNotDivideNamesItsNeighbours) {
  EXPECT_THAT(fault_of([](JobRequest& job) {
                job.plan.data = 2;
                job.plan.global_batch = 5000;
              }),
              HasSubstr("tiny: /global_batch: found 5000; expected a multiple of data 2 x "
                        "micro-batch 1024 = 2048; nearest: 4096 or 6144"));
}

TEST(Faults, AClusterThatIsTooSmallSaysHowManyNodesWouldDo) {
  EXPECT_THAT(fault_of([](JobRequest& job) {
                job.plan.data = 32;
                set_micro_batches(job, 1);
              }),
              HasSubstr("is 32 GPUs; cluster plain has 16 (4 nodes of 4); 8 nodes would do"));
}

TEST(Faults, AStageHasNoMoreNeighboursThanAKernelHasWaits) {
  const auto fault_of_neighbours = [](std::uint32_t count) {
    return fault_of([&](JobRequest& job) {
      job.plan.schedule = "graph";
      job.plan.pipeline = count + 1;
      job.plan.stages.resize(count + 1);
      for (std::uint32_t s = 0; s < count; ++s) job.plan.stages[count].after.push_back(s);
      job.cluster.nodes = count;
      set_micro_batches(job, 1);
    });
  };
  EXPECT_THAT(fault_of_neighbours(120), testing::Not(HasSubstr("exchanges with")));
  EXPECT_EQ(fault_of_neighbours(121), "tiny: /stages/121/after: the stage exchanges with 121 "
                                      "others; expected at most 120");
}

TEST(Faults, ACollectiveHasNoMoreBlocksThanTheGpuHasSms) {
  const auto fault_of_channels = [](std::uint32_t count) {
    return fault_of([&](JobRequest& job) {
      job.gpu.sm_count = 132;
      job.cluster.collectives.node_channels = count;
    });
  };
  EXPECT_EQ(fault_of_channels(132), "none");
  EXPECT_EQ(fault_of_channels(133), "plain: /collectives/node_channels: found 133 blocks; "
                                    "expected at most 132, the SMs of plain");
}

TEST(Faults, SmsThatProductsCannotLeaveFreeAreRefused) {
  const auto fault_of_carveout = [](std::uint32_t compute_major, std::uint32_t carveout) {
    return fault_of([&](JobRequest& job) {
      job.gpu.compute_major = compute_major;
      job.plan.sm_carveout = carveout;
    });
  };
  EXPECT_EQ(fault_of_carveout(8, 0), "none");
  EXPECT_EQ(fault_of_carveout(9, 19999), "none");
  EXPECT_THAT(fault_of_carveout(8, 2),
              HasSubstr("tiny: /sm_carveout: found 2; products have a block a tile on plain, of "
                        "compute capability 8."));
  EXPECT_THAT(fault_of_carveout(9, 20000),
              HasSubstr("/sm_carveout: found 20000; expected less than 20000, the SMs of plain"));
}

TEST(Faults, ASequenceLongerThanItsPositionsNamesItsPlace) {
  const auto fault_of_sequence = [](model::Positions positions) {
    return fault_of([&](JobRequest& job) {
      model::TransformerSpec spec = llama_like(2, 1024);
      spec.positions = positions;
      spec.max_sequence = 1024;
      job.model = {"small decoder", spec};
      job.plan.sequence = 1025;
      job.plan.micro_batch = 1;
    });
  };
  EXPECT_EQ(fault_of_sequence(model::Positions::kLearned),
            "tiny: /sequence: found 1025 tokens; small decoder has positions for 1024");
  EXPECT_EQ(fault_of_sequence(model::Positions::kRotary), "none");
}

TEST(Faults, NodesWithoutANetworkAreNotACluster) {
  EXPECT_THAT(fault_of([](JobRequest& job) { job.cluster.nics.count = 0; }),
              HasSubstr("no network between nodes; found 4 nodes, expected 1"));
  EXPECT_THAT(fault_of([](JobRequest& job) {
                job.cluster.nics.count = 0;
                job.cluster.nodes = 1;
                job.plan.data = 8;
                set_micro_batches(job, 1);
              }),
              HasSubstr("it has no network between nodes: at most 4 GPUs"));
}

TEST(Faults, SizesOfZeroAreNotDividedBy) {
  for (const auto size : {&PlanSpec::data, &PlanSpec::tensor, &PlanSpec::context,
                          &PlanSpec::expert, &PlanSpec::pipeline, &PlanSpec::micro_batch}) {
    EXPECT_THAT(fault_of([&](JobRequest& job) { job.plan.*size = 0; }),
                HasSubstr("found 0; expected at least 1"));
  }
}

TEST(Faults, Fp8OnADeviceWithoutItIsRefusedWithWhatItHas) {
  EXPECT_THAT(fault_of([](JobRequest& job) {
                job.plan.precision = model::Precision::kFp8;
                job.efficiency.peak_flops = {1e13, 0, 1e14, 0, 0};
              }),
              HasSubstr("tiny: /precision: found fp8, which plain has no units for; it has fp32, "
                        "fp16"));
}

TEST(Precision, IsReplacedAsFrameworksDoAndCounted) {
  // A V100: bf16 takes as long as fp16 there, not as fp32, an eighth of its speed.
  JobRequest request = tiny_job();
  request.efficiency.peak_flops = {1.25e13, 0, 1e14, 0, 0};
  request.plan.precision = model::Precision::kFp16;
  const SynthesisedJob half = synthesise(plan_of(request));
  request.plan.precision = model::Precision::kBf16;
  const SynthesisedJob brain = synthesise(plan_of(request));
  ASSERT_EQ(half.program.ranks[0].ops.size(), brain.program.ranks[0].ops.size());
  for (std::size_t i = 0; i < half.program.ranks[0].ops.size(); ++i) {
    EXPECT_EQ(half.program.ranks[0].ops[i].duration, brain.program.ranks[0].ops[i].duration);
  }
  EXPECT_EQ(half.program.counters.count("precision_bf16_as_fp16"), 0U);
  EXPECT_EQ(brain.program.counters.count("precision_bf16_as_fp16"), 1U);
  request.plan.precision = model::Precision::kTf32;
  EXPECT_EQ(synthesise(plan_of(request)).program.counters.count("precision_tf32_as_fp32"), 1U);
}

TEST(Faults, ExpertsDivideTheReplicas) {
  EXPECT_THAT(fault_of([](JobRequest& job) {
                job.plan.data = 4;
                set_micro_batches(job, 1);
                job.plan.expert = 3;
              }),
              HasSubstr("/expert: found 3; expected a divisor of data x context = 4; nearest "
                        "below: 2"));
}

TEST(Faults, ATensorSizeThatDoesNotDivideTheModelNamesTheNearest) {
  const std::string text = fault_of([](JobRequest& job) {
    job.model = model::gpt(1024, 4, 16, 1024, 256);
    job.plan.tensor = 3;
    job.plan.global_batch = job.plan.micro_batch = 1;
  });
  EXPECT_THAT(text, HasSubstr("tiny: "));
  EXPECT_THAT(text, testing::AnyOf(HasSubstr("2"), HasSubstr("4")));
}

TEST(Faults, StagesThatDoNotDivideTheBlocksNameTheNearest) {
  EXPECT_THAT(fault_of([](JobRequest& job) {
                job.model = model::gpt(1024, 8, 16, 1024, 256);
                job.plan.pipeline = 3;
                job.plan.global_batch = job.plan.micro_batch = 1;
              }),
              HasSubstr("/pipeline: 8 blocks do not divide into 3 stages; stage counts that "
                        "divide nearest: 2 or 4"));
}

TEST(Faults, ExpertBlocksAreBlocks) {
  EXPECT_THAT(fault_of([](JobRequest& job) {
                job.model = model::gpt(1024, 8, 16, 1024, 256);
                std::get<model::TransformerSpec>(job.model.network).mixture =
                    model::MixtureSpec{4, 2, 4096, 0, 2, 1};
                job.plan.pipeline = 3;
                job.plan.global_batch = job.plan.micro_batch = 1;
              }),
              HasSubstr("8 blocks do not divide into 3 stages"));
}

TEST(Faults, AnUnknownScheduleHasANearestName) {
  EXPECT_THAT(fault_of([](JobRequest& job) { job.plan.schedule = "1f1"; }), HasSubstr("1f1b"));
}

TEST(Faults, WideAreaModesNeedRegionsWithWholeReplicas) {
  EXPECT_THAT(fault_of([](JobRequest& job) {
                job.plan.wide_area = {WideAreaMode::kAveraging, 2};
              }),
              HasSubstr("cluster plain has no regions"));
  EXPECT_THAT(fault_of([](JobRequest& job) {
                job.plan.wide_area = {WideAreaMode::kAveraging, 2};
                job.cluster.regions = hardware::RegionSpec{2, BytesPerSecond{1e9}, {}};
                job.plan.data = 12;
                set_micro_batches(job, 1);
              }),
              HasSubstr("multiple of 8 GPUs"));
}

std::string write_csv(const char* name, const char* text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

TEST(Faults, AScheduleThatDeadlocksIsRefused) {
  const std::string path = write_csv("deadlock.csv", "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n");
  const std::string text = fault_of([&](JobRequest& job) {
    job.plan.pipeline = 2;
    set_micro_batches(job, 2);
    job.plan.schedule_csv = path;
  });
  EXPECT_THAT(text, HasSubstr("deadlock.csv"));
  EXPECT_NE(text, "none");
}

TEST(Faults, AScheduleOfAnotherSizeIsRefused) {
  const std::string path = write_csv("small.csv", "0F0,0B0\n1F0,1B0\n");
  EXPECT_THAT(fault_of([&](JobRequest& job) {
                job.plan.pipeline = 2;
                set_micro_batches(job, 2);
                job.plan.schedule_csv = path;
              }),
              HasSubstr("a schedule of 2 ranks and 1 micro-batches; the plan has 2 and 2"));
}

// The plan that the fault names does fit.
TEST(Faults, APlanThatDoesNotFitComesWithOneThatDoes) {
  JobRequest request = tiny_job();
  request.plan.data = 8;
  set_micro_batches(request, 1);
  request.gpu.memory = Bytes{1'500'000'000};  // 16 bytes of 134 million parameters are 2.1 GB
  const auto plan = error_of(plan_job(request));
  EXPECT_THAT(plan.front().text(), HasSubstr("pipeline rank 0 needs 2."));
  EXPECT_THAT(plan.front().text(),
              HasSubstr("nearest that fits: \"sharding\": \"optimizer\""));
  request.plan.sharding = Sharding::kOptimizer;
  EXPECT_TRUE(plan_job(request));
}

TEST(Faults, WhereShardsDoNotSufficeMoreStagesDo) {
  JobRequest request = tiny_job();
  request.gpu.memory = Bytes{1'500'000'000};
  const auto plan = error_of(plan_job(request));
  const std::string text = plan.front().text();
  EXPECT_THAT(text, HasSubstr("\"tensor\": 1, \"pipeline\": "));
  request.plan.pipeline = static_cast<std::uint32_t>(text.back() - '0');
  request.plan.micro_batch = 1;
  EXPECT_TRUE(plan_job(request)) << text;
}

TEST(PlanFile, AllFaultsAtOnce) {
  const auto plan = error_of(parse_plan(
      R"({"data": 0, "global_batch": 8, "schedul": "1f1b", "stages": [{"after": [0]}]})", "here"));
  EXPECT_EQ(plan.size(), 3U);
}

TEST(PlanFile, GradientsAreAsWideAsTheWeightsUnlessTold) {
  EXPECT_EQ(parse_plan(R"({"global_batch": 8, "precision": "fp32"})", "")->gradients.element_bytes,
            4);
  EXPECT_EQ(parse_plan(R"({"global_batch": 8})", "")->gradients.element_bytes, 2);
}

}  // namespace
}  // namespace bubblesim::synth
