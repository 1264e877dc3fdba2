// Plans and records as files: whole or refused, and nothing that no process can do.
#include <gmock/gmock.h>

#include <cstdio>
#include <functional>

#include "capture/clock/host_clock.hpp"
#include "capture/replay/control_segment.hpp"
#include "capture/replay/job_files.hpp"
#include "tests/fault.hpp"
#include "tests/unit/capture/replay/plans.hpp"
#include "tests/unit/capture/replay/stage.hpp"

namespace bubblesim::capture {
namespace {

using Us = std::chrono::microseconds;
using namespace testing;
using ::testing::ElementsAre;
using enum program::StepKind;
using testing::full_plan;

TEST(JobFiles, APlanReadsBackAsItWasWritten) {
  const std::string bytes = job_plan_bytes(full_plan());
  const auto read = must(parse_job_plan(bytes, "plan"));
  EXPECT_EQ(job_plan_bytes(read), bytes);
  const JobPlan plan = full_plan();
  EXPECT_EQ(read.name, plan.name);
  EXPECT_EQ(read.client, plan.client);
  EXPECT_EQ(read.role, plan.role);
  EXPECT_EQ(read.program.own_kernels, plan.program.own_kernels);
  EXPECT_EQ(read.device_lags, plan.device_lags);
  EXPECT_EQ(read.forms, plan.forms);
  EXPECT_EQ(read.program.names[NameId{1}], "void gemm<float, 128>(float*)");
  ASSERT_EQ(read.program.ops.size(), 3U);
  EXPECT_EQ(read.program.ops[1].duration, Duration{987654321987});
  EXPECT_EQ(copy_of(read, read.program.ops[2]).bytes, Bytes{4096});
  EXPECT_EQ(read.program.ops[2].edge_count, 2U);
  EXPECT_FALSE(read.loop);
  ASSERT_TRUE(read.serve);
  EXPECT_EQ(read.serve->batching.batch_cost, 0.3);
  EXPECT_EQ(read.serve->arrivals, plan.serve->arrivals);
  ASSERT_EQ(read.program.threads.size(), 2U);
  EXPECT_EQ(read.program.threads[1].name, "other");
  const program::Step& wait = read.program.threads[0].steps[1];
  EXPECT_EQ(read.program.details[wait.detail].passes_back, 3U);
  EXPECT_TRUE(read.bubbles[0].info.pipeline);
}

TEST(JobFiles, NoOtherRankIsThereForTheReader) {
  JobPlan plan = full_plan();
  plan.program.ops[0].collective = 4;
  plan.program.ops[0].result_slot = 2;
  plan.program.details[1].after_rank = 1;
  plan.program.details[1].after_thread = 7;  // of that rank
  const auto read = must(parse_job_plan(job_plan_bytes(plan), "plan"));
  EXPECT_EQ(read.program.ops[0].collective, program::kNoIndex);
  EXPECT_EQ(read.program.ops[0].result_slot, program::kNoIndex);
  EXPECT_EQ(read.program.details[1].after_rank, program::kNoIndex);
  EXPECT_EQ(read.program.details[1].after_thread, program::kNoIndex);
}

TEST(JobFiles, AFileIsReplacedAsAWhole) {
  const std::string path = ::testing::TempDir() + "job_files_test.plan";
  ASSERT_TRUE(write_job_plan(path, full_plan()));
  const auto read = must(read_job_plan(path));
  EXPECT_EQ(read.program.rank, 7U);
  std::remove(path.c_str());
  EXPECT_FALSE(read_job_plan(path));
  EXPECT_FALSE(write_job_plan("/nowhere/at/all.plan", full_plan()));
}

struct Change {
  const char* said;
  std::function<void(JobPlan&)> put;
};

TEST(JobFiles, WhatNoProcessCanDoIsRefused) {
  const std::vector<Change> changes{
      {"no client of a gate", [](JobPlan& p) { p.client = ClientId{16}; }},
      {"found 65 threads; expected at most 64", [](JobPlan& p) { p.program.threads.resize(65); }},
      {"thread 0 waits for operation 2, which no step",
       [](JobPlan& p) {
         p.program.threads[1].steps.erase(p.program.threads[1].steps.begin() + 1);
         p.program.threads[0].steps[1].target = 2;
       }},
      {"operation 2 waits for operation 0, which no step",
       [](JobPlan& p) { p.program.threads[0].steps.clear(); }},
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
  record.ended = Duration{-3};
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
    const auto read = must(parse_job_record(bytes, "record"));
    EXPECT_EQ(job_record_bytes(read), bytes);
  }
  const auto read = parse_job_record(job_record_bytes(full_record()), "record");
  EXPECT_EQ(read->ended, Duration{-3});
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

class ControlSegment : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = must(ControlBoard::create(*clock_));
    board_ = std::move(made);
  }

  // Nobody waits in these tests.
  std::unique_ptr<HostClock> clock_ = wall_clock();
  std::unique_ptr<ControlBoard> board_;
};

TEST_F(ControlSegment, ASeatNobodyHasTakenIsStarting) {
  const WorkerStatus status = board_->status(ClientId{15});
  EXPECT_EQ(status.state, WorkerState::kStarting);
  EXPECT_EQ(status.text, "");
}

TEST_F(ControlSegment, TheBoardSeesWhatASeatSays) {
  auto seat = must(ControlSeat::take(board_->name(), *clock_, ClientId{2}));
  EXPECT_EQ(board_->status(ClientId{2}).state, WorkerState::kPreparing);
  seat->say("stand-ins 1 of 2");
  EXPECT_EQ(board_->status(ClientId{2}).text, "stand-ins 1 of 2");
  seat->set_state(WorkerState::kRunning);
  seat->add_progress();
  seat->fail("the device is gone");
  const WorkerStatus status = board_->status(ClientId{2});
  EXPECT_EQ(status.state, WorkerState::kFailed);
  EXPECT_EQ(status.text, "the device is gone");
  EXPECT_EQ(status.progress, 2U);
  EXPECT_EQ(board_->changes(), 3U);  // preparing, running, failed
  EXPECT_EQ(board_->status(ClientId{1}).state, WorkerState::kStarting);
}

TEST_F(ControlSegment, ASeatHearsOfStartAndStop) {
  auto seat = must(ControlSeat::take(board_->name(), *clock_, ClientId{0}));
  EXPECT_FALSE(seat->start());
  board_->start(HostTime{Duration{42}});
  EXPECT_EQ(seat->start(), HostTime{Duration{42}});
  EXPECT_FALSE(seat->stop_asked());
  board_->stop_all();
  EXPECT_TRUE(seat->stop_asked());
  EXPECT_EQ(seat->calls(), 2U);
  auto late = must(ControlSeat::take(board_->name(), *clock_, ClientId{1}));
  EXPECT_TRUE(late->stop_asked());
}

TEST_F(ControlSegment, ASeatIsTakenOnce) {
  auto first = must(ControlSeat::take(board_->name(), *clock_, ClientId{0}));
  const auto second = error_of(ControlSeat::take(board_->name(), *clock_, ClientId{0}));
  EXPECT_NE(second.message.find("taken by process"), std::string::npos);
  EXPECT_FALSE(ControlSeat::take(board_->name(), *clock_, ClientId{16}));
}

TEST_F(ControlSegment, TheNameGoesWithTheBoardAndSeatsStay) {
  auto seat = must(ControlSeat::take(board_->name(), *clock_, ClientId{0}));
  const std::string name = board_->name();
  board_.reset();
  seat->set_state(WorkerState::kDone);
  EXPECT_NE(error_of(ControlSeat::take(name, *clock_, ClientId{1})).message.find(name),
            std::string::npos);
}

TEST_F(ControlSegment, LongTextsAreCut) {
  auto seat = must(ControlSeat::take(board_->name(), *clock_, ClientId{0}));
  seat->fail(std::string(5000, 'x'));
  EXPECT_EQ(board_->status(ClientId{0}).text, std::string(2000, 'x'));
}

/// Three kernels of 10 us in one stream, launched without think time; then the end.
JobPlan three_kernels() {
  JobPlan plan = empty_plan(1);
  plan.record_operations = true;
  plan.program.threads.push_back({"main", {}});
  for (std::uint32_t i = 0; i < 3; ++i) {
    add_kernel(plan, 0, Us(10));
    plan.program.threads[0].steps.push_back(launch(Us(0), Us(1), i));
  }
  plan.program.threads[0].steps.push_back(step(kWaitDevice));
  plan.program.threads[0].steps.push_back(step(kEnd));
  return plan;
}

TEST(JobGate, AHeldLaunchGoesOnWhenItIsReleased) {
  Stage stage;
  stage.gate().held_until[2] = Us(7);
  const ReplayEnd end = stage.run(three_kernels());
  EXPECT_THAT(timeline(end.record), ElementsAre("0: called 0, runs 0 to 10, returned 1",
                                                "1: called 7, runs 10 to 20, returned 8",
                                                "2: called 8, runs 20 to 30, returned 9"));
  EXPECT_EQ(in_us(end.record.held_time), 6);
  EXPECT_EQ(end.record.gate_time, Duration{});
  EXPECT_EQ(end.record.gate.launches, 3U);
}

TEST(JobGate, AWindowBoundsWhatIsOnTheDevice) {
  Stage stage;
  stage.gate().window_size = 1;
  const ReplayEnd end = stage.run(three_kernels());
  EXPECT_THAT(timeline(end.record), ElementsAre("0: called 0, runs 0 to 10, returned 1",
                                                "1: called 10, runs 10 to 20, returned 11",
                                                "2: called 20, runs 20 to 30, returned 21"));
}

TEST(JobGate, CompletionsAreReportedIfThePlanSaysSo) {
  JobPlan plan = three_kernels();
  Stage quiet;
  quiet.gate();
  EXPECT_FALSE(quiet.run(plan).fault);
  EXPECT_THAT(quiet.gate().heard, ElementsAre("30 iteration of 30"));
  plan.report_completions = true;
  Stage told;
  told.gate();
  EXPECT_FALSE(told.run(plan).fault);
  EXPECT_THAT(told.gate().heard, ElementsAre("10 completed 1", "20 completed 2", "30 completed 3",
                                             "30 iteration of 30"));
}

TEST(JobGate, ABubbleLastsFromItsOperationToTheNextThatIsNoCollective) {
  JobPlan plan = empty_plan(2);
  plan.program.threads.push_back({"main", {launch(Us(0), Us(0), 0), launch(Us(0), Us(0), 1),
                                   launch(Us(25), Us(0), 2), step(kWaitDevice), step(kEnd)}});
  add_kernel(plan, 0, Us(10));
  add_kernel(plan, 1, Us(30));  // a collective, from 10 on
  plan.program.ops.back().kind = program::WorkKind::kCollective;
  add_edge(plan, 0);
  add_kernel(plan, 0, Us(5));   // at 25
  plan.bubbles.push_back({0, {Us(14), Bytes{}, false}});
  plan.bubbles.push_back({1, {Us(99), Bytes{}, false}});  // a collective begins none
  Stage stage;
  stage.gate();
  EXPECT_FALSE(stage.run(plan).fault);
  EXPECT_THAT(stage.gate().heard,
              ElementsAre("10 bubble of 14", "25 bubble ends", "40 iteration of 40"));
}

TEST(JobGate, ALaunchIsDescribedAsTheSimulatorDoes) {
  JobPlan plan = empty_plan(1);
  plan.client = ClientId{3};
  plan.forms = {{{{4, 3, 2}, {33, 1, 1}, 16, 0}, program::KernelClass::kMemory},
                {{{10, 1, 1}, {8, 8, 2}, 16, 0}, program::KernelClass::kCompute}};
  plan.program.names.intern("second");
  add_kernel(plan, 0, Us(2));
  add_kernel(plan, 0, Us(3));
  plan.program.ops.back().profile = 1;
  plan.program.ops.back().name = NameId{1};
  Stage stage;
  const Device& device = stage.open(plan);
  const policy::LaunchInfo info = LaunchPath::describe(plan, device, 0, 2);
  EXPECT_EQ(info.client, ClientId{3});
  EXPECT_EQ(info.operations, 2U);
  EXPECT_EQ(info.blocks, 24U + 10U);
  EXPECT_EQ(info.threads_per_block, 128U);  // 33 threads are two warps, 64
  EXPECT_EQ(info.sm_blocks, 256U);          // the device's, of the first: 8 SMs, 32 blocks each
  EXPECT_EQ(info.kernel, 0U);
  EXPECT_EQ(info.profiled, Us(5));
  EXPECT_EQ(info.bound, program::KernelClass::kMemory);
  EXPECT_EQ(LaunchPath::describe(plan, device, 1, 1).kernel, (1ULL << 32U) + 1);
}

TEST(JobGate, ACopyHasNoBlocks) {
  JobPlan plan = empty_plan(1);
  add_kernel(plan, 0, Us(2));
  plan.program.ops[0].kind = program::WorkKind::kCopy;
  plan.program.ops[0].profile = 0;  // of the plan's copies
  Stage stage;
  const policy::LaunchInfo info = LaunchPath::describe(plan, stage.open(plan), 0, 1);
  EXPECT_EQ(info.kind, program::WorkKind::kCopy);
  EXPECT_EQ(info.blocks, 0U);
  EXPECT_EQ(info.sm_blocks, 0U);
}

}  // namespace
}  // namespace bubblesim::capture
