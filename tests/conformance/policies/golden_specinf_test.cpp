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

Scenario request_of(std::uint64_t kernels) {
  Scenario request =
      marked(1500us, 40us, {training_kernel(0us, 900us), training_kernel(1020us, 50us)});
  request.fillers[0].role = Role::kOnline;
  request.fillers[0].launches = kernels;
  request.fillers[0].gap = 5us;
  return request;
}

/// Two kernels of a request till 1080 us. Training's launch of 1020 us waits for them.
TEST(specinf, holds_training_while_a_request_is_served) {
  const std::vector<std::string> given{"reference=1ms", "turn=0ns", "horizon=1ms", "budget=0.5"};
  const Outcome outcome = drive("specinf", given, request_of(2));
  EXPECT_THAT(outcome.times(1), ElementsAre(1000us, 1005us));
  EXPECT_THAT(outcome.times(0), ElementsAre(0us, 1080us));
  EXPECT_EQ(outcome.training_held, 1u);
  std::vector<std::string> never = given;
  never.push_back("barrier=fillers");
  EXPECT_THAT(drive("specinf", never, request_of(2)).times(0), ElementsAre(0us, 1020us));
}

/// A request of 400 us. Of 100 us, 80 are left at 1040 us and 44 at 1080 us, below half.
TEST(specinf, holds_training_only_until_half_of_the_bucket_is_spent) {
  const Outcome outcome = drive("specinf", kTenth, request_of(10));
  EXPECT_EQ(outcome.count(1, 1000us, 1046us), 10u);
  EXPECT_THAT(outcome.times(0), ElementsAre(0us, 1080us));
}

/// Kernels of 300 us, of which the host launches five at once. While the next request could have
/// the GPU for itself, 500 us may be outstanding: a third launch waits until one of two has ended.
TEST(specinf, keeps_training_from_running_far_ahead_while_a_request_may_come) {
  Scenario ahead = request_of(1);
  ahead.horizon = 2500us;
  ahead.training = {training_kernel(0us, 300us, 1)};
  for (const Duration at : {1100us, 1110us, 1120us, 1130us, 1140us}) {
    ahead.training.push_back(training_kernel(at, 300us, 1));
  }
  const std::vector<std::string> given{"reference=1ms", "turn=0ns", "horizon=1ms", "budget=0.5"};
  EXPECT_THAT(drive("specinf", given, ahead).times(0),
              ElementsAre(0us, 1100us, 1110us, 1400us, 1700us, 2000us));
  std::vector<std::string> spent = given;
  spent.push_back("barrier=fillers");
  EXPECT_THAT(drive("specinf", spent, ahead).times(0),
              ElementsAre(0us, 1100us, 1110us, 1120us, 1130us, 1140us));
}

/// The last of these kernels ends at 2600 us. Launches waited for 880 us: while the GPU stands
/// still then, that is what it costs. Of 500 us, 200 are left after 600, less than half.
TEST(specinf, charges_for_a_gpu_that_ran_dry_since_training_was_kept_from_running_ahead) {
  Scenario dry = request_of(1);
  dry.horizon = 4ms;
  dry.training = {training_kernel(0us, 300us, 1)};
  for (const Duration at : {1100us, 1110us, 1120us, 1130us, 1140us, 3200us, 3210us, 3220us}) {
    dry.training.push_back(training_kernel(at, 300us, 1));
  }
  const std::vector<std::string> given{"reference=1ms", "turn=0ns", "horizon=1ms", "budget=0.5"};
  EXPECT_THAT(drive("specinf", given, dry).times(0),
              ElementsAre(0us, 1100us, 1110us, 1400us, 1700us, 2000us, 3200us, 3210us, 3220us));
}

/// A request of 40 us every 300 us, and 20 us after it a kernel of training of 5 us. At 1 ms the
/// bucket holds 40 of 120 us: requests run beside training. Each leaves 7 us more; the ninth finds
/// 96, over three quarters, and holds training. It takes as long as the others: no other one does.
TEST(specinf, holds_training_only_for_requests_that_take_longer_beside_it) {
  Scenario steady = request_of(30);
  steady.horizon = 9ms;
  steady.fillers[0].gap = 300us;
  steady.training = {training_kernel(0us, 900us, 1)};
  for (int i = 0; i < 26; ++i) {
    steady.training.push_back(training_kernel(1020us + i * 300us, 5us, 2));
  }
  const std::vector<std::string> given{"reference=1ms", "turn=0ns",  "horizon=3ms",
                                       "budget=0.04",   "first=40us", "linger=0ns"};
  const Outcome outcome = drive("specinf", given, steady);
  EXPECT_EQ(outcome.training_held, 1u);
  EXPECT_EQ(outcome.times(0)[9], 3440us);
}

/// Beside offline fillers training is never held.
TEST(specinf, asks_nothing_of_training_without_requests) {
  Scenario single = request_of(10);
  single.fillers[0].role = Role::kOffline;
  EXPECT_EQ(drive("specinf", kTenth, single).training_held, 0u);
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
