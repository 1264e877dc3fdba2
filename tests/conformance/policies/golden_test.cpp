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

}  // namespace
}  // namespace bubblesim::testing
