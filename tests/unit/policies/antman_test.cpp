// AntMan's throttle and its coordinator.
#include <gtest/gtest.h>

#include "policies/antman_coordinator.hpp"
#include "policies/antman_throttle.hpp"

namespace bubblesim::policies {
namespace {

using namespace std::chrono_literals;

/// Four operations, 10 ms at 50 %: 20 ms in all, so 10 ms less 50 us are slept after it.
TEST(antman_throttle, sleeps_after_a_mini_batch_and_then_within_the_next) {
  AntManThrottle throttle(50us);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(throttle.begin_operation(), Duration{});
  EXPECT_EQ(throttle.end_batch(10ms, 50), Duration{9950us});
  Duration inserted{};
  for (int i = 0; i < 4; ++i) inserted += throttle.begin_operation();
  EXPECT_EQ(inserted, Duration{9950us});  // 2487.5 us each
  // 19.95 ms with 9.95 of them inserted are 10 ms of work: 50 us are missing, not more than the
  // fixed cost.
  EXPECT_EQ(throttle.end_batch(19950us, 50), Duration{});
  EXPECT_EQ(throttle.begin_operation(), Duration{});
}

/// So two mini-batches take 20 + 20 ms less 100 us.
TEST(antman_throttle, reaches_its_percentage_over_two_mini_batches) {
  AntManThrottle throttle(0us);
  throttle.begin_operation();
  EXPECT_EQ(throttle.end_batch(10ms, 25), Duration{30ms});
  const Duration within = throttle.begin_operation();
  EXPECT_EQ(within, Duration{30ms});
  EXPECT_EQ(throttle.end_batch(10ms + within, 25), Duration{});
}

/// The next mini-batch has two operations of four: half is inserted; 15 ms less 5 are 10 of work.
TEST(antman_throttle, measures_what_was_inserted_in_fact) {
  AntManThrottle throttle(0us);
  for (int i = 0; i < 4; ++i) throttle.begin_operation();
  throttle.end_batch(10ms, 50);
  EXPECT_EQ(throttle.begin_operation() + throttle.begin_operation(), Duration{5ms});
  EXPECT_EQ(throttle.end_batch(15ms, 50), Duration{5ms});
}

TEST(antman_throttle, inserts_nothing_at_a_hundred) {
  AntManThrottle throttle(50us);
  throttle.begin_operation();
  EXPECT_EQ(throttle.end_batch(10ms, 100), Duration{});
  EXPECT_EQ(throttle.begin_operation(), Duration{});
}

/// One iteration of 100 ms without fillers; then 10 %; 20, 30, 40; one of 110 halves it, to 20;
/// another to 10, 5, 2, 1, 0; then it comes back.
TEST(antman_coordinator, adds_and_halves) {
  AntManCoordinator coordinator(
      {.tolerance = 0.05, .first = 10, .increase = 10, .decrease = 0.5},
      {.iterations = 1, .longest = 60s});
  EXPECT_EQ(coordinator.percentage(), 0);
  const auto after = [&coordinator](Duration length) {
    coordinator.end_iteration(length, 1s);
    return coordinator.percentage();
  };
  EXPECT_EQ(after(100ms), 10);
  EXPECT_EQ(after(100ms), 20);
  EXPECT_EQ(after(105ms), 30);
  EXPECT_EQ(after(105ms), 40);
  for (const int percentage : {20, 10, 5, 2, 1, 0}) EXPECT_EQ(after(110ms), percentage);
  EXPECT_EQ(after(90ms), 10);
  for (int i = 0; i < 20; ++i) after(90ms);
  EXPECT_EQ(coordinator.percentage(), 100);
}

}  // namespace
}  // namespace bubblesim::policies
