#include "capture/replay/job_plan_file.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "tests/unit/capture/replay/plans.hpp"

namespace bubblesim::capture {
namespace {

using testing::full_plan;

std::string all_faults(const std::string& text) {
  const auto plan = parse_job_plan(text, "plan.json");
  if (plan) return "";
  std::string faults;
  for (const Error& error : plan.error()) faults += error.text() + "\n";
  return faults;
}

/// The full plan's text with one part exchanged.
std::string plan_with(const std::string& part, const std::string& other) {
  std::string text = job_plan_text(full_plan());
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part << " is not in " << text;
  return at == std::string::npos ? text : text.replace(at, part.size(), other);
}

void expect_fault(const std::string& text, const std::string& part) {
  EXPECT_NE(all_faults(text).find(part), std::string::npos) << all_faults(text);
}

TEST(JobPlanFile, APlanReadsBackAsItWasWritten) {
  const std::string text = job_plan_text(full_plan());
  const auto read = parse_job_plan(text, "plan.json");
  ASSERT_TRUE(read) << all_faults(text);
  EXPECT_EQ(job_plan_text(*read), text);
  const JobPlan plan = full_plan();
  EXPECT_EQ(read->name, plan.name);
  EXPECT_EQ(read->client, plan.client);
  EXPECT_EQ(read->role, plan.role);
  EXPECT_EQ(read->seed, plan.seed);
  EXPECT_EQ(read->program.own_kernels, plan.program.own_kernels);
  EXPECT_EQ(read->device_lags, plan.device_lags);
  EXPECT_EQ(read->forms, plan.forms);
  ASSERT_EQ(read->program.ops.size(), 3U);
  EXPECT_EQ(read->program.ops[1].duration, Duration{987654321987});
  EXPECT_EQ(read->program.ops[1].profile, 1U);
  EXPECT_EQ(copy_of(*read, read->program.ops[2]).path, CopyPath::kDeviceToHost);
  EXPECT_EQ(copy_of(*read, read->program.ops[2]).bytes, Bytes{4096});
  EXPECT_EQ(read->program.ops[2].gap.duration(), Duration{2});
  EXPECT_EQ(read->program.ops[2].first_edge, 1U);
  EXPECT_EQ(read->program.ops[2].edge_count, 2U);
  ASSERT_EQ(read->program.edges.size(), 3U);
  EXPECT_EQ(read->program.edges[0].lag.duration(), Duration{17});
  EXPECT_EQ(read->program.edges[2].before, 1U);
  EXPECT_FALSE(read->loop);
  ASSERT_TRUE(read->serve);
  EXPECT_EQ(read->serve->batching.batch_cost, 0.3);
  EXPECT_EQ(read->serve->arrivals, plan.serve->arrivals);
  ASSERT_EQ(read->program.threads.size(), 2U);
  const auto& steps = read->program.threads[1].steps;
  EXPECT_EQ(steps[0].detail, program::kNoIndex);
  const program::Step& wait = read->program.threads[0].steps[1];
  EXPECT_EQ(read->program.details[wait.detail].passes_back, 3U);
  EXPECT_EQ(read->program.details[steps[1].detail].after_thread, 0U);
  EXPECT_EQ(read->program.details[steps[1].detail].after_step, 1U);
  EXPECT_EQ(read->program.details[steps[2].detail].return_lag.duration(), Duration{6});
  EXPECT_TRUE(read->bubbles[0].info.pipeline);
}

TEST(JobPlanFile, EdgesAreWrittenInTheOrderOfTheOperationsThatWait) {
  JobPlan plan = full_plan();
  std::swap(plan.program.edges[0],
            plan.program.edges[2]);  // operation 1 has edge 2 now, operation 2 has 1 and 0
  std::swap(plan.program.edges[0], plan.program.edges[1]);
  plan.program.ops[1].first_edge = 2;
  plan.program.ops[2].first_edge = 0;
  EXPECT_EQ(job_plan_text(plan), job_plan_text(full_plan()));
}

TEST(JobPlanFile, AFileIsReplacedAsAWhole) {
  const std::string path = ::testing::TempDir() + "job_plan_file_test.json";
  ASSERT_TRUE(write_job_plan(path, testing::full_plan()));
  const auto read = read_job_plan(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->program.rank, 7U);
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  std::remove(path.c_str());
  EXPECT_FALSE(read_job_plan(path));
  EXPECT_FALSE(write_job_plan("/nowhere/at/all.json", testing::full_plan()));
}

TEST(JobPlanFile, FaultsNameTheirPlace) {
  expect_fault(plan_with("job plan 1", "job plan 9"), "/format");
  expect_fault(plan_with("\"rank\":7", "\"rank\":-7"), "/rank");
  expect_fault(plan_with("\"rank\":7", "\"rnak\":7"), "rank");
  expect_fault(plan_with("\"client\":3", "\"client\":16"), "/client");
  expect_fault(plan_with("\"online\"", "\"sometimes\""), "/role");
  expect_fault(plan_with("123456789", "-1"), "/start_offset_ns");
  expect_fault(plan_with("123456789", "1.5"), "/start_offset_ns");
  expect_fault(plan_with("987654321987", "-5"), "/ops/solo_ns");
  expect_fault(plan_with("987654321987", "9223372036854775807"), "/ops/solo_ns");
  expect_fault(plan_with("\"arrivals_ns\":[0,5,5]", "\"arrivals_ns\":[0,5,4]"),
               "arrivals ascend");
  expect_fault(plan_with("\"dram_share\":[0.0,0.1]", "\"dram_share\":[0,1.1]"),
               "/forms/dram_share");
  expect_fault(plan_with("\"names\":[", "\"names\":[5, "), "/names");
}

TEST(JobPlanFile, EveryIndexIsChecked) {
  expect_fault(plan_with("\"stream\":[0,1,1]", "\"stream\":[0,1,2]"), "/ops/stream");
  expect_fault(plan_with("\"form\":[0,1,-1]", "\"form\":[0,2,-1]"), "/ops/form");
  expect_fault(plan_with("\"form\":[0,1,-1]", "\"form\":[0,1,-2]"), "/ops/form");
  expect_fault(plan_with("\"name\":[0,1,0]", "\"name\":[0,2,0]"), "/ops/name");
  expect_fault(plan_with("\"before\":[0,0,1]", "\"before\":[0,0,3]"), "/edges/before");
  expect_fault(plan_with("\"before\":[0,0,1]", "\"before\":[0,0,2]"), "waits for itself");
  expect_fault(plan_with("\"edges\":[0,1,2]", "\"edges\":[0,1,3]"), "the operations have 4");
  expect_fault(plan_with("\"after_op\":[1,2]", "\"after_op\":[1,3]"), "/bubbles/after_op");
  expect_fault(plan_with("\"after_op\":[1,2]", "\"after_op\":[2,2]"), "in order");
  expect_fault(plan_with("\"marked_thread\":1", "\"marked_thread\":2"), "/marked_thread");
  expect_fault(plan_with("\"marked_thread\":1", "\"marked_thread\":0"), "the marked thread is 0");
  expect_fault(plan_with("\"count\":[2,0]", "\"count\":[3,0]"), "operation 2 a second time");
  expect_fault(plan_with("\"count\":[2,0]", "\"count\":[4,0]"), "there are 3 operations");
  expect_fault(plan_with("\"count\":[2,0]", "\"count\":[0,0]"), "launches no operation");
  expect_fault(plan_with("\"target\":[0,1]", "\"target\":[0,3]"), "waits for operation 3");
  expect_fault(plan_with("\"target\":[1,2,1", "\"target\":[2,2,1"), "begins iteration 2");
  expect_fault(plan_with("\"target\":[1,2,1", "\"target\":[1,2,2"), "waits for stream 2");
  expect_fault(plan_with("\"after_thread\":[-1,0,", "\"after_thread\":[-1,2,"),
               "thread 2; there");
  expect_fault(plan_with("\"after_thread\":[-1,0,", "\"after_thread\":[-1,1,"), "its own thread");
  expect_fault(plan_with("\"after_step\":[0,1,", "\"after_step\":[0,2,"), "there are 2 steps");
}

TEST(JobPlanFile, ColumnsMustBeAsLongAsTheirTable) {
  expect_fault(plan_with("\"stream\":[0,1,1]", "\"stream\":[0,1]"), "a column of 2 valid values");
  expect_fault(plan_with("\"stream\":[0,1,1]", "\"stream\":[0,1,1,1]"), "expected 3");
}

TEST(JobPlanFile, WhatIsWaitedForMustBeLaunched) {
  JobPlan plan = full_plan();
  plan.program.threads[1].steps.erase(plan.program.threads[1].steps.begin() + 1);
  plan.program.threads[0].steps[1].target = 2;
  expect_fault(job_plan_text(plan), "step 1 of thread 0 waits for operation 2, which no step");
  plan = full_plan();
  plan.program.threads[0].steps.clear();
  plan.program.threads[1].steps[1].detail = program::kNoIndex;
  expect_fault(job_plan_text(plan), "operation 2 waits for operation 0, which no step launches");
}

TEST(JobPlanFile, APlanLoopsOrServes) {
  JobPlan plan = full_plan();
  plan.loop = LoopMode{3};
  expect_fault(job_plan_text(plan), "loop");
  plan.loop.reset();
  plan.serve.reset();
  expect_fault(job_plan_text(plan), "loop");
  plan.program.threads.clear();
  plan.loop = LoopMode{3};
  expect_fault(job_plan_text(plan), "/marked_thread");
}

TEST(JobPlanFile, ATruncatedFileIsAFaultWhereverItEnds) {
  const std::string text = job_plan_text(full_plan());
  const std::size_t last = text.rfind('}');
  for (std::size_t size = 0; size <= last; ++size) {
    EXPECT_FALSE(parse_job_plan(std::string_view(text).substr(0, size), "plan.json")) << size;
  }
}

TEST(JobPlanFile, WrongTypesAreFaultsOfAnyKey) {
  const std::string text = job_plan_text(full_plan());
  const std::string colon = "\":";
  for (std::size_t at = text.find(colon); at != std::string::npos; at = text.find(colon, at + 1)) {
    std::string changed = text;
    changed.insert(at + colon.size(), "{\"x\":null}, \"y\":");
    EXPECT_FALSE(parse_job_plan(changed, "plan.json")) << changed.substr(at, 40);
  }
}

}  // namespace
}  // namespace bubblesim::capture
