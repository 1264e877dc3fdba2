// The parts of specinf: what each learns and allows, with numbers by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "policies/filler_work.hpp"
#include "policies/request_ages.hpp"
#include "policies/request_ways.hpp"
#include "policies/seen_kernel_times.hpp"
#include "policies/training_budget.hpp"
#include "policies/training_pace.hpp"
#include "policies/training_watch.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

LaunchInfo call_of(std::uint64_t number, std::uint64_t kernel, WorkKind kind = WorkKind::kKernel,
                   std::uint32_t client = 0) {
  LaunchInfo info;
  info.client = ClientId{client};
  info.kind = kind;
  info.launch = number;
  info.kernel = kernel;
  info.blocks = 10;
  return info;
}

CompletionInfo end_of(const LaunchInfo& info) { return {info.client, info.kind, info.launch}; }

TEST(kernel_times, believes_the_shortest_time_of_a_kernel) {
  SeenKernelTimes times;
  EXPECT_EQ(times.time_of(7), std::nullopt);
  times.observe(7, 30us);
  times.observe(7, 20us);
  times.observe(7, 25us);
  EXPECT_EQ(times.time_of(7), Duration{20us});
}

/// Twice 10 us after a collective's end, whatever stood before it: it was blocked. 10 and 20 us
/// differ by more than a quarter: it ran beside it.
TEST(kernel_times, believes_in_a_blocked_kernel_if_that_repeats) {
  SeenKernelTimes times;
  times.observe(1, 300us);
  times.observe_after_collective(1, 10us);
  EXPECT_EQ(times.time_of(1), Duration{300us});
  times.observe_after_collective(1, 10us);
  EXPECT_EQ(times.time_of(1), Duration{10us});
  times.observe(2, 300us);
  times.observe_after_collective(2, 10us);
  times.observe_after_collective(2, 20us);
  EXPECT_EQ(times.time_of(2), Duration{300us});
}

/// Nothing is known of the first kernel: 100 us. It takes 40 us, and so do two more: 80 us are
/// left, and 50 us after 30 us.
TEST(filler_work, adds_up_what_kernels_took_before) {
  FillerWork work(2, 100us);
  work.pass(call_of(1, 5, WorkKind::kKernel, 1), 0us);
  EXPECT_EQ(work.left(0us), 100us);
  EXPECT_EQ(work.complete(end_of(call_of(1, 5, WorkKind::kKernel, 1)), 40us), 40us);
  EXPECT_TRUE(work.empty());
  work.pass(call_of(2, 5, WorkKind::kKernel, 1), 50us);
  work.pass(call_of(3, 5, WorkKind::kKernel, 1), 50us);
  EXPECT_EQ(work.left(50us), 80us);
  EXPECT_EQ(work.left(80us), 50us);
  work.gone(ClientId{1}, 90us);
  EXPECT_EQ(work.left(90us), 0us);
}

/// The first request took 10 ms: 5 ms are half of what is usual. One of 30 ms raises that to 15 ms,
/// not to 30, and one of 11 ms lowers it to 15 / 1.1.
TEST(request_ages, are_in_units_of_what_four_of_five_do_not_exceed) {
  RequestAges ages;
  EXPECT_DOUBLE_EQ(ages.of(0ms), 0);
  ages.note(true, 0ms);
  EXPECT_DOUBLE_EQ(ages.of(7ms), 1);
  ages.note(true, 7ms);
  ages.note(false, 10ms);
  EXPECT_DOUBLE_EQ(ages.of(15ms), 0);
  ages.note(true, 20ms);
  EXPECT_DOUBLE_EQ(ages.of(25ms), 0.5);
  ages.note(false, 50ms);
  ages.note(true, 60ms);
  EXPECT_DOUBLE_EQ(ages.of(75ms), 1);
  ages.note(false, 71ms);
  ages.note(true, 80ms);
  EXPECT_NEAR(ages.of(95ms), 1.1, 1e-6);
}

/// Beside training requests took 1 s in `way` for `work`; an iteration lost `loss`, all seen here.
void see(RequestWays& ways, std::size_t way, Duration work, Duration loss) {
  ways.pass(way, 1s);
  ways.end_kernel(way, work, true);
  ways.delay(way, loss);
  ways.end_iteration(loss);
}

/// After training, after it on half of the SMs, and equal.
RequestWays three_ways(double share) {
  RequestWays ways(share);
  for (const RequestWay way : {RequestWay{-1, 100}, RequestWay{-1, 50}, RequestWay{0, 100}}) {
    ways.add(way);
  }
  return ways;
}

/// The ways on the ladder's foot, half way up and on its top.
std::vector<std::size_t> climb(const RequestWays& ways) {
  return {ways.at(0), ways.at(0.5), ways.at(1)};
}

/// A second of work takes 10 s after training and costs 0.4 s; 11.1 s and 0.3 s on half; 5 s and
/// 0.5 s at training's priority. From the second 1.1 s cost 0.1 s, to the third 6.1 s cost 0.2 s.
TEST(request_ways, climb_from_the_cheapest_by_what_is_gained_for_the_price) {
  RequestWays ways = three_ways(1);
  EXPECT_THAT(climb(ways), ::testing::ElementsAre(0, 0, 0));
  see(ways, 0, 100ms, 40ms);
  EXPECT_THAT(climb(ways), ::testing::ElementsAre(0, 0, 0));
  see(ways, 2, 200ms, 100ms);
  EXPECT_THAT(climb(ways), ::testing::ElementsAre(0, 0, 2));
  see(ways, 1, 90ms, 27ms);
  EXPECT_THAT(climb(ways), ::testing::ElementsAre(1, 1, 2));
  EXPECT_DOUBLE_EQ(ways.price(1), 0.3);
}

/// 0.39 s for a second of work instead of 0.4 is noise: the faster one is the cheapest.
TEST(request_ways, take_the_faster_of_two_that_are_as_cheap) {
  RequestWays ways = three_ways(1);
  see(ways, 0, 100ms, 40ms);
  see(ways, 1, 80ms, 31200us);
  EXPECT_THAT(climb(ways), ::testing::ElementsAre(0, 0, 0));
}

/// 100 ms and 200 ms of work: in 10 s the third way costs 0.5 x 3 % of the time, in 5 s twice that.
TEST(request_ways, begin_with_the_fastest_that_the_budget_pays_for_all) {
  RequestWays ways = three_ways(0.02);
  ways.elapse(5s);
  see(ways, 0, 100ms, 40ms);
  see(ways, 2, 200ms, 100ms);
  EXPECT_EQ(ways.at(0), 0U);
  EXPECT_EQ(ways.at(0.9), 0U);
  EXPECT_EQ(ways.at(1), 2U);
  ways.elapse(5s);
  ways.end_iteration(std::nullopt);
  EXPECT_EQ(ways.at(0), 2U);
}

/// Work in bubbles is work, and takes no time beside training: 100 ms of 200 halve the price.
TEST(request_ways, cost_less_the_more_of_them_is_in_bubbles) {
  RequestWays ways = three_ways(1);
  see(ways, 0, 100ms, 40ms);
  see(ways, 2, 100ms, 50ms);
  ways.end_kernel(2, 100ms, false);
  ways.end_iteration(std::nullopt);
  EXPECT_DOUBLE_EQ(ways.price(2), 0.25);
  EXPECT_THAT(climb(ways), ::testing::ElementsAre(2, 2, 2));
}

/// 10 ms of delay were seen here, and the iteration lost 30. 100 ms were believed to cost as much,
/// of which nine tenths count: where the loss is not known, 10 ms cost 10 x (90 + 30) / (90 + 10).
TEST(request_ways, cost_what_iterations_lost) {
  RequestWays ways = three_ways(1);
  ways.end_kernel(0, 100ms, true);
  EXPECT_EQ(ways.delay(0, 10ms), 10ms);
  ways.end_iteration(30ms);
  EXPECT_DOUBLE_EQ(ways.price(0), 0.3);
  EXPECT_EQ(ways.delay(0, 10ms), 12ms);
  ways.end_iteration(std::nullopt);
  EXPECT_DOUBLE_EQ(ways.price(0), 0.42);
}

/// Of 40 ms of delay three quarters came from requests in bubbles only: 5 of 20 ms lost are left.
TEST(request_ways, cost_nothing_for_what_bubbles_cost) {
  RequestWays ways = three_ways(1);
  ways.end_kernel(0, 100ms, true);
  ways.delay(0, 10ms);
  ways.delay(std::nullopt, 30ms);
  ways.end_iteration(20ms);
  EXPECT_DOUBLE_EQ(ways.price(0), 0.05);
}

/// Half a second each; nothing more, until a minute of requests has passed: then half is forgotten,
/// and half again, and who has been seen least is tried again, for as long as at first.
TEST(request_ways, are_tried_and_tried_again) {
  RequestWays ways(1);
  ways.add({-1, 100});
  ways.add({0, 100});
  EXPECT_EQ(ways.to_try(), 0U);
  see(ways, 0, 1s, {});
  EXPECT_EQ(ways.to_try(), 1U);
  ways.pass(1, 400ms);
  EXPECT_EQ(ways.to_try(), 1U);
  ways.pass(1, 100ms);
  ways.end_kernel(1, 60ms, true);
  EXPECT_EQ(ways.to_try(), std::nullopt);
  ways.pass(0, 60s);
  EXPECT_EQ(ways.to_try(), std::nullopt);
  ways.pass(0, 60s);
  EXPECT_EQ(ways.to_try(), 1U);
  ways.pass(1, 300ms);
  EXPECT_EQ(ways.to_try(), 1U);
}

/// 2 % of half of 2 s are there at once, and no more come in; a quarter spent leaves three.
TEST(training_budget, begins_full_and_holds_half_beside_requests) {
  TrainingBudget budget({0.02, 2s});
  budget.serve_requests();
  EXPECT_EQ(budget.credit(), 20ms);
  budget.pass(1s, {});
  EXPECT_DOUBLE_EQ(budget.fill(), 1);
  budget.pass({}, 5ms);
  EXPECT_DOUBLE_EQ(budget.fill(), 0.75);
}

/// Of 20 ms, 5 are charged; the kernel came 2 ms late. 4 are charged, and stay where its delay is
/// not known. A kernel that comes 50 ms early gives back the 2 and the 4, no more.
TEST(training_budget, replaces_a_charge_by_the_delay_of_trainings_kernel) {
  TrainingBudget budget({0.02, 1s});
  budget.pass(1s, 0ms);
  budget.pass(0ms, 5ms);
  budget.see_cost(2ms);
  EXPECT_EQ(budget.credit(), 18ms);
  budget.pass(0ms, 4ms);
  budget.see_cost(std::nullopt);
  EXPECT_EQ(budget.credit(), 14ms);
  EXPECT_EQ(budget.charged(), 6ms);
  budget.see_cost(-50ms);
  EXPECT_EQ(budget.credit(), 20ms);
}

/// 2 % of 1 s are 20 ms. 5 ms of exposure at price 1 leave 15 ms. The iteration lost 1 ms of
/// them: 19 ms. Of the 100 ms that were believed to cost as much, nine tenths count: (90 + 1) of
/// (90 + 5).
TEST(training_budget, replaces_what_was_charged_by_what_was_measured) {
  TrainingBudget budget({0.02, 1s});
  budget.pass(1s, 0ms);
  EXPECT_EQ(budget.credit(), 20ms);
  budget.pass(0ms, 5ms);
  EXPECT_EQ(budget.credit(), 15ms);
  EXPECT_EQ(budget.charged(), 5ms);
  budget.end_iteration(1ms);
  EXPECT_EQ(budget.credit(), 19ms);
  EXPECT_DOUBLE_EQ(budget.price(), 91.0 / 95.0);
  EXPECT_EQ(budget.exposed(), 0ms);
}

/// 5 ms of exposure on one GPU of four cost 20 ms, for the other three may lose as much: the bucket
/// is empty. The iteration lost 4 ms: 16 come back. Of the 100 ms that 25 were believed to cost,
/// nine tenths count: (90 + 4) of (22.5 + 5).
TEST(training_budget, begins_with_a_price_of_the_number_of_ranks) {
  TrainingBudget budget({0.02, 1s});
  budget.see_ranks(4);
  EXPECT_DOUBLE_EQ(budget.price(), 4);
  budget.pass(1s, 0ms);
  EXPECT_TRUE(budget.is_worth(1us, 5ms));
  EXPECT_FALSE(budget.is_worth(1s, 5001us));
  budget.pass(0ms, 5ms);
  EXPECT_EQ(budget.credit(), 0ms);
  EXPECT_EQ(budget.charged(), 20ms);
  budget.end_iteration(4ms);
  EXPECT_EQ(budget.credit(), 16ms);
  EXPECT_DOUBLE_EQ(budget.price(), (0.9 * 0.1 + 0.004) / (0.9 * 0.025 + 0.005));
}

TEST(training_budget, begins_with_a_price_from_1_to_16) {
  TrainingBudget budget({0.02, 1s});
  EXPECT_DOUBLE_EQ(budget.price(), 1);
  budget.see_ranks(8192);
  EXPECT_DOUBLE_EQ(budget.price(), 16);
  budget.see_ranks(0);
  EXPECT_DOUBLE_EQ(budget.price(), 1);
}

/// Iterations differ by 6 ms: what one of them gains is kept beyond the 20 ms of the bucket.
TEST(training_budget, keeps_what_an_iteration_gains_by_itself) {
  TrainingBudget budget({0.02, 1s});
  budget.see_iteration(100ms, 6ms);
  budget.pass(1s, 0ms);
  budget.end_iteration(-9ms);
  EXPECT_EQ(budget.credit(), 26ms);
  budget.pass(1s, 0ms);
  EXPECT_EQ(budget.credit(), 26ms);
  budget.end_iteration(52ms);
  EXPECT_EQ(budget.credit(), -26ms);
  EXPECT_FALSE(budget.is_overdrawn());
  budget.end_iteration(1us);
  EXPECT_TRUE(budget.is_overdrawn());
}

TEST(training_budget, holds_no_more_than_its_horizon_or_an_iteration) {
  TrainingBudget budget({0.02, 1s});
  budget.pass(10s, 0ms);
  EXPECT_EQ(budget.credit(), 20ms);
  budget.see_iteration(2s);
  budget.pass(10s, 0ms);
  EXPECT_EQ(budget.credit(), 40ms);
}

/// 4 ms of exposure cost 4 ms, of which 1 ms had come in: 3 ms are owed. They are forgiven; what a
/// bucket holds is not.
TEST(training_budget, forgives_what_is_owed) {
  TrainingBudget budget({0.01, 1s});
  budget.pass(100ms, 4ms);
  EXPECT_EQ(budget.credit(), Duration{-3ms});
  budget.forgive();
  EXPECT_EQ(budget.credit(), Duration{});
  budget.pass(100ms, {});
  budget.forgive();
  EXPECT_EQ(budget.credit(), Duration{1ms});
}

/// Half full, 10 of 20 ms: worth is what gains four times its cost. Empty: nothing that costs.
TEST(training_budget, buys_dear_gains_only_while_it_is_full) {
  TrainingBudget budget({0.02, 1s});
  EXPECT_FALSE(budget.is_worth(1s, 1us));
  budget.pass(500ms, 0ms);
  EXPECT_TRUE(budget.is_worth(4ms, 1ms));
  EXPECT_FALSE(budget.is_worth(3900us, 1ms));
  EXPECT_FALSE(budget.is_worth(1s, 11ms));
  budget.pass(500ms, 0ms);
  EXPECT_TRUE(budget.is_worth(1us, 1ms));
}

TEST(training_pace, finds_the_period_of_the_later_half) {
  EXPECT_EQ(repeating_period({}), 0u);
  const std::vector<std::uint64_t> steady{9, 8, 7, 6, 5, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1};
  EXPECT_EQ(repeating_period(steady), 3u);
  const std::vector<std::uint64_t> none{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_EQ(repeating_period(none), 0u);
}

TEST(training_pace, finds_lengths_that_come_again_in_turn) {
  EXPECT_EQ(repeating_lengths({}), 0u);
  const std::vector<Duration> steady(4, 10ms);
  EXPECT_EQ(repeating_lengths(steady), 1u);
  const std::vector<Duration> turn{50ms, 10ms, 20ms, 30ms, 10ms, 20ms, 30ms, 10ms, 20ms, 30ms};
  EXPECT_EQ(repeating_lengths(turn), 3u);
  const std::vector<Duration> none{10ms, 11ms, 10ms, 12ms, 13ms, 10ms};
  EXPECT_EQ(repeating_lengths(none), 0u);
}

/// 100 and 140 ms in turn: after one of 140 comes one of 100, then, without fillers, one of 140.
TEST(training_pace, compares_with_the_iteration_of_the_same_turn) {
  TrainingPace pace(1s);
  pace.mark();
  Duration now = 30ms;
  EXPECT_EQ(pace.end_iteration(false, {0ms, 0ms, 0ms}, now), std::nullopt);
  for (int i = 0; i < 8; ++i) {
    now += i % 2 == 0 ? 100ms : 140ms;
    EXPECT_EQ(pace.end_iteration(false, {0ms, 0ms, 0ms}, now), std::nullopt);
  }
  EXPECT_EQ(pace.reference(), Duration{120ms});
  EXPECT_EQ(pace.spread(), Duration{});
  now += 103ms;
  EXPECT_EQ(pace.end_iteration(true, {9ms, 9ms, 0ms}, now), Duration{3ms});
  now += 141ms;
  EXPECT_EQ(pace.end_iteration(false, {0ms, 0ms, 0ms}, now), Duration{1ms});
}

/// Iterations of 100 and 120 ms without fillers: 110. One of 116 ms lost 6; one of 200 ms may be of
/// another kind, and lost no more than the 30 ms that fillers were in the way; but all 90 if the
/// budget lets fillers cost as much at once, here or on the job's other GPUs.
TEST(training_pace, measures_losses_against_the_first_iterations) {
  TrainingPace pace(1s);
  pace.mark();
  EXPECT_EQ(pace.end_iteration(false, {0ms, 0ms, 0ms}, 50ms), std::nullopt);
  EXPECT_EQ(pace.end_iteration(false, {0ms, 0ms, 0ms}, 150ms), std::nullopt);
  EXPECT_EQ(pace.end_iteration(false, {0ms, 0ms, 0ms}, 270ms), std::nullopt);
  EXPECT_EQ(pace.reference(), Duration{110ms});
  EXPECT_TRUE(pace.measures(999ms));
  EXPECT_FALSE(pace.measures(1s));
  EXPECT_EQ(pace.end_iteration(true, {20ms, 20ms, 0ms}, 386ms), Duration{6ms});
  EXPECT_EQ(pace.end_iteration(true, {30ms, 20ms, 89ms}, 586ms), Duration{30ms});
  EXPECT_EQ(pace.end_iteration(true, {30ms, 20ms, 90ms}, 786ms), Duration{90ms});
  EXPECT_EQ(pace.end_iteration(true, {20ms, 20ms, 0ms}, 1000ms), Duration{20ms});
  EXPECT_EQ(pace.end_iteration(false, {0ms, 0ms, 89ms}, 1200ms), Duration{});
  EXPECT_EQ(pace.end_iteration(false, {0ms, 0ms, 90ms}, 1400ms), Duration{90ms});
}

/// Iterations of 300 ms: the third one ends at 950 ms. Fillers come in at 1 s on every GPU of the
/// job, and the next one takes 304 ms, though none ran here. It lost 4 ms; the reference stays.
TEST(training_pace, counts_no_iteration_in_which_fillers_of_other_gpus_came) {
  TrainingPace pace(1s);
  pace.mark();
  EXPECT_EQ(pace.end_iteration(false, {0ms, 0ms, 0ms}, 50ms), std::nullopt);
  for (const Duration end : {350ms, 650ms, 950ms}) {
    EXPECT_EQ(pace.end_iteration(false, {0ms, 0ms, 0ms}, end), std::nullopt);
  }
  EXPECT_TRUE(pace.measures(999ms));
  EXPECT_EQ(pace.end_iteration(false, {0ms, 0ms, 0ms}, 1254ms), Duration{4ms});
  EXPECT_EQ(pace.reference(), Duration{300ms});
}

/// An iteration of 8 s is longer than the second that is asked for: fillers wait for its end.
TEST(training_pace, keeps_fillers_out_until_an_iteration_was_whole) {
  TrainingPace pace(1s);
  pace.mark();
  EXPECT_EQ(pace.end_iteration(false, {0s, 0s, 0ms}, 3s), std::nullopt);
  EXPECT_TRUE(pace.measures(10s));
  EXPECT_EQ(pace.end_iteration(false, {0s, 0s, 0ms}, 11s), std::nullopt);
  EXPECT_EQ(pace.reference(), Duration{8s});
  EXPECT_FALSE(pace.measures(11s));
}

/// No whole iteration fits: fillers come in after 20 times the time. The first one with fillers,
/// less their charge, is a bound: 5 s less 1 s, so it lost 1 s. One without them takes its place.
TEST(training_pace, has_a_bound_for_long_iterations_until_one_is_without_fillers) {
  TrainingPace pace(1s);
  EXPECT_TRUE(pace.measures(19999ms));
  EXPECT_FALSE(pace.measures(20s));
  pace.mark();
  EXPECT_EQ(pace.end_iteration(true, {0s, 0s, 0ms}, 24s), std::nullopt);
  EXPECT_EQ(pace.end_iteration(true, {2s, 1s, 0ms}, 29s), Duration{1s});
  EXPECT_EQ(pace.end_iteration(false, {0s, 0s, 0ms}, 33500ms), std::nullopt);
  EXPECT_EQ(pace.reference(), Duration{4500ms});
}

/// A kernel ran 250 ms into an iteration of 8 s: the bound is 7.75 s. Beside fillers everywhere the
/// next takes 8.9 s, of which they seem to have cost 0.1 s: it lost 1.15 s, no better bound.
/// One of 8 s into which one ran for 100 ms is.
TEST(training_pace, takes_its_bound_from_the_least_disturbed_iteration) {
  TrainingPace pace(1s);
  pace.mark();
  EXPECT_EQ(pace.end_iteration(true, {0s, 0s, 0ms}, 8s), std::nullopt);
  EXPECT_EQ(pace.end_iteration(true, {250ms, 250ms, 0ms}, 16s), Duration{250ms});
  EXPECT_EQ(pace.end_iteration(true, {8s, 100ms, 0ms}, 24900ms), Duration{1150ms});
  EXPECT_EQ(pace.reference(), Duration{7750ms});
  EXPECT_EQ(pace.end_iteration(true, {100ms, 100ms, 0ms}, 32900ms), Duration{100ms});
  EXPECT_EQ(pace.reference(), Duration{7900ms});
}

/// Without marks, four kernels repeat; half of a second in, the period is known, and an iteration
/// ends with each fourth launch from then on.
TEST(training_pace, takes_the_period_of_launches_where_no_marks_come) {
  TrainingPace pace(1s);
  std::vector<int> ends;
  for (int i = 0; i < 64; ++i) {
    if (pace.launch(static_cast<std::uint64_t>(i % 4), 10ms * i)) ends.push_back(i);
  }
  EXPECT_EQ(ends, (std::vector<int>{50, 54, 58, 62}));
  pace.mark();
  EXPECT_FALSE(pace.launch(2, 640ms));
}

/// Micro-batches of 100 ms were taken for iterations before the first mark came: of one of 8 s with
/// marks, the one of 9 s after it lost 1 s, and is of no other kind than that of 100 ms.
TEST(training_pace, forgets_the_period_of_launches_when_marks_come) {
  TrainingPace pace(1s);
  for (int i = 1; i < 9; ++i) {
    EXPECT_EQ(pace.end_iteration(false, {0ms, 0ms, 0ms}, i * 100ms), std::nullopt);
  }
  EXPECT_EQ(pace.reference(), Duration{100ms});
  pace.mark();
  EXPECT_EQ(pace.end_iteration(true, {0ms, 0ms, 0ms}, 1s), std::nullopt);
  EXPECT_EQ(pace.end_iteration(false, {0ms, 0ms, 0ms}, 9s), std::nullopt);
  EXPECT_EQ(pace.reference(), Duration{8s});
  EXPECT_EQ(pace.end_iteration(true, {3s, 2s, 0ms}, 18s), Duration{1s});
}

/// Fillers' kernels that run 80 ms into an iteration of 8 s are a hundredth of it: it counts as
/// one without fillers. 90 ms are more.
TEST(training_pace, overlooks_a_kernel_that_ran_into_an_iteration) {
  TrainingPace pace(1s);
  pace.mark();
  EXPECT_EQ(pace.end_iteration(true, {0ms, 0ms, 0ms}, 2s), std::nullopt);
  EXPECT_EQ(pace.end_iteration(true, {90ms, 90ms, 0ms}, 10s), Duration{90ms});  // a bound
  EXPECT_TRUE(pace.measures(10s));
  EXPECT_EQ(pace.end_iteration(true, {80ms, 80ms, 0ms}, 18s), std::nullopt);
  EXPECT_EQ(pace.reference(), Duration{8s});
  EXPECT_FALSE(pace.measures(18s));
}

/// Kernels of 10 us at 0 and 110 us: a bubble of 100 us lies before the second place.
TEST(training_watch, learns_how_long_training_idled_at_a_place) {
  TrainingWatch watch(50us);
  const auto iteration = [&](Duration begin, std::uint64_t number) {
    watch.begin_iteration();
    watch.launch(call_of(number, 1), begin);
    EXPECT_TRUE(watch.computes());
    watch.complete(end_of(call_of(number, 1)), false, begin + 10us);
    EXPECT_FALSE(watch.computes());
    EXPECT_EQ(watch.bubble_begin(), begin + 10us);
  };
  iteration(0us, 1);
  EXPECT_EQ(watch.expected_end(), std::nullopt);
  watch.launch(call_of(2, 1), 110us);
  watch.complete(end_of(call_of(2, 1)), false, 120us);
  iteration(200us, 3);
  EXPECT_EQ(watch.expected_end(), Instant{310us});
}

/// A launch queue that runs ahead is no bubble; a collective alone is.
TEST(training_watch, sees_no_bubble_while_a_kernel_is_outstanding) {
  TrainingWatch watch(50us);
  watch.launch(call_of(1, 1), 0us);
  watch.launch(call_of(2, 1), 0us);
  watch.launch(call_of(3, 9, WorkKind::kCollective), 0us);
  watch.complete(end_of(call_of(1, 1)), false, 10us);
  EXPECT_TRUE(watch.computes());
  watch.complete(end_of(call_of(2, 1)), false, 20us);
  EXPECT_FALSE(watch.computes());
}

/// A kernel of 10 us behind a collective is overdue after 50 us and twice its length; when the
/// collective ends, training computes.
TEST(training_watch, takes_an_overdue_kernel_for_one_that_waits_for_a_collective) {
  TrainingWatch watch(50us);
  watch.launch(call_of(1, 1), 0us);
  watch.complete(end_of(call_of(1, 1)), false, 10us);
  watch.launch(call_of(2, 9, WorkKind::kCollective), 10us);
  watch.launch(call_of(3, 1), 10us);
  // At this place nothing is known.
  EXPECT_TRUE(watch.computes());
  EXPECT_EQ(watch.overdue_at(), Instant{80us});
  watch.look(80us);
  EXPECT_FALSE(watch.computes());
  watch.complete(end_of(call_of(2, 9, WorkKind::kCollective)), false, 200us);
  EXPECT_TRUE(watch.computes());
}

}  // namespace
}  // namespace bubblesim::policies
