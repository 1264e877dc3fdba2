// SpecInF: one small scenario a rule, with numbers to check by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/policies/scenarios.hpp"

namespace bubblesim::testing {
namespace {

using namespace policy;
using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;

/// Fillers come in at 1 ms, for an iteration of 300 us was whole before.
Scenario marked(Duration horizon, Duration filler_kernel, std::vector<Call> training) {
  Scenario result = scenario(horizon, {kernel(10, filler_kernel)}, 1000);
  result.training = std::move(training);
  result.iteration_ends = {300us, 600us};
  return result;
}

Call training_kernel(Duration begin, Duration length, std::uint64_t function = 0) {
  Call call = kernel(100, length);
  call.at = begin;
  call.function = function;
  return call;
}

/// A turn costs nothing. What costs is not worth it: the bucket holds 60 ms, and has 40 us.
const std::vector<std::string> kFree{"reference=1ms", "turn=0ns"};
/// The bucket holds a tenth of 1 ms.
const std::vector<std::string> kTenth{"reference=1ms", "turn=0ns", "horizon=1ms", "budget=0.1",
                                      "look=90us"};
/// The same beside requests, where the bucket holds half.
const std::vector<std::string> kTenthBeside{"reference=1ms", "turn=0ns", "horizon=2ms",
                                            "budget=0.1", "look=90us"};

/// Training computes till 2 ms. 100 us may be outstanding, and an unknown kernel counts as much.
/// From 2040 us on it counts 40: two (80 us), 120 us once the bubble has lasted 240 us. 160 us,
/// after 320 us, would outlast the next look by more than one kernel.
TEST(specinf, lets_more_be_outstanding_the_longer_a_bubble_lasts) {
  const Scenario single = marked(2350us, 40us, {training_kernel(0us, 2ms)});
  EXPECT_THAT(drive("specinf", kFree, single).times(1),
              ElementsAre(2000us, 2040us, 2040us, 2080us, 2120us, 2160us, 2200us, 2240us, 2240us,
                          2280us, 2320us));
}

/// Ends are noticed 30 us late: the bubble begins at 2030 us, and a kernel of 40 us counts 70.
TEST(specinf, sees_a_bubble_late_by_the_notice) {
  Scenario late = marked(2200us, 40us, {training_kernel(0us, 2ms)});
  late.notice = 30us;
  EXPECT_THAT(drive("specinf", kFree, late).times(1), ElementsAre(2030us, 2100us, 2170us));
}

/// At 2130 us training computes again: nothing passes, and 70 us are outstanding. They cost 70 us
/// of 2 % of the time: paid at 3.5 ms. The first look after it is at 3530 us, when the next bubble
/// has lasted 1300 us: 650 us may be outstanding, of which the next look needs 100: three kernels.
TEST(specinf, ends_grants_when_training_computes_and_pays_for_what_was_outstanding) {
  const Scenario back =
      marked(3531us, 40us, {training_kernel(0us, 2ms), training_kernel(2130us, 100us)});
  const Outcome outcome = drive("specinf", kFree, back);
  EXPECT_EQ(outcome.count(1, 2000us, 2130us), 5u);
  EXPECT_EQ(outcome.count(1, 2130us, 3530us), 0u);
  EXPECT_EQ(outcome.count(1, 3530us, 3531us), 3u);
  EXPECT_EQ(outcome.training_held, 0u);
}

/// Training computes all the time. 100 us are in the full bucket: an unknown kernel goes. It took
/// 40 us: 60 are left. What gains as much as it costs goes from 80 on: looks every 90 us find 87
/// at 1310 us, and, after 40 more, again 400 us later: a tenth of the time.
TEST(specinf, spends_no_more_than_its_budget_beside_training) {
  const Scenario full = marked(2600us, 40us, {training_kernel(0us, 5ms)});
  EXPECT_THAT(drive("specinf", kTenth, full).times(1),
              ElementsAre(1000us, 1310us, 1710us, 2110us, 2510us));
}

/// The same on one of a job's two GPUs: 40 us cost 80. Of 100 us 20 are left at 1040 us. What gains
/// half of its cost goes from 88.9 on: looks every 90 us find 92 at 1760 us, and 97, after 16 were
/// left at 1800 us, at 2610 us: a twentieth of the time.
TEST(specinf, spends_its_part_of_the_budget_on_each_gpu_of_a_job) {
  Scenario full = marked(2700us, 40us, {training_kernel(0us, 5ms)});
  full.training_ranks = 2;
  std::vector<std::string> given = kTenth;
  given.push_back("first=40us");
  EXPECT_THAT(drive("specinf", given, full).times(1), ElementsAre(1000us, 1760us, 2610us));
}

/// Requests of kernels of 40 us, `gap` apart, beside a training that computes all the time.
Scenario requests(std::uint64_t kernels, Duration gap, Duration horizon) {
  Scenario result = marked(horizon, 40us, {training_kernel(0us, 5ms)});
  result.fillers[0].role = Role::kOnline;
  result.fillers[0].launches = kernels;
  result.fillers[0].gap = gap;
  return result;
}

/// Ten kernels, one behind the other: each us costs one of the bucket's 100, and a tenth comes in.
/// No way is known: the first, after training on half of the SMs. Requests of usual age may owe
/// 30 us and 40 more. At 1160 us 44 are owed; at 1200 us 80: bubbles only, so launches must ask.
TEST(specinf, keeps_requests_to_bubbles_while_much_is_owed) {
  const Outcome outcome = drive("specinf", kTenthBeside, requests(10, 5us, 1500us));
  EXPECT_THAT(outcome.done,
              ElementsAre(Done{0us, "percentage 1 50"}, Done{1000us, "asking 1 tells"},
                          Done{1200us, "percentage 1 100"}, Done{1200us, "asking 1 asks"}));
  EXPECT_EQ(outcome.count(1, 1000us, 1046us), 10u);
  EXPECT_EQ(outcome.training_held, 0u);
}

/// Each launch comes when the one before has ended. The sixth, at 1200 us, finds 84 us owed (for
/// the first 40 us nothing comes into the full bucket), and waits: looks are 90 us apart, and that
/// at 1380 us finds 66. At 1420 us 102 are owed, and 66 at 1780 us.
TEST(specinf, lets_requests_go_on_when_less_is_owed) {
  const Outcome outcome = drive("specinf", kTenthBeside, requests(10, 40us, 1900us));
  EXPECT_THAT(outcome.times(1),
              ElementsAre(1000us, 1040us, 1080us, 1120us, 1160us, 1380us, 1780us));
}

/// Kernels of 4 ms without end beside one of training.
Scenario without_end() {
  Scenario result = scenario(4s, {kernel(10, 4ms)}, 2000);
  result.training = {training_kernel(0us, 5s)};
  result.iteration_ends = {300us, 600us};
  result.fillers[0].role = Role::kOnline;
  return result;
}

/// On a budget that pays for all, each way is had for half a second. None delays training, none is
/// faster: the first again.
TEST(specinf, tries_each_way_to_run_beside_training) {
  EXPECT_THAT(drive("specinf", {"reference=1ms", "budget=0.9"}, without_end()).done,
              ElementsAre(Done{0ms, "percentage 1 50"}, Done{1ms, "asking 1 tells"},
                          Done{501ms, "percentage 1 100"}, Done{1001ms, "priority 1 1"},
                          Done{1001ms, "percentage 1 50"}, Done{1501ms, "percentage 1 100"},
                          Done{2001ms, "priority 1 2"}, Done{2001ms, "percentage 1 50"},
                          Done{2501ms, "percentage 1 100"}, Done{3001ms, "priority 1 0"},
                          Done{3001ms, "percentage 1 50"}));
}

/// Where priorities cannot change, requests have what training leaves, whatever is in the bucket.
TEST(specinf, leaves_requests_below_training_where_priorities_do_not_change) {
  const std::vector<Done> told{{1ms, "asking 1 tells"}};
  Scenario run = without_end();
  EXPECT_EQ(drive("specinf", {"reference=1ms", "budget=0.9", "priority=fixed"}, run).done, told);
  run.gpu.priority_changes = false;
  EXPECT_EQ(drive("specinf", {"reference=1ms", "budget=0.9"}, run).done, told);
}

TEST(specinf, shares_as_it_is_told) {
  const Scenario request = requests(1, 5us, 1ms);
  EXPECT_EQ(drive("specinf", {}, request).sharing.mode, SharingMode::kMps);
  const Outcome streams = drive("specinf", {"sharing=one_process"}, request);
  EXPECT_EQ(streams.sharing.mode, SharingMode::kSpatial);
  EXPECT_EQ(streams.clients[0].priority, 1);
  EXPECT_EQ(streams.clients[1].priority, 0);
}

/// Kernels of 50 us, 300 us apart. Two functions take turns: half of 6 ms shows the period, so
/// that iterations without fillers are known at 6 ms. If none repeats, fillers wait for 20 x 6 ms.
TEST(specinf, takes_the_period_of_a_job_without_marks) {
  Scenario unmarked = scenario(13ms, {kernel(10, 40us)}, 1000);
  for (std::uint64_t i = 0; i < 50; ++i) {
    unmarked.training.push_back(training_kernel(300us * i, 50us, 1 + i % 2));
  }
  const std::vector<std::string> given{"reference=6ms", "turn=0ns"};
  const std::vector<Instant> times = drive("specinf", given, unmarked).times(1);
  ASSERT_FALSE(times.empty());
  EXPECT_EQ(times.front(), 6050us);
  for (std::uint64_t i = 0; i < 50; ++i) unmarked.training[i].function = 1 + i;
  unmarked.horizon = 130ms;
  const std::vector<Instant> later = drive("specinf", given, unmarked).times(1);
  ASSERT_FALSE(later.empty());
  EXPECT_THAT(later, Each(Ge(120ms)));
}

}  // namespace
}  // namespace bubblesim::testing
