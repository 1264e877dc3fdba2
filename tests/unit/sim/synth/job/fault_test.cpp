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

std::string write_csv(const char* name, const char* text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

/// A graph's stage that exchanges with so many others.
void add_neighbours(JobRequest& job, std::uint32_t count) {
  job.plan.schedule = "graph";
  job.plan.pipeline = count + 1;
  job.plan.stages.resize(count + 1);
  for (std::uint32_t s = 0; s < count; ++s) job.plan.stages[count].after.push_back(s);
  job.cluster.nodes = count;
  set_micro_batches(job, 1);
}

/// A decoder with positions for 1024 tokens is trained on 1025.
void exceed_positions(JobRequest& job, model::Positions positions) {
  model::TransformerSpec spec = llama_like(2, 1024);
  spec.positions = positions;
  spec.max_sequence = 1024;
  job.model = {"small decoder", spec};
  job.plan.sequence = 1025;
  job.plan.micro_batch = 1;
}

/// A GPT of 16 heads is trained on a sample an iteration.
void train_gpt(JobRequest& job, std::uint32_t blocks) {
  job.model = model::gpt(1024, blocks, 16, 1024, 256);
  job.plan.global_batch = job.plan.micro_batch = 1;
}

void replicate(JobRequest& job, std::uint32_t data) {
  job.plan.data = data;
  set_micro_batches(job, 1);
}

void schedule_two_stages(JobRequest& job, const std::string& csv) {
  job.plan.pipeline = 2;
  set_micro_batches(job, 2);
  job.plan.schedule_csv = csv;
}

/// A change of tiny_job() and what is said of it; "none": it is accepted.
struct Refused {
  const char* name;
  std::function<void(JobRequest&)> change;
  testing::Matcher<std::string> fault;
};

TEST(Faults, SayWhatIsRefusedAndTheWayOut) {
  const std::string deadlock = write_csv("deadlock.csv", "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n");
  const std::string small = write_csv("small.csv", "0F0,0B0\n1F0,1B0\n");
  const WideAreaPlan averaging{WideAreaMode::kAveraging, 2};
  for (const Refused& row : {
           Refused{"a batch that does not divide names its neighbours",
                   [](JobRequest& job) {
                     job.plan.data = 2;
                     job.plan.global_batch = 5000;
                   },
                   HasSubstr("tiny: /global_batch: found 5000; expected a multiple of data 2 x "
                             "micro-batch 1024 = 2048; nearest: 4096 or 6144")},
           {"a cluster that is too small says how many nodes would do",
            [](JobRequest& job) { replicate(job, 32); },
            HasSubstr("is 32 GPUs; cluster plain has 16 (4 nodes of 4); 8 nodes would do")},
           {"a stage has no more neighbours than a kernel has waits",
            [](JobRequest& job) { add_neighbours(job, 120); },
            testing::Not(HasSubstr("exchanges with"))},
           {"one more", [](JobRequest& job) { add_neighbours(job, 121); },
            "tiny: /stages/121/after: the stage exchanges with 121 others; expected at most 120"},
           {"a collective has no more blocks than the GPU has SMs",
            [](JobRequest& job) { job.gpu.sm_count = job.cluster.collectives.node_channels = 132; },
            "none"},
           {"one more",
            [](JobRequest& job) {
              job.gpu.sm_count = 132;
              job.cluster.collectives.node_channels = 133;
            },
            "plain: /collectives/node_channels: found 133 blocks; expected at most 132, the SMs of "
            "plain"},
           {"no SMs are left free", [](JobRequest& job) { job.gpu.compute_major = 8; }, "none"},
           {"all SMs but one are left free",
            [](JobRequest& job) {
              job.gpu.compute_major = 9;
              job.plan.sm_carveout = 19999;
            },
            "none"},
           {"SMs that products cannot leave free",
            [](JobRequest& job) {
              job.gpu.compute_major = 8;
              job.plan.sm_carveout = 2;
            },
            HasSubstr("tiny: /sm_carveout: found 2; products have a block a tile on plain, of "
                      "compute capability 8.")},
           {"all SMs are left free",
            [](JobRequest& job) {
              job.gpu.compute_major = 9;
              job.plan.sm_carveout = 20000;
            },
            HasSubstr("/sm_carveout: found 20000; expected less than 20000, the SMs of plain")},
           {"a sequence longer than its positions names its place",
            [](JobRequest& job) { exceed_positions(job, model::Positions::kLearned); },
            "tiny: /sequence: found 1025 tokens; small decoder has positions for 1024"},
           {"rotary positions have no end",
            [](JobRequest& job) { exceed_positions(job, model::Positions::kRotary); }, "none"},
           {"nodes without a network are not a cluster",
            [](JobRequest& job) { job.cluster.nics.count = 0; },
            HasSubstr("no network between nodes; found 4 nodes, expected 1")},
           {"a node without a network ends at its GPUs",
            [](JobRequest& job) {
              job.cluster.nics.count = 0;
              job.cluster.nodes = 1;
              replicate(job, 8);
            },
            HasSubstr("it has no network between nodes: at most 4 GPUs")},
           {"FP8 on a device without it is refused with what it has",
            [](JobRequest& job) {
              job.plan.precision = model::Precision::kFp8;
              job.efficiency.peak_flops = {1e13, 0, 1e14, 0, 0};
            },
            HasSubstr("tiny: /precision: found fp8, which plain has no units for; it has fp32, "
                      "fp16")},
           {"experts divide the replicas",
            [](JobRequest& job) {
              replicate(job, 4);
              job.plan.expert = 3;
            },
            HasSubstr("/expert: found 3; expected a divisor of data x context = 4; nearest below: "
                      "2")},
           {"a tensor size that does not divide the model names the nearest",
            [](JobRequest& job) {
              train_gpt(job, 4);
              job.plan.tensor = 3;
            },
            testing::AllOf(HasSubstr("tiny: "),
                           testing::AnyOf(HasSubstr("2"), HasSubstr("4")))},
           {"stages that do not divide the blocks name the nearest",
            [](JobRequest& job) {
              train_gpt(job, 8);
              job.plan.pipeline = 3;
            },
            HasSubstr("/pipeline: 8 blocks do not divide into 3 stages; stage counts that divide "
                      "nearest: 2 or 4")},
           {"expert blocks are blocks",
            [](JobRequest& job) {
              train_gpt(job, 8);
              std::get<model::TransformerSpec>(job.model.network).mixture =
                  model::MixtureSpec{4, 2, 4096, 0, 2, 1};
              job.plan.pipeline = 3;
            },
            HasSubstr("8 blocks do not divide into 3 stages")},
           {"an unknown schedule has a nearest name",
            [](JobRequest& job) { job.plan.schedule = "1f1"; }, HasSubstr("1f1b")},
           {"wide-area modes need regions",
            [&](JobRequest& job) { job.plan.wide_area = averaging; },
            HasSubstr("cluster plain has no regions")},
           {"regions have whole replicas",
            [&](JobRequest& job) {
              job.plan.wide_area = averaging;
              job.cluster.regions = hardware::RegionSpec{2, BytesPerSecond{1e9}, {}};
              replicate(job, 12);
            },
            HasSubstr("multiple of 8 GPUs")},
           {"a schedule that deadlocks",
            [&](JobRequest& job) { schedule_two_stages(job, deadlock); },
            HasSubstr("deadlock.csv")},
           {"a schedule of another size", [&](JobRequest& job) { schedule_two_stages(job, small); },
            HasSubstr("a schedule of 2 ranks and 1 micro-batches; the plan has 2 and 2")}}) {
    JobRequest request = tiny_job();
    row.change(request);
    EXPECT_THAT(fault_of(request), row.fault) << row.name;
  }
}

TEST(Faults, SizesOfZeroAreNotDividedBy) {
  for (const auto size : {&PlanSpec::data, &PlanSpec::tensor, &PlanSpec::context,
                          &PlanSpec::expert, &PlanSpec::pipeline, &PlanSpec::micro_batch}) {
    JobRequest request = tiny_job();
    request.plan.*size = 0;
    EXPECT_THAT(fault_of(request), HasSubstr("found 0; expected at least 1"));
  }
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
