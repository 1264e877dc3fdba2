// Records of processes become the numbers that a simulated run has, by the same definitions.
#include <gtest/gtest.h>

#include <chrono>

#include "sim/measure/arm.hpp"

namespace bubblesim::measure {
namespace {

using namespace std::chrono_literals;

// Ends at 100, 210, 330 and 460 ms: iterations of 100, 110, 120 and 130 ms.
capture::JobRecord training_record() {
  capture::JobRecord record;
  record.rank = 3;
  record.iterations = {100ms, 210ms, 330ms, 460ms};
  return record;
}

run::FillerConfig online_filler() {
  run::FillerConfig filler;
  filler.name = "chat";
  filler.mode = observe::FillerMode::kOnline;
  filler.deadline = 40ms;
  return filler;
}

TEST(IterationsOf, ThoseThatEndInTheWarmUpAreListedAndNotCounted) {
  const auto rank = iterations_of(training_record(), {150ms, 400ms});
  EXPECT_EQ(rank.rank, 3u);
  EXPECT_EQ(rank.times, (std::vector<Duration>{100ms, 110ms, 120ms}));
  EXPECT_EQ(rank.first_counted, 1u);
}

TEST(EndOfRun, IsTheLastIterationWanted) {
  run::RunConfig config;
  config.iterations = 3;
  const capture::JobRecord record = training_record();
  EXPECT_EQ(end_of_run(config, &record, 9s), 330ms);
}

TEST(EndOfRun, IsTheLimitIfTrainingDidNotGetThere) {
  run::RunConfig config;
  config.iterations = 5;
  const capture::JobRecord record = training_record();
  EXPECT_EQ(end_of_run(config, &record, 9s), 9s);
  EXPECT_EQ(end_of_run(config, nullptr, 2s), 2s);
}

TEST(FillerResult, OfflineCountsPassesThatEndInTheWindow) {
  run::FillerConfig filler;
  filler.name = "batch";
  capture::JobRecord record;
  record.passes = {50ms, 150ms, 250ms, 350ms};
  record.pass_requests = {4, 4, 4, 4};
  const auto result = filler_result(filler, record, {}, {}, {100ms, 300ms});
  EXPECT_EQ(result.passes, 2u);
  EXPECT_EQ(result.requests_completed, 8u);
  EXPECT_EQ(result.requests_arrived, 8u);
  EXPECT_DOUBLE_EQ(result.requests_per_s, 8 / 0.2);
}

// Arrivals at 50 (warm-up), 120, 180, 280 ms; ends at 90, 150, 240 ms, and after the end.
TEST(FillerResult, LatenciesAreOfRequestsThatArriveInTheWindow) {
  capture::JobRecord record;
  record.passes = {90ms, 150ms, 240ms, 310ms};
  record.requests = {
      {50ms, 60ms, 90ms}, {120ms, 120ms, 150ms}, {180ms, 190ms, 240ms}, {280ms, 290ms, 310ms}};
  const auto result =
      filler_result(online_filler(), record, {}, {50ms, 120ms, 180ms, 280ms}, {100ms, 300ms});
  EXPECT_EQ(result.requests_arrived, 3u);
  EXPECT_EQ(result.requests_completed, 2u);
  EXPECT_EQ(result.requests_unfinished, 1u);
  EXPECT_EQ(result.requests_within_deadline, 1u);  // 30 ms; the other took 60
  EXPECT_EQ(result.latency.samples(), (std::vector<Duration>{30ms, 60ms}));
  EXPECT_EQ(result.latency.ages(), (std::vector<Duration>{20ms}));
}

// At 50 and 90 ms in the warm-up, 120 in the window. The first two end in it, the third does not.
TEST(FillerResult, ThroughputIsOfRequestsThatEndInTheWindow) {
  capture::JobRecord record;
  record.requests = {{50ms, 60ms, 150ms}, {90ms, 150ms, 250ms}};
  record.unfinished = {120ms};
  const auto result =
      filler_result(online_filler(), record, {}, {50ms, 90ms, 120ms}, {100ms, 300ms});
  EXPECT_EQ(result.requests_before, 2u);
  EXPECT_EQ(result.requests_arrived, 1u);
  EXPECT_EQ(result.requests_completed, 2u);
  EXPECT_EQ(result.requests_unfinished, 1u);
  EXPECT_DOUBLE_EQ(result.requests_per_s, 2 / 0.2);
  EXPECT_TRUE(result.latency.samples().empty());
  EXPECT_EQ(result.latency.ages(), (std::vector<Duration>{180ms}));
}

TEST(FillerResult, ARefusedFillerRefusesWhatArrives) {
  const policy::Admission refused{false, "needs 30 GB, free are 10 GB"};
  const auto result =
      filler_result(online_filler(), std::nullopt, refused, {120ms, 280ms, 900ms}, {100ms, 300ms});
  EXPECT_EQ(result.requests_arrived, 2u);
  EXPECT_EQ(result.requests_refused, 2u);
  EXPECT_EQ(result.instances.front().reason, refused.reason);
  EXPECT_TRUE(result.latency.empty());
}

TEST(HostActivity, SumsTheGateOverJobs) {
  capture::RigResult rig;
  rig.host.emplace();
  rig.host->decision_latency = {10, 1500ns, 1000ns, 3000ns, 4000ns, 9000ns};
  rig.jobs.resize(3);
  rig.jobs[0].record.emplace().gate_time = 50ns;
  rig.jobs[1].record.emplace().gate_time = 70ns;
  const auto host = host_activity(rig, capture::Substrate::kMps);
  EXPECT_EQ(host.substrate, "mps");
  EXPECT_EQ(host.decisions, 10u);
  EXPECT_EQ(host.decision_p95, 3000ns);
  EXPECT_EQ(host.gate_time, 120ns);
}

// What each operation did as a table, by hand.

capture::JobPlan job_of_two() {
  capture::JobPlan job;
  program::Program& program = job.program;
  program.ops.resize(2);
  program.ops[0].name = program.names.intern("gemm<1, 2>");
  program.ops[1].name = program.names.intern("Memcpy HtoD");
  program.ops[1].kind = program::WorkKind::kCopy;
  program.ops[1].stream = 3;
  return job;
}

TEST(OperationsCsv, RowsAreInTheOrderOfStartsAndNamesWithCommasAreQuoted) {
  capture::JobOutcome outcome;
  outcome.record.emplace();
  outcome.record->name = "job";
  outcome.record->operations = {
      {.op = 0, .pass = 1, .called = 10ns, .start = 30ns, .end = 40ns, .returned = 15ns,
       .noticed = 50ns},
      {.op = 1, .pass = 1, .called = 1ns, .start = 5ns, .end = 20ns, .returned = 4ns,
       .noticed = 25ns}};
  EXPECT_EQ(operations_csv({job_of_two()}, {outcome}),
            "job,pass,op,kind,stream,name,called_ns,start_ns,end_ns,returned_ns,noticed_ns\n"
            "job,1,1,copy,3,Memcpy HtoD,1,5,20,4,25\n"
            "job,1,0,kernel,0,\"gemm<1, 2>\",10,30,40,15,50\n");
}

TEST(OperationsCsv, AJobThatDiedHasNoRows) {
  EXPECT_EQ(operations_csv({job_of_two()}, {capture::JobOutcome{}}),
            "job,pass,op,kind,stream,name,called_ns,start_ns,end_ns,returned_ns,noticed_ns\n");
}

}  // namespace
}  // namespace bubblesim::measure
