// Host times above 4.29 s, the longest that one step holds: replayed whole. Each test replays the
// recording, then stretches an operation by 20: what waited for it is 20 later. Times in us.
#include <gtest/gtest.h>

#include "sim/program/rules.hpp"
#include "tests/unit/sim/workload/program_recorder.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;

constexpr std::int64_t kFiveSeconds = 5'000'000;

program::Program unclamped(const TraceBuilder& job) {
  program::Program program = must_build(job.trace());
  EXPECT_EQ(program.counters.count("program_spans_clamped"), 0U);
  return program;
}

// The call returns 5 s after the kernel that it waited for; the other thread waits for the call.
TEST(BuilderPauses, AWaitMayReturnLongAfterWhatItWaitedFor) {
  const std::int64_t back = kFiveSeconds + 100;
  TraceBuilder job(0, 2, 2);
  job.kernel({0, 5, 10, 100}).call(HostCallKind::kDeviceSync, {6, back})
      .kernel({back + 5, back + 7, back + 15, back + 25})
      .kernel({back + 50, back + 52, back + 60, back + 70, 1, 1});
  const program::Program program = unclamped(job);
  EXPECT_EQ(replayed(program), (Spans{{10, 100}, {back + 15, back + 25}, {back + 60, back + 70}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 20),
            (Spans{{10, 120}, {back + 35, back + 45}, {back + 80, back + 90}}));
}

// Thread 1 goes on 10 s after thread 0's copy has returned at 105: 2 pauses, then the launch.
TEST(BuilderPauses, AThreadMayThinkLongAfterAHandOver) {
  const std::int64_t later = 2 * kFiveSeconds + 105;
  TraceBuilder job(0, 2, 2);
  job.copy({0, 105, 10, 100}).kernel({later, later + 2, later + 10, later + 20, 1, 1});
  const program::Program program = unclamped(job);
  const std::vector<program::Step>& steps = program.threads[1].steps;
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_NE(program::hand_over(program, steps[0]), nullptr);
  EXPECT_EQ(program::hand_over(program, steps[1]), nullptr);
  EXPECT_EQ(program::hand_over(program, steps[2]), nullptr);
  EXPECT_EQ(replayed(program), (Spans{{10, 100}, {later + 10, later + 20}}));
  EXPECT_EQ(replayed_with_longer(program, 0, 20), (Spans{{10, 120}, {later + 30, later + 40}}));
}

// The first launch loads its module for 5 s.
TEST(BuilderPauses, ACallMayTakeLong) {
  TraceBuilder job(0, 1, 2);
  job.kernel({0, kFiveSeconds, 10, 20})
      .kernel({kFiveSeconds + 5, kFiveSeconds + 7, kFiveSeconds + 15, kFiveSeconds + 25, 1});
  EXPECT_EQ(replayed(unclamped(job)), (Spans{{10, 20}, {kFiveSeconds + 15, kFiveSeconds + 25}}));
}

}  // namespace
}  // namespace bubblesim::workload
