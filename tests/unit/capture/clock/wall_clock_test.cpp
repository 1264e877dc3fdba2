// None of these holds the machine to a time: only orders, and "not before".
#include <gtest/gtest.h>

#include <thread>

#include "capture/clock/host_clock.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;

TEST(WallClock, DoesNotReturnBeforeTheInstant) {
  const auto clock = wall_clock();
  for (const Duration length : {-1ms, 0ms, 1ms}) {
    const HostTime until = clock->now() + length;
    clock->sleep_until(until);
    EXPECT_GE(clock->now(), until);
  }
}

TEST(WallClock, AWaitEndsAtItsDeadline) {
  for (const Duration spin : {0us, 50us, 10'000us}) {
    const auto clock = wall_clock(spin);
    Bell bell;
    const HostTime deadline = clock->now() + 2ms;
    while (clock->now() < deadline) clock->wait(bell, 0, deadline);
    EXPECT_GE(clock->now(), deadline);
    clock->wait(bell, 0, deadline);  // has passed: at once
  }
}

TEST(WallClock, LooksUntilItIsThereOrTheDeadlineHasPassed) {
  const auto clock = wall_clock(1h);
  int looks = 0;
  EXPECT_TRUE(clock->look(HostTime::max(), [&] { return ++looks == 3; }));
  EXPECT_EQ(looks, 3);
  const HostTime deadline = clock->now() + 1ms;
  EXPECT_FALSE(clock->look(deadline, [] { return false; }));
  EXPECT_GE(clock->now(), deadline);
  EXPECT_FALSE(wall_clock(0us)->look(HostTime::max(), [] { return false; }));  // does not look
}

TEST(WallClock, ARingBeforeTheWaitIsNotMissed) {
  const auto clock = wall_clock();
  Bell bell;
  clock->ring(bell);
  clock->wait(bell, 0, HostTime::max());
  EXPECT_EQ(bell.rings, 1u);
}

TEST(WallClock, ARingWakesAllWhoSleep) {
  const auto clock = wall_clock(0us);
  Bell bell;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (bell.rings == 0) clock->wait(bell, 0, HostTime::max());
    });
  }
  while (bell.sleepers < 4) std::this_thread::yield();
  clock->ring(bell);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bell.sleepers, 0u);
}

/// Two threads that wake each other: none is ever left asleep.
TEST(WallClock, NoRingIsLostBetweenLookingAndSleeping) {
  for (const Duration spin : {0us, 50us}) {
    const auto clock = wall_clock(spin);
    Bell there;
    Bell back;
    constexpr std::uint32_t kTurns = 2'000;
    std::thread other([&] {
      for (std::uint32_t i = 0; i < kTurns; ++i) {
        while (there.rings == i) clock->wait(there, i, HostTime::max());
        clock->ring(back);
      }
    });
    for (std::uint32_t i = 0; i < kTurns; ++i) {
      clock->ring(there);
      while (back.rings == i) clock->wait(back, i, HostTime::max());
    }
    other.join();
    EXPECT_EQ(back.rings, kTurns);
  }
}

TEST(WallClock, HasNoPartsToWaitFor) {
  const auto clock = *open_clock("wall");
  EXPECT_EQ(clock->address(), "wall:50000");
  EXPECT_TRUE(clock->await_parts(1000, 0ns));
  const auto part = clock->join(Turn::kDevice);
  EXPECT_EQ(clock->parts_begun(), 0u);
}

TEST(WallClock, ItsAddressOpensOneThatLooksAsLong) {
  for (const Duration spin : {0us, 50us, 5'000us}) {
    const auto clock = *open_clock(wall_clock(spin)->address());
    EXPECT_EQ(clock->address(), wall_clock(spin)->address());
  }
}

}  // namespace
}  // namespace bubblesim::capture
