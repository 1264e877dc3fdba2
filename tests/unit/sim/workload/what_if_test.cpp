// Counterfactuals: what their texts mean, and what they change. Times in us.
#include "sim/workload/what_if.hpp"

#include <gmock/gmock.h>

#include <string>

#include "tests/fault.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::workload {
namespace {

using testing::HasSubstr, testing::StartsWith;

struct Text {
  std::string text;
  WhatIfTarget target;
  std::string name;
  std::optional<std::uint32_t> rank;
  double speed;
};

TEST(WhatIfText, EveryTargetIsRead) {
  const std::vector<Text> texts{
      {"kernels=2", WhatIfTarget::kAllKernels, "", {}, 2},
      {"compute=1.5", WhatIfTarget::kComputeKernels, "", {}, 1.5},
      {"memory=0.25", WhatIfTarget::kMemoryKernels, "", {}, 0.25},
      {"kernel:gemm=4", WhatIfTarget::kNamedKernels, "gemm", {}, 4},
      {"kernel:f<a=b>=4", WhatIfTarget::kNamedKernels, "f<a=b>", {}, 4},
      {"copies=2", WhatIfTarget::kCopies, "", {}, 2},
      {"link@0=0.5", WhatIfTarget::kLink, "", 0U, 0.5},
      {"host@3=8e-1", WhatIfTarget::kHost, "", 3U, 0.8},
  };
  for (const Text& expected : texts) {
    const auto change = parse_what_if(expected.text);
    ASSERT_TRUE(change) << change.error().text();
    EXPECT_EQ(change->target, expected.target) << expected.text;
    EXPECT_EQ(change->name, expected.name);
    EXPECT_EQ(change->rank, expected.rank);
    EXPECT_EQ(change->speed, expected.speed);
  }
}

TEST(WhatIfText, SeveralChangesHaveCommasBetweenThem) {
  const auto changes = parse_what_ifs("kernels=2,kernel:f<a,b>=4,host@1=0.5");
  ASSERT_TRUE(changes) << changes.error().text();
  ASSERT_EQ(changes->size(), 3U);
  EXPECT_EQ(changes->at(0).target, WhatIfTarget::kAllKernels);
  EXPECT_EQ(changes->at(1).name, "f<a,b>");
  EXPECT_EQ(changes->at(2).rank, 1U);
  for (const char* text : {"kernels=2,", "kernels=2,,host=2", "kernels=2,gpu=2", ","}) {
    EXPECT_FALSE(parse_what_ifs(text)) << text;
  }
}

TEST(WhatIfText, FaultsSayWhatWasFoundAndWhatIsAllowed) {
  const auto message = [](const std::string& text) {
    const auto change = parse_what_if(text);
    return change ? "accepted " + text : change.error().text();
  };
  for (const std::string text : {"", "host", "compute:2", "=", "host=2="}) {
    EXPECT_THAT(message(text), StartsWith("--what-if: found \"" + text + "\": ")) << text;
    EXPECT_THAT(message(text), HasSubstr("expected TARGET[@RANK]=SPEED"));
  }
  EXPECT_THAT(message("host"), HasSubstr("no '='"));
  for (const std::string speed : {"", "0", "-1", "nan", "inf", "fast", "2x", " 2", "1e9", "1e-300",
                                  "0x2", "1e999"}) {
    EXPECT_THAT(message("host=" + speed), HasSubstr("the speed is not a number")) << speed;
  }
  for (const std::string target : {"", "gpu", "Host", "kernel:", "kernel", "host "}) {
    EXPECT_THAT(message(target + "=2"), HasSubstr("unknown target")) << target;
  }
  for (const std::string rank : {"", "-1", "x", "1.5", "4294967296", " 1"}) {
    EXPECT_THAT(message("host@" + rank + "=2"), HasSubstr("rank after '@'")) << rank;
  }
}

/// Two ranks of a compute kernel (40), a memory kernel (40), a copy (40), a collective (40).
JobProgram two_ranks() {
  JobProgram job;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ProgramMaker maker;
    maker.rank(rank).kernel(10, 40).kernel(10, 40).copy_and_wait(10, 40, 0);
    maker.collective(10, 40, program::kNoIndex).end();
    program::Program program = maker.program();
    program.profiles.assign(2, program.profiles.front());
    program.profiles[0].kernel_class = program::KernelClass::kCompute;
    program.profiles[1].kernel_class = program::KernelClass::kMemory;
    program.ops[1].profile = 1;
    program.ops[0].name = program.names.intern("gemm_128");
    program.ops[1].name = program.names.intern("elementwise");
    for (std::size_t i : {2U, 3U}) program.ops[i].name = program.names.intern("other");
    job.ranks.push_back(std::move(program));
  }
  return job;
}

std::vector<std::int64_t> durations(const program::Program& program) {
  std::vector<std::int64_t> result;
  for (const program::Op& op : program.ops) result.push_back(microseconds(op.duration));
  return result;
}

using Lengths = std::vector<std::int64_t>;

Lengths after(const std::string& text, std::size_t rank) {
  JobProgram job = two_ranks();
  apply(*parse_what_if(text), job);
  return durations(job.ranks[rank]);
}

TEST(WhatIf, OnlyWhatIsNamedChanges) {
  EXPECT_EQ(after("kernels=2", 1), (Lengths{20, 20, 40, 40}));
  EXPECT_EQ(after("compute=0.5", 1), (Lengths{80, 40, 40, 40}));
  EXPECT_EQ(after("memory=4", 1), (Lengths{40, 10, 40, 40}));
  EXPECT_EQ(after("kernel:gemm=2", 1), (Lengths{20, 40, 40, 40}));
  EXPECT_EQ(after("copies=2", 1), (Lengths{40, 40, 20, 40}));
  EXPECT_EQ(after("link=0.1", 1), (Lengths{40, 40, 40, 400}));
  EXPECT_EQ(after("host=2", 1), (Lengths{40, 40, 40, 40}));
}

TEST(WhatIf, OnlyTheRankThatIsNamedChanges) {
  EXPECT_EQ(after("kernels@1=2", 0), (Lengths{40, 40, 40, 40}));
  EXPECT_EQ(after("kernels@1=2", 1), (Lengths{20, 20, 40, 40}));
}

TEST(WhatIf, TheHostsThinkTimeAndCallsChange) {
  JobProgram job = two_ranks();
  job.ranks[0].threads[0].steps[0].cost = short_us(6);
  apply(*parse_what_if("host@0=2"), job);
  EXPECT_EQ(microseconds(job.ranks[0].threads[0].steps[0].think), 5);
  EXPECT_EQ(microseconds(job.ranks[0].threads[0].steps[0].cost), 3);
  EXPECT_EQ(microseconds(job.ranks[1].threads[0].steps[0].think), 10);
}

TEST(WhatIf, a_rank_that_the_job_does_not_have_is_an_error_that_names_its_ranks) {
  const JobProgram job = two_ranks();
  EXPECT_TRUE(check_concerns(*parse_what_if("host@1=2"), "host@1=2", job));
  EXPECT_TRUE(check_concerns(*parse_what_if("host=2"), "host=2", job));
  EXPECT_EQ(error_of(check_concerns(*parse_what_if("host@99=2"), "host@99=2", job)).text(),
            "--what-if: found \"host@99=2\": the job has no rank 99; expected one of 0, 1");
}

TEST(WhatIf, AKernelThatTheJobDoesNotHaveIsAnError) {
  const auto refused =
      error_of(check_concerns(*parse_what_if("kernel:nosuch=2"), "kernel:nosuch=2", two_ranks()));
  EXPECT_THAT(refused.text(), HasSubstr("no kernel's name contains \"nosuch\""));
}

// 10 us at a millionth of the speed are 10 s, and a step holds 4.29 s.
TEST(WhatIf, ASpanThatNoStepCanHoldIsCountedAsClamped) {
  JobProgram job = two_ranks();
  apply(*parse_what_if("host@0=1e-6"), job);
  EXPECT_EQ(job.ranks[0].counters.count("program_spans_clamped"), 4U);
  EXPECT_EQ(job.ranks[1].counters.count("program_spans_clamped"), 0U);
  EXPECT_EQ(job.counters.count("program_spans_clamped"), 4U);
}

}  // namespace
}  // namespace bubblesim::workload
