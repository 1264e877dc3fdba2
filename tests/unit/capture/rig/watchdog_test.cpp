#include "capture/rig/worker_process.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace bubblesim::capture {
namespace {

using std::chrono::milliseconds;

void await(const std::atomic<int>& value, int wanted) {
  for (int i = 0; i < 10'000 && value < wanted; ++i) std::this_thread::sleep_for(milliseconds(1));
}

TEST(Watchdog, KillsOnceWhatIsBusyAndStandsStill) {
  std::atomic<int> kills{0}, looks{0};
  const Watchdog dog({{[] { return true; }, [&] { ++looks; return std::uint64_t{7}; },
                       [&] { ++kills; }}},
                     milliseconds(100));
  await(kills, 1);
  const int then = looks;
  await(looks, then + 20);
  EXPECT_EQ(kills, 1);
  EXPECT_TRUE(dog.killed(0));
}

TEST(Watchdog, LeavesAloneWhatMovesAndWhatMayRest) {
  std::atomic<int> kills{0}, looks{0};
  std::uint64_t progress = 0;
  const Watchdog dog({{[] { return true; }, [&] { return ++progress; }, [&] { ++kills; }},
                      {[] { return false; }, [&] { ++looks; return std::uint64_t{0}; },
                       [&] { ++kills; }}},
                     milliseconds(1));
  await(looks, 20);
  EXPECT_EQ(kills, 0);
  EXPECT_FALSE(dog.killed(0));
  EXPECT_FALSE(dog.killed(1));
}

TEST(Watchdog, WhoGetsReadyStandsStillNoLongerThanAllOthersThatDo) {
  WorkerStatus mine, other;
  mine.state = other.state = WorkerState::kPreparing;
  const std::uint64_t before = progress_among({{mine}}, {{other}});
  ++other.progress;
  EXPECT_NE(progress_among({{mine}}, {{other}}), before);
  // Who waits for the start shows life every second, which says nothing of the others.
  other.state = WorkerState::kReady;
  const std::uint64_t alone = progress_among({{mine}}, {{other}});
  ++other.progress;
  EXPECT_EQ(progress_among({{mine}}, {{other}}), alone);
  // Who runs is looked at by itself.
  mine.state = WorkerState::kRunning;
  other.state = WorkerState::kPreparing;
  const std::uint64_t running = progress_among({{mine}}, {{other}});
  ++other.progress;
  EXPECT_EQ(progress_among({{mine}}, {{other}}), running);
}

}  // namespace
}  // namespace bubblesim::capture
