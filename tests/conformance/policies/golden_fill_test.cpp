// Policies that fill announced bubbles: small scenarios with numbers to check by hand.
#include <gmock/gmock.h>

#include "tests/conformance/policies/scenarios.hpp"

namespace bubblesim::testing {
namespace {

using namespace policy;
using namespace std::chrono_literals;
using ::testing::ElementsAre, ::testing::IsEmpty;

/// A kernel of 8 ms is beyond 0.68 of 10 ms. That 10 ms is the longest bubble is known when the
/// iteration has ended, at 20 ms: in the next one it runs alone, as 8 + 0.05 <= 10.
TEST(pipefill, gives_a_long_kernel_the_longest_bubble) {
  Scenario single = scenario(60ms, {opaque_kernel(1, 8ms)}, 100);
  single.bubbles = {{2ms, 12ms, {10ms, Bytes{}, true}}, {32ms, 42ms, {10ms, Bytes{}, true}}};
  single.iteration_ends = {20ms, 50ms};
  const Outcome outcome = drive("pipefill", {}, single);
  EXPECT_THAT(outcome.times(1), ElementsAre(32ms));
  EXPECT_EQ(outcome.counts.count("pipefill_launches_alone"), 1u);
  EXPECT_EQ(outcome.counts.count("pipefill_stuck_fillers"), 0u);
}

/// The filler's turns last as long as the bubble is expected to, and 1 ms again afterwards.
TEST(pipefill, stops_the_main_job_while_a_bubble_is_filled) {
  Scenario single = scenario(60ms, {opaque_kernel(1, 4ms)}, 100);
  single.bubbles = {{2ms, 18ms, {20ms, Bytes{}, true}}};
  EXPECT_THAT(drive("pipefill", {}, single).done,
              ElementsAre(Done{2ms, "slice 1 20ms"}, Done{18ms, "slice 1 1ms"}));
  EXPECT_THAT(drive("pipefill", {"main_job=takes_turns"}, single).done, IsEmpty());
  EXPECT_THAT(drive("pipefill", {"sharing=spatial"}, single).done, IsEmpty());
}

/// Training holds 70 of 80 GiB: of the filler's 12, 2 are moved in and out at 1 GiB a millisecond.
/// Of the bubble of 20 ms from 2 ms on, 13.6 ms may be filled, less 0.05 for the switch and 2 for
/// moving out: to 13.55 ms. From 4 ms on two kernels of 4 ms fit.
TEST(pipefill, moves_what_does_not_fit) {
  Scenario large = scenario(60ms, {opaque_kernel(1, 4ms)}, 100);
  large.gpu.host_bandwidth = BytesPerSecond{1000.0 * static_cast<double>(gib(1).value)};
  large.training_memory = gib(70);
  large.fillers[0].memory = gib(12);
  large.bubbles = {{2ms, 22ms, {20ms, gib(15), true}}};
  EXPECT_FALSE(drive("pipefill", {}, large).admissions[0].admitted);
  const Outcome moved = drive("pipefill", {"offload=true"}, large);
  EXPECT_TRUE(moved.admissions[0].admitted);
  EXPECT_THAT(moved.times(1), ElementsAre(4ms, 4ms));
  large.gpu.host_bandwidth = {};
  const Outcome blind = drive("pipefill", {"offload=true"}, large);
  EXPECT_THAT(blind.times(1), IsEmpty());
  EXPECT_EQ(blind.counts.count("pipefill_starved_fillers"), 1u);
}

/// Passes of three launches of 10 ms, 11 ms apart. The bubble from 12 ms on is expected to end at
/// 120 ms; the manager sees it at 20 ms, which is when the task, held since 0, looks for the fourth
/// time. A step of 30 ms needs 36. The last launch of the first one is at 42 ms: at 47, while it
/// runs, the loop finds 73 ms left, so that the next one begins with its first call, at 53. At 80
/// it finds 40, and at 113 only 7.
Scenario steps() {
  Scenario result = scenario(300ms, {opaque_kernel(1, 10ms)}, 100);
  result.fillers[0].pass = 3;
  result.fillers[0].gap = 11ms;
  result.bubbles = {{12ms, 120ms, {108ms, Bytes{}, true}}};
  return result;
}

TEST(freeride, begins_only_steps_that_end_in_the_bubble) {
  const Outcome outcome = drive("freeride", {}, steps());
  EXPECT_THAT(outcome.times(1), ElementsAre(20ms, 31ms, 42ms, 53ms, 64ms, 75ms, 86ms, 97ms, 108ms));
  EXPECT_EQ(outcome.held_at_end[1], 1u);
  EXPECT_EQ(outcome.counts.count("freeride_overrun_steps"), 0u);
  EXPECT_EQ(drive("freeride", {"step_margin=1.4"}, steps()).times(1).size(), 6u);  // 42 of 40 ms
}

/// Its steps end at 52 and 89 ms: it sleeps for 5, and finds 63 and 26 ms left.
TEST(freeride, looks_when_a_step_has_ended_if_told) {
  EXPECT_THAT(drive("freeride", {"looks=completion", "step_margin=1"}, steps()).times(1),
              ElementsAre(20ms, 31ms, 42ms, 57ms, 68ms, 79ms));
}

/// A step of 2 ms is launched at 20 ms. The bubble ends at 23, before the loop wakes at 25.
TEST(freeride, begins_no_step_where_its_loop_wakes_behind_the_bubble) {
  Scenario early = scenario(100ms, {opaque_kernel(1, 2ms)}, 100);
  early.fillers[0].pass = 1;
  early.fillers[0].gap = 3ms;
  early.bubbles = {{12ms, 23ms, {108ms, Bytes{}, true}}};
  EXPECT_THAT(drive("freeride", {}, early).times(1), ElementsAre(20ms));
}

TEST(freeride, gives_training_priority_and_tasks_what_memory_is_left) {
  const Outcome outcome = drive("freeride", {}, steps());
  EXPECT_EQ(outcome.sharing.mode, SharingMode::kMps);
  EXPECT_GT(outcome.clients[0].priority, outcome.clients[1].priority);
  EXPECT_EQ(outcome.clients[1].memory_limit, gib(40));
}

/// The first task's process ends at 58 ms, in its second step: the second's begin at a new bubble,
/// which ends at 200 ms. At 157 ms 43 are left, at 190 only 10.
TEST(freeride, runs_one_task_at_a_time) {
  Scenario two = steps();
  two.fillers.push_back(two.fillers[0]);
  two.bubbles.push_back({128ms, 200ms, {72ms, Bytes{}, true}});
  EXPECT_THAT(drive("freeride", {}, two).times(2), IsEmpty());
  two.fillers[0].dies_at = 58ms;
  EXPECT_THAT(drive("freeride", {}, two).times(2),
              ElementsAre(130ms, 141ms, 152ms, 163ms, 174ms, 185ms));
}

/// The task that launched first has the GPU, though the bubble has no room for its steps of 120 ms.
TEST(freeride, keeps_the_gpu_for_the_task_that_launched_first) {
  Scenario two = steps();
  two.fillers.push_back(two.fillers[0]);
  two.fillers[0].kernels = {opaque_kernel(1, 40ms)};
  EXPECT_THAT(drive("freeride", {}, two).passed, IsEmpty());
  two.fillers[0].begins = 1ms;
  EXPECT_THAT(drive("freeride", {}, two).times(1), IsEmpty());
  EXPECT_EQ(drive("freeride", {}, two).times(2).size(), 9u);
  two.fillers[1].begins = 30ms;  // in the bubble, which the first one has
  EXPECT_THAT(drive("freeride", {}, two).passed, IsEmpty());
}

/// The bubble ends at 60 ms already; the step that began at 53 ms goes on to 85.
TEST(freeride, counts_steps_that_outlast_the_grace_period) {
  Scenario early = steps();
  early.bubbles[0].end = 60ms;
  const Outcome outcome = drive("freeride", {"grace=20ms"}, early);
  EXPECT_EQ(outcome.times(1).size(), 6u);
  EXPECT_EQ(outcome.counts.count("freeride_overrun_steps"), 1u);  // at 80 ms
  EXPECT_EQ(drive("freeride", {"grace=30ms"}, early).counts.count("freeride_overrun_steps"), 0u);
}

/// Without marks of passes each launch is a step of 10 ms, called each 11: it begins while more
/// than 12 are left.
TEST(freeride, takes_launches_for_steps_where_passes_are_not_known) {
  Scenario launches = steps();
  launches.fillers[0].pass = 0;
  EXPECT_EQ(drive("freeride", {}, launches).times(1).back(), Duration{97ms});
  launches.fillers[0].kernels[0].length = 0ms;  // nor profiled: 200 ms, longer than the bubble
  EXPECT_THAT(drive("freeride", {}, launches).times(1), IsEmpty());
  const Outcome told = drive("freeride", {"step_duration=50ms"}, launches);
  EXPECT_THAT(told.times(1), ElementsAre(20ms, 31ms, 42ms, 53ms));  // 60 of 56 ms at 64
  EXPECT_EQ(told.counts.count("freeride_unprofiled_steps"), 4u);
}

TEST(freeride, leaves_communication_alone_if_told) {
  Scenario stall = steps();
  stall.bubbles[0].info.pipeline = false;
  EXPECT_THAT(drive("freeride", {"bubbles=pipeline"}, stall).times(1), IsEmpty());
  EXPECT_EQ(drive("freeride", {}, stall).times(1).size(), 9u);
}

}  // namespace
}  // namespace bubblesim::testing
