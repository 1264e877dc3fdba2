// One small scenario a policy, with numbers to check by hand.
#include <gmock/gmock.h>

#include "tests/conformance/policies/scenarios.hpp"

namespace bubblesim::testing {
namespace {

using namespace policy;
using namespace std::chrono_literals;
using ::testing::ElementsAre, ::testing::IsEmpty;

/// `count` kernels of training from `begin` on, `every` apart.
void train(Scenario& scenario, Duration begin, Duration every, int count, std::uint64_t blocks) {
  for (int i = 0; i < count; ++i) {
    scenario.training.push_back({begin + every * i, WorkKind::kKernel, blocks, 1us});
  }
}

TEST(drive, of_a_spec_that_makes_no_policy_is_a_fault) {
  PolicySpec spec;
  spec.name = "none";
  spec.make = [](const ParameterSet&) { return std::unique_ptr<Policy>(); };
  EXPECT_THAT(drive(spec, {}, {}).faults, ElementsAre("its library made no policy"));
}

TEST(exclusive, admits_no_filler) {
  const Outcome outcome = drive("exclusive", {}, scenario(10ms, {opaque_kernel(1, 1us)}, 5));
  EXPECT_FALSE(outcome.admissions[0].admitted);
  EXPECT_EQ(outcome.admissions[0].reason, "exclusive: the GPU belongs to training");
  EXPECT_EQ(outcome.count(1, 0s, 1s), 0u);
}

TEST(time_slicing, leaves_slice_and_switch_to_the_device_unless_given) {
  const Scenario any = scenario(1ms, {opaque_kernel(1, 1us)}, 1);
  const Sharing device = drive("time_slicing", {}, any).sharing;
  EXPECT_EQ(device.mode, SharingMode::kTimeSliced);
  EXPECT_EQ(device.slice, std::nullopt);
  EXPECT_EQ(device.switch_cost, std::nullopt);
  const Sharing given = drive("time_slicing", {"slice=2ms", "switch_cost=0ns"}, any).sharing;
  EXPECT_EQ(given.slice, Duration{2ms});
  EXPECT_EQ(given.switch_cost, Duration{0});
}

TEST(mps, caps_clients_and_lifts_training_if_told) {
  const Scenario any = scenario(1ms, {opaque_kernel(1, 1us)}, 1);
  const Outcome plain = drive("mps", {}, any);
  EXPECT_EQ(plain.sharing.mode, SharingMode::kMps);
  EXPECT_EQ(plain.clients[0].sm_percentage, 100u);
  EXPECT_EQ(plain.clients[0].priority, plain.clients[1].priority);
  const Outcome capped = drive("mps", {"filler_percentage=30", "priority=training"}, any);
  EXPECT_EQ(capped.clients[1].sm_percentage, 30u);
  EXPECT_GT(capped.clients[0].priority, capped.clients[1].priority);
}

TEST(mps, refuses_memory_that_does_not_fit) {
  Scenario large = scenario(1ms, {opaque_kernel(1, 1us)}, 1);
  large.fillers[0].memory = gib(41);
  const Outcome outcome = drive("mps", {}, large);
  EXPECT_FALSE(outcome.admissions[0].admitted);
  EXPECT_EQ(outcome.admissions[0].reason, "needs 41GiB beside 40GiB in use, the GPU has 80GiB");
}

/// The limit is 0 during the profile: a kernel passes if the count is 0, which it is once in
/// 50 ms. The first kernel passes at 0; the second, held at 0, looks at 10, 20, 30, 40, 50 ms.
TEST(tgs, leaks_one_kernel_a_window_at_limit_zero) {
  Scenario leak = scenario(201ms, {opaque_kernel(7, 1us)}, 100);
  train(leak, 0ms, 1ms, 200, 100);
  const Outcome outcome = drive("tgs", {}, leak);
  EXPECT_THAT(outcome.times(1), ElementsAre(Duration{0}, 50ms, 100ms, 150ms, 200ms));
  EXPECT_TRUE(outcome.sharing.unified_memory);
  EXPECT_EQ(outcome.sharing.mode, SharingMode::kTimeSliced);
}

/// The thread held at 3 ms (it slept on the host till then) looks at 13, ..., 43, 53 ms.
TEST(tgs, looks_every_ten_milliseconds_from_the_launch_on) {
  Scenario late = scenario(100ms, {opaque_kernel(7, 1us)}, 2);
  late.fillers[0].gap = 3ms;
  EXPECT_THAT(drive("tgs", {}, late).times(1), ElementsAre(Duration{0}, 53ms));
}

/// Reports every 100 ms, training steady at 1000 blocks a report. The profile lasts 5 reports at
/// least and is cut at 5; the sixth report, at 600 ms, sets the limit of 100 blocks a window of
/// 10 ms. A kernel has 30 blocks: it passes at counts 0, 30, 60 and 90, so four pass in a window
/// (the window that begins at 600 ms still counts nothing). The next report lets the limit grow
/// to 151: six pass (0, 30, ..., 150); then 227: eight; then 341: twelve.
TEST(tgs, starts_slowly_after_the_profile) {
  Scenario steady = scenario(1s, {opaque_kernel(30, 1us)}, 100000);
  steady.fillers[0].gap = 1us;
  train(steady, 0ms, 1ms, 1000, 10);
  const Outcome outcome = drive("tgs",
                                {"report_period=100ms", "window=10ms", "poll=1ms",
                                 "profile_longest=5", "initial_limit=100", "idle_blocks=10"},
                                steady);
  EXPECT_EQ(outcome.count(1, 0ms, 600ms), 60u);    // one in each of 60 windows
  EXPECT_EQ(outcome.count(1, 610ms, 620ms), 4u);   // 100
  EXPECT_EQ(outcome.count(1, 710ms, 720ms), 6u);   // 100 * 1.5 + 1 = 151
  EXPECT_EQ(outcome.count(1, 810ms, 820ms), 8u);   // 151 * 1.5 + 1 = 227
  EXPECT_EQ(outcome.count(1, 910ms, 920ms), 12u);  // 227 * 1.5 + 1 = 341
}

/// Two threads: both are held at 0 (the first kernel passed) and look together; in a window only
/// the first of them to look finds the count at 0. They take turns, oldest launch first.
TEST(tgs, serves_the_threads_of_a_filler_in_the_order_of_being_held) {
  Scenario two = scenario(101ms, {opaque_kernel(7, 1us)}, 100);
  two.fillers[0].threads = 2;
  const Outcome outcome = drive("tgs", {}, two);
  EXPECT_THAT(outcome.times(1), ElementsAre(Duration{0}, 50ms, 100ms));
  EXPECT_EQ(outcome.passed[1].launch, 2u);
  EXPECT_EQ(outcome.passed[2].launch, 3u);
}

TEST(tgs, gates_kernels_but_not_copies) {
  Scenario copies = scenario(10ms, {{{}, WorkKind::kCopy, 0, 1us}}, 5);
  EXPECT_EQ(drive("tgs", {}, copies).count(1, 0ms, 1ms), 5u);
}

TEST(tgs, oversubscribes_memory_but_not_the_whole_gpu) {
  Scenario large = scenario(1ms, {opaque_kernel(1, 1us)}, 1);
  large.fillers[0].memory = gib(79);  // 80 GiB less the hidden one
  EXPECT_TRUE(drive("tgs", {}, large).admissions[0].admitted);
  large.fillers[0].memory = gib(80);
  EXPECT_FALSE(drive("tgs", {}, large).admissions[0].admitted);
}

/// A bubble of 10 ms at 2 ms: 6.8 ms are usable, less 50 us for the switch. Kernels of 1, 2 and
/// 3 ms end after 6 ms of plan; the next of 1 ms would end after 7.
TEST(pipefill, packs_the_usable_part_of_a_bubble) {
  Scenario single = scenario(
      30ms, {opaque_kernel(1, 1ms), opaque_kernel(1, 2ms), opaque_kernel(1, 3ms)}, 100);
  single.bubbles = {{2ms, 12ms, {10ms, Bytes{}, true}}};
  const Outcome outcome = drive("pipefill", {}, single);
  EXPECT_THAT(outcome.times(1), ElementsAre(2ms, 2ms, 2ms));
  EXPECT_EQ(outcome.held_at_end[1], 1u);
  EXPECT_EQ(outcome.counts.count("pipefill_stuck_fillers"), 0u);  // another bubble would do
  // With f = 0.71 and no switch the plan of exactly 7 ms + 0.1 fits too; with 50 us as well.
  EXPECT_EQ(drive("pipefill", {"fill_fraction=0.71"}, single).count(1, 0ms, 30ms), 4u);
  EXPECT_EQ(drive("pipefill", {"fill_fraction=0.7"}, single).count(1, 0ms, 30ms), 3u);
  EXPECT_EQ(drive("pipefill", {"fill_fraction=0.7", "switch_cost=0ns"}, single).count(1, 0ms, 30ms),
            4u);
}

/// The host is slow: 2 ms between launches. At 2, 4, 6, 8 ms: the last would end at 9 ms, after
/// 2 + 6.75 ms.
TEST(pipefill, counts_time_that_has_passed_in_the_bubble) {
  Scenario slow = scenario(30ms, {opaque_kernel(1, 1ms)}, 100);
  slow.fillers[0].gap = 2ms;
  slow.bubbles = {{2ms, 12ms, {10ms, Bytes{}, true}}};
  EXPECT_THAT(drive("pipefill", {}, slow).times(1), ElementsAre(2ms, 4ms, 6ms));
}

/// A filler's order is kept: its second thread's launch waits behind the one that does not fit.
TEST(pipefill, lets_no_thread_of_a_filler_overtake) {
  Scenario two = scenario(
      30ms, {opaque_kernel(1, 5ms), opaque_kernel(1, 2ms), opaque_kernel(1, 1ms)}, 3);
  two.fillers[0].threads = 2;
  two.bubbles = {{2ms, 12ms, {10ms, Bytes{}, true}}};
  const Outcome outcome = drive("pipefill", {}, two);
  EXPECT_THAT(outcome.times(1), ElementsAre(2ms));
  EXPECT_EQ(outcome.held_at_end[1], 2u);
}

TEST(pipefill, resumes_in_the_next_bubble) {
  Scenario two = scenario(50ms, {opaque_kernel(1, 4ms)}, 100);
  two.bubbles = {{2ms, 12ms, {10ms, Bytes{}, true}}, {30ms, 40ms, {10ms, Bytes{}, true}}};
  EXPECT_THAT(drive("pipefill", {}, two).times(1), ElementsAre(2ms, 30ms));
}

TEST(pipefill, leaves_communication_alone_unless_told) {
  Scenario stall = scenario(30ms, {opaque_kernel(1, 5ms)}, 100);
  stall.bubbles = {{2ms, 12ms, {10ms, Bytes{}, false}}};
  EXPECT_THAT(drive("pipefill", {}, stall).times(1), IsEmpty());
  EXPECT_THAT(drive("pipefill", {"bubbles=all"}, stall).times(1), ElementsAre(2ms));
  EXPECT_THAT(drive("pipefill", {"bubbles=all", "min_bubble=11ms"}, stall).times(1), IsEmpty());
}

TEST(pipefill, says_so_if_a_kernel_fits_no_bubble) {
  Scenario stuck = scenario(30ms, {opaque_kernel(1, 1ms), opaque_kernel(1, 7ms)}, 100);
  stuck.bubbles = {{2ms, 12ms, {10ms, Bytes{}, true}}};
  const Outcome outcome = drive("pipefill", {}, stuck);
  EXPECT_THAT(outcome.times(1), ElementsAre(2ms));
  EXPECT_EQ(outcome.counts.count("pipefill_stuck_fillers"), 1u);
}

/// 10 GiB are needed. The second filler needs 10 more.
TEST(pipefill, fills_only_what_the_bubble_has_memory_for) {
  Scenario tight = scenario(30ms, {opaque_kernel(1, 1ms)}, 2);
  tight.fillers.push_back(tight.fillers[0]);
  tight.bubbles = {{2ms, 12ms, {10ms, gib(19), true}}};
  const Outcome outcome = drive("pipefill", {}, tight);
  EXPECT_THAT(outcome.times(1), ElementsAre(2ms, 2ms));
  EXPECT_THAT(outcome.times(2), IsEmpty());
  tight.bubbles[0].info.free_memory = gib(20);
  EXPECT_THAT(drive("pipefill", {}, tight).times(2), ElementsAre(2ms, 2ms));
}

// Policies that fill announced bubbles: small scenarios with numbers to check by hand.

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

// Policies that run fillers while training has nothing outstanding, while it waits for its peers:
// `collectives: work` leaves that time alone, `idle` takes it. Numbers to check by hand.

/// Training computes until 1 ms, is in a collective until 6 ms, and computes from 8.5 to 9.5 ms. A
/// filler has kernels of 1 ms and as many blocks.
Scenario exchange(std::uint64_t blocks, Duration horizon = 9300us) {
  Scenario result = scenario(horizon, {kernel(blocks, 1ms)}, 100);
  result.training = {{0ms, WorkKind::kKernel, 100, 1ms, 100},
                     {500us, WorkKind::kCollective, 24, 5ms},
                     {8500us, WorkKind::kKernel, 100, 1ms, 100}};
  return result;
}

/// Two in flight, one goes when one has ended.
TEST(collectives, are_work_to_xsched_unless_told) {
  const Outcome work = drive("xsched", {"threshold=2", "wake=each"}, exchange(100));
  EXPECT_THAT(work.times(1), ElementsAre(6ms, 6ms, 7ms, 8ms));
  const Outcome idle =
      drive("xsched", {"threshold=2", "wake=each", "collectives=idle"}, exchange(100));
  EXPECT_THAT(idle.times(1), ElementsAre(1ms, 1ms, 2ms, 3ms, 4ms, 5ms, 6ms, 7ms, 8ms));
}

/// Of its two in flight none runs on beside training's kernel at 8.5 ms, but all beside the
/// collective.
TEST(collectives, are_work_to_reef_unless_told) {
  const Outcome work = drive("reef", {"mode=reset"}, exchange(100));
  EXPECT_THAT(work.times(1), ElementsAre(6ms, 6ms, 7ms, 8ms));
  const Outcome idle = drive("reef", {"mode=reset", "collectives=idle"}, exchange(100));
  EXPECT_THAT(idle.times(1), ElementsAre(1ms, 1ms, 2ms, 3ms, 4ms, 5ms, 6ms, 7ms, 8ms));
  EXPECT_THAT(idle.done, ElementsAre(Done{8500us, "preempt 1 after_blocks"},
                                     Done{8540us, "preempt 1 reset"}));
}

/// 0.1 ms after training's kernel has ended, and then one after the other. A copy is never work.
TEST(collectives, are_idle_time_to_tally_unless_told) {
  const Outcome idle = drive("tally", {}, exchange(100));
  EXPECT_THAT(idle.times(1), ElementsAre(1100us, 2100us, 3100us, 4100us, 5100us, 6100us, 7100us,
                                         8100us));
  const Outcome work = drive("tally", {"collectives=work"}, exchange(100));
  EXPECT_THAT(work.times(1), ElementsAre(6100us, 7100us, 8100us));
  Scenario copy = exchange(100);
  copy.training[1] = {500us, WorkKind::kCopy, 0, 5ms};
  EXPECT_EQ(drive("tally", {"collectives=work"}, copy).times(1), idle.times(1));
}

/// Kernels of ten waves are too large to run beside training. Two of 1 ms exceed the limit of 1 ms,
/// and must have ended before the next two. After 6 ms training waits for nothing, and is within
/// its iteration.
TEST(collectives, are_work_to_orion_unless_told) {
  EXPECT_THAT(drive("orion", {"max_duration=1ms"}, exchange(1000)).times(1), IsEmpty());
  const Outcome idle = drive("orion", {"max_duration=1ms", "collectives=idle"}, exchange(1000));
  EXPECT_THAT(idle.times(1), ElementsAre(1ms, 1ms, 3ms, 3ms, 5ms, 5ms));
}

/// From 1 to 6 ms turns are the device's 1 ms, and then training's and the filler's own again. A
/// turn that is ended is asked for again 1 us later; the collective stands still meanwhile.
TEST(collectives, are_work_to_gpreempt_unless_told) {
  EXPECT_THAT(drive("gpreempt", {}, exchange(100)).done, IsEmpty());
  EXPECT_THAT(
      drive("gpreempt", {"collectives=idle"}, exchange(100)).done,
      ElementsAre(Done{1ms, "slice 0 1ms"}, Done{1ms, "preempt 0 context_switch"},
                  Done{1ms, "slice 1 1ms"}, Done{1001us, "proceed 0"}, Done{6001us, "slice 0 1s"},
                  Done{6001us, "slice 1 1us"},
                  Done{6001us, "preempt 1 context_switch"},
                  Done{6002us, "proceed 1"}));
}

}  // namespace
}  // namespace bubblesim::testing
