// Plans and records as files: whole or refused, and no index of a plan that refers to nothing.
#include "capture/replay/job_files.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <functional>

#include "tests/unit/capture/replay/plans.hpp"

namespace bubblesim::capture {
namespace {

using testing::full_plan;

TEST(JobFiles, APlanReadsBackAsItWasWritten) {
  const std::string bytes = job_plan_bytes(full_plan());
  const auto read = parse_job_plan(bytes, "plan");
  ASSERT_TRUE(read) << read.error().front().text();
  EXPECT_EQ(job_plan_bytes(*read), bytes);
  const JobPlan plan = full_plan();
  EXPECT_EQ(read->name, plan.name);
  EXPECT_EQ(read->client, plan.client);
  EXPECT_EQ(read->role, plan.role);
  EXPECT_EQ(read->seed, plan.seed);
  EXPECT_EQ(read->program.own_kernels, plan.program.own_kernels);
  EXPECT_EQ(read->device_lags, plan.device_lags);
  EXPECT_EQ(read->forms, plan.forms);
  EXPECT_EQ(read->program.names[NameId{1}], "void gemm<float, 128>(float*)");
  ASSERT_EQ(read->program.ops.size(), 3U);
  EXPECT_EQ(read->program.ops[1].duration, Duration{987654321987});
  EXPECT_EQ(copy_of(*read, read->program.ops[2]).bytes, Bytes{4096});
  EXPECT_EQ(read->program.ops[2].edge_count, 2U);
  EXPECT_FALSE(read->loop);
  ASSERT_TRUE(read->serve);
  EXPECT_EQ(read->serve->batching.batch_cost, 0.3);
  EXPECT_EQ(read->serve->arrivals, plan.serve->arrivals);
  ASSERT_EQ(read->program.threads.size(), 2U);
  EXPECT_EQ(read->program.threads[1].name, "other");
  const program::Step& wait = read->program.threads[0].steps[1];
  EXPECT_EQ(read->program.details[wait.detail].passes_back, 3U);
  EXPECT_TRUE(read->bubbles[0].info.pipeline);
}

TEST(JobFiles, NoOtherRankIsThereForTheReader) {
  JobPlan plan = full_plan();
  plan.program.ops[0].collective = 4;
  plan.program.ops[0].result_slot = 2;
  plan.program.details[0].after_rank = 1;
  const auto read = parse_job_plan(job_plan_bytes(plan), "plan");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->program.ops[0].collective, program::kNoIndex);
  EXPECT_EQ(read->program.ops[0].result_slot, program::kNoIndex);
  EXPECT_EQ(read->program.details[0].after_rank, program::kNoIndex);
}

TEST(JobFiles, AFileIsReplacedAsAWhole) {
  const std::string path = ::testing::TempDir() + "job_files_test.plan";
  ASSERT_TRUE(write_job_plan(path, full_plan()));
  const auto read = read_job_plan(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->program.rank, 7U);
  std::remove(path.c_str());
  EXPECT_FALSE(read_job_plan(path));
  EXPECT_FALSE(write_job_plan("/nowhere/at/all.plan", full_plan()));
}

struct Change {
  const char* said;
  std::function<void(JobPlan&)> put;
};

TEST(JobFiles, EveryIndexIsChecked) {
  const std::vector<Change> changes{
      {"no client of a gate", [](JobPlan& p) { p.client = ClientId{16}; }},
      {"arrivals ascend", [](JobPlan& p) { p.serve->arrivals[2] = Duration{4}; }},
      {"stream that is not there", [](JobPlan& p) { p.program.ops[2].stream = 2; }},
      {"form that is not there", [](JobPlan& p) { p.program.ops[1].profile = 2; }},
      {"form that is not there", [](JobPlan& p) { p.program.ops[2].profile = 1; }},
      {"has no name", [](JobPlan& p) { p.program.ops[1].name = NameId{2}; }},
      {"edges that are not there", [](JobPlan& p) { p.program.ops[2].edge_count = 3; }},
      {"operation that is not there", [](JobPlan& p) { p.program.edges[2].before = 3; }},
      {"waits for itself", [](JobPlan& p) { p.program.edges[2].before = 2; }},
      {"bubbles: they follow", [](JobPlan& p) { p.bubbles[1].after_op = 3; }},
      {"bubbles: they follow", [](JobPlan& p) { p.bubbles[1].after_op = 1; }},
      {"found 2; there are 2 threads", [](JobPlan& p) { p.program.marked_thread = 2; }},
      {"the marked thread is 0", [](JobPlan& p) { p.program.marked_thread = 0; }},
      {"a detail is not there", [](JobPlan& p) { p.program.threads[0].steps[1].detail = 9; }},
      {"operation 2 a second time", [](JobPlan& p) { p.program.threads[0].steps[0].count = 3; }},
      {"there are 3 operations", [](JobPlan& p) { p.program.threads[0].steps[0].count = 4; }},
      {"launches no operation", [](JobPlan& p) { p.program.threads[0].steps[0].count = 0; }},
      {"waits for operation 3", [](JobPlan& p) { p.program.threads[0].steps[1].target = 3; }},
      {"begins iteration 2", [](JobPlan& p) { p.program.threads[1].steps[0].target = 2; }},
      {"waits for stream 2", [](JobPlan& p) { p.program.threads[1].steps[2].target = 2; }},
      {"thread 2; there", [](JobPlan& p) { p.program.details[1].after_thread = 2; }},
      {"its own thread", [](JobPlan& p) { p.program.details[1].after_thread = 1; }},
      {"there are 2 steps", [](JobPlan& p) { p.program.details[1].after_step = 2; }},
      {"waits for operation 2, which no step",
       [](JobPlan& p) {
         p.program.threads[1].steps.erase(p.program.threads[1].steps.begin() + 1);
         p.program.threads[0].steps[1].target = 2;
       }},
      {"operation 2 waits for operation 0, which no step",
       [](JobPlan& p) {
         p.program.threads[0].steps.clear();
         p.program.threads[1].steps[1].detail = program::kNoIndex;
       }},
      {"expected it or serve", [](JobPlan& p) { p.loop = LoopMode{3}; }},
      {"expected it or serve", [](JobPlan& p) { p.serve.reset(); }},
      {"no thread has a step", [](JobPlan& p) { p.program.threads.clear(); }}};
  for (const Change& change : changes) {
    JobPlan plan = full_plan();
    change.put(plan);
    const auto read = parse_job_plan(job_plan_bytes(plan), "plan");
    ASSERT_FALSE(read) << change.said;
    std::string faults;
    for (const Error& error : read.error()) faults += error.text() + "\n";
    EXPECT_NE(faults.find(change.said), std::string::npos) << change.said << ": " << faults;
  }
}

JobRecord full_record() {
  constexpr CounterSpec kLost{"operations_lost", Severity::kLoss, "Operations \"lost\"."};
  JobRecord record;
  record.name = "training";
  record.client = ClientId{2};
  record.began = Duration{-3};
  record.ended = Duration{1'000'000'000'001};
  record.iterations = {Duration{10}, Duration{20}};
  record.pass_requests = {4};
  record.requests = {{Duration{1}, Duration{2}, Duration{3}}};
  record.unfinished = {Duration{8}, Duration{9}};
  record.gate = {12, 3, 1};
  record.operations = {{7, 9, Duration{-1}, Duration{5}, Duration{6}, Duration{0}, Duration{7}}};
  record.counters.add(kLost, 11);
  return record;
}

TEST(JobFiles, ARecordReadsBackAsItWasWritten) {
  for (const JobRecord& record : {full_record(), JobRecord{}}) {
    const std::string bytes = job_record_bytes(record);
    const auto read = parse_job_record(bytes, "record");
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(job_record_bytes(*read), bytes);
  }
  const auto read = parse_job_record(job_record_bytes(full_record()), "record");
  EXPECT_EQ(read->began, Duration{-3});
  EXPECT_EQ(read->iterations, full_record().iterations);
  EXPECT_EQ(read->requests[0].end, Duration{3});
  EXPECT_EQ(read->operations[0].noticed, Duration{7});
  EXPECT_EQ(read->gate.ungated, 3U);
  EXPECT_EQ(read->counters.count("operations_lost"), 11U);
}

TEST(JobFiles, WhatIsNotWholeOrWasChangedIsRefused) {
  const std::string plan = job_plan_bytes(full_plan());
  const std::string record = job_record_bytes(full_record());
  for (std::size_t at = 0; at < plan.size(); ++at) {
    EXPECT_FALSE(parse_job_plan(std::string_view(plan).substr(0, at), "plan")) << at;
    std::string changed = plan;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(parse_job_plan(changed, "plan")) << at;
  }
  for (std::size_t at = 0; at < record.size(); ++at) {
    EXPECT_FALSE(parse_job_record(std::string_view(record).substr(0, at), "record")) << at;
  }
  EXPECT_FALSE(parse_job_record(plan, "record")) << "a plan is no record";
  EXPECT_NE(parse_job_plan("{}", "job0.plan").error().front().text().find("by this build"),
            std::string::npos);
}

}  // namespace
}  // namespace bubblesim::capture
