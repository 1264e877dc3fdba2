// What held each start and each wait, and the time that nothing explains. Times in us.
#include <gtest/gtest.h>

#include "sim/workload/build_counters.hpp"
#include "tests/unit/sim/workload/program_recorder.hpp"

namespace bubblesim::workload {
namespace {

using traces::Explanation, traces::HeldBy, traces::HostCallKind, traces::HostWait, traces::WaitFor;

std::uint64_t starts(const Explanation& found, HeldBy by) {
  return found.starts[static_cast<std::size_t>(by)];
}

std::uint64_t waits(const Explanation& found, HostWait kind, WaitFor reason) {
  return found.waits[static_cast<std::size_t>(kind)][static_cast<std::size_t>(reason)];
}

/// A kernel on stream 0, launched at 0, [8, 108]; then a wait for a stream from 10 to `end`.
TraceBuilder waiting_for(std::uint32_t stream, std::int64_t end) {
  TraceBuilder job(0, 1, 2);
  job.kernel({0, 2, 8, 108}).stream_sync(10, end, stream);
  return job;
}

TEST(BuilderExplanation, a_wait_for_named_work_is_explained) {
  const JobProgram job = must_build_job({waiting_for(0, 110)});
  const Explanation& found = job.explained.at(0);
  EXPECT_EQ(starts(found, HeldBy::kLaunch), 1U);
  EXPECT_EQ(waits(found, HostWait::kStream, WaitFor::kNamed), 1U);
  EXPECT_EQ(found.unexplained, us(0));
  EXPECT_EQ(found.window, us(110));
}

// A thread that sleeps returns up to 100 late; beyond, it waited for something else: from 108 on.
TEST(BuilderExplanation, what_a_wait_takes_long_after_its_work_is_unexplained) {
  EXPECT_EQ(must_build_job({waiting_for(0, 208)}).explained.at(0).unexplained, us(0));
  EXPECT_EQ(must_build_job({waiting_for(0, 209)}).explained.at(0).unexplained, us(101));
}

// 400 of 410.
TEST(BuilderExplanation, a_wait_for_a_stream_without_work_is_unexplained_and_makes_a_job_doubtful) {
  const JobProgram job = must_build_job({waiting_for(1, 410)});
  const Explanation& found = job.explained.at(0);
  EXPECT_EQ(waits(found, HostWait::kStream, WaitFor::kUnknown), 1U);
  EXPECT_EQ(found.unexplained, us(400));
  EXPECT_EQ(job.counters.count(kTimeUnexplained.name), 1U);
  EXPECT_EQ(job.counters.count(kDoubtful.name), 1U);
}

// A [8, 1008] on stream 0, its successor [1010, 1020]; on stream 1 C, which waits for A by an edge,
// and D, launched at 1100, which starts 30 after its call returned: 22 longer than launches take.
TEST(BuilderExplanation, starts_are_held_by_what_ended_last) {
  TraceBuilder trace(0, 1, 2);
  trace.kernel({0, 2, 8, 1008}).kernel({4, 6, 1010, 1020}).kernel({8, 10, 1012, 1015, 1})
      .kernel({1100, 1102, 1132, 1200, 1}).edge(0, 2);
  const JobProgram job = must_build_job({trace});
  const Explanation& found = job.explained.at(0);
  EXPECT_EQ(starts(found, HeldBy::kLaunch), 1U);
  EXPECT_EQ(starts(found, HeldBy::kStream), 1U);
  EXPECT_EQ(starts(found, HeldBy::kEdge), 1U);
  EXPECT_EQ(starts(found, HeldBy::kUnknown), 1U);
  EXPECT_EQ(found.late_starts, us(1132 - 1108));
  EXPECT_EQ(found.window, us(1200));
  EXPECT_EQ(job.counters.count(kTimeUnexplained.name), 1U);  // 24 of 1200
  EXPECT_EQ(job.counters.count(kDoubtful.name), 0U);
}

}  // namespace
}  // namespace bubblesim::workload
