// Turns of several processes: the same order in every run, and processes that are killed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/clock/shared_segment.hpp"
#include "tests/unit/capture/clock/child_process.hpp"
#include "tests/unit/capture/clock/host_instant.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;
using bubblesim::testing::ChildProcess;

/// In shared memory; written by whoever has the turn.
struct Log {
  struct Line {
    std::int64_t time = 0;
    std::int64_t who = 0;
    friend bool operator==(const Line&, const Line&) = default;
  };
  std::uint32_t count = 0;
  std::array<Line, 1000> lines;
  std::uint32_t number = 0;  ///< of a bell
  Bell bell;

  void add(HostClock& clock, std::int64_t who) {
    if (count < lines.size()) lines[count++] = {to_ns(clock.now()), who};
  }
};

struct Shared {
  std::unique_ptr<SharedSegment> memory = *SharedSegment::make("bubblesim.test", sizeof(Log));
  std::unique_ptr<HostClock> clock = *make_turn_clock();
  Log& log = *static_cast<Log*>(memory->address());
};

/// Three threads a process, which sleep for 7, 11 or 13 ns times their number.
void run_threads(HostClock& clock, Log& log, std::int64_t first) {
  Crew crew(clock);
  for (std::int64_t i = first; i < first + 3; ++i) {
    crew.start(i % 2 == 0 ? Turn::kTraining : Turn::kFiller, [&clock, &log, i] {
      constexpr std::array<std::int64_t, 3> kSteps{7, 11, 13};
      for (std::size_t step = 0; step < 15; ++step) {
        clock.sleep_until(clock.now() + Duration{kSteps[step % 3] * i});
        log.add(clock, i);
        if (step % 5 == 4) clock.ring(log.bell);
        if (step % 4 == 3) clock.wait(log.bell, log.bell.rings, clock.now() + 20ns);
      }
    });
  }
  crew.wait();
}

std::vector<Log::Line> run_two_processes() {
  Shared shared;
  HostClock& clock = *shared.clock;
  shared.log.bell.id = clock.bell_id();
  const auto part = clock.join(Turn::kControl);
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (const std::int64_t first : {1, 4}) {
    const std::uint32_t begun = clock.parts_begun();
    children.push_back(std::make_unique<ChildProcess>([&, first] {
      auto own = *open_clock(clock.address());
      const auto own_part = own->join(Turn::kControl);
      run_threads(*own, shared.log, first);
    }));
    EXPECT_TRUE(clock.await_parts(begun + 1, 30s));
  }
  clock.sleep_until(at(10us));
  for (auto& child : children) EXPECT_EQ(child->wait(), 0);
  return {shared.log.lines.begin(), shared.log.lines.begin() + shared.log.count};
}

TEST(TurnProcesses, TakeTurnsInTheSameOrderInEveryRun) {
  const std::vector<Log::Line> first = run_two_processes();
  ASSERT_EQ(first.size(), 90u);  // 6 threads, 15 steps each
  EXPECT_EQ(first[0], (Log::Line{7, 1}));
  EXPECT_EQ(first[1], (Log::Line{14, 2}));
  EXPECT_TRUE(std::ranges::is_sorted(first, {}, &Log::Line::time));
  for (int run = 1; run < 20; ++run) EXPECT_EQ(run_two_processes(), first);
}

TEST(TurnProcesses, OneThatIsKilledWhileItSleepsLosesItsPart) {
  Shared shared;
  HostClock& clock = *shared.clock;
  const auto part = clock.join(Turn::kControl);
  ChildProcess child([&] {
    const auto own_part = clock.join(Turn::kFiller);
    clock.sleep_until(at(10ns));
    shared.log.add(clock, 1);
    clock.sleep_until(at(20ns));
    shared.log.add(clock, 2);
  });
  ASSERT_TRUE(clock.await_parts(2, 30s));
  clock.sleep_until(at(15ns));
  child.kill();
  clock.sleep_until(at(30ns));
  EXPECT_EQ(clock.now(), at(30ns));
  ASSERT_EQ(shared.log.count, 1u);
  EXPECT_EQ(shared.log.lines[0], (Log::Line{10, 1}));
}

TEST(TurnProcesses, OneThatIsKilledWhileItRunsLosesTheTurnAsAZombieAlready) {
  Shared shared;
  HostClock& clock = *shared.clock;
  const auto part = clock.join(Turn::kControl);
  ChildProcess child([&] {
    const auto own_part = clock.join(Turn::kFiller);
    clock.sleep_until(at(10ns));
    shared.log.add(clock, 1);
    raise(SIGKILL);
  });
  ASSERT_TRUE(clock.await_parts(2, 30s));
  clock.sleep_until(at(15ns));  // comes back only because the dead process loses its turn
  EXPECT_EQ(clock.now(), at(15ns));
  EXPECT_EQ(shared.log.count, 1u);
  EXPECT_EQ(child.wait(), -SIGKILL);
}

TEST(TurnProcesses, AForkedChildHasNoPartAndMayJoin) {
  Shared shared;
  const auto part = shared.clock->join(Turn::kControl);
  ChildProcess child([&] {
    const auto own_part = shared.clock->join(Turn::kFiller);  // so it may join
    shared.clock->sleep_until(at(3ns));
    shared.log.add(*shared.clock, 1);
  });
  ASSERT_TRUE(shared.clock->await_parts(2, 30s));
  shared.clock->sleep_until(at(5ns));
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(shared.log.count, 1u);
}

}  // namespace
}  // namespace bubblesim::capture
