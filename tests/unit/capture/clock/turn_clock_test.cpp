// Turns of the threads of one process: order, jumps of time, bells, deadlines.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/clock/shared_segment.hpp"
#include "capture/clock/turn_table.hpp"
#include "tests/fault.hpp"
#include "tests/unit/capture/clock/child_process.hpp"
#include "tests/unit/capture/clock/host_instant.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using bubblesim::testing::ChildProcess;

class TurnClockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = must(make_turn_clock());
    clock = std::move(made);
    bell.id = clock->bell_id();
    part = clock->join(Turn::kControl);
  }
  /// Only one thread runs, so the log needs no lock.
  void note(const std::string& what) {
    log.push_back(std::to_string(to_ns(clock->now())) + " " + what);
  }

  std::unique_ptr<HostClock> clock;
  Bell bell;
  std::unique_ptr<ClockPart> part;
  std::vector<std::string> log;
};

TEST_F(TurnClockTest, TimeStandsStillWhileAThreadRunsAndJumpsWhenItSleeps) {
  EXPECT_EQ(clock->now(), at(0ns));
  EXPECT_EQ(clock->now(), at(0ns));
  clock->sleep_until(at(1h));
  EXPECT_EQ(clock->now(), at(1h));
  clock->sleep_until(at(1min));  // has passed
  EXPECT_EQ(clock->now(), at(1h));
}

TEST_F(TurnClockTest, ThreadsThatAreDueAtOneMomentRunByTurnAndThenByJoining) {
  Crew crew(*clock);
  const auto sleeper = [this](const std::string& name, Duration until) {
    return [this, name, until] {
      clock->sleep_until(at(until));
      note(name);
    };
  };
  crew.start(Turn::kFiller, sleeper("filler", 5ns));
  crew.start(Turn::kTraining, sleeper("training a", 5ns));
  crew.start(Turn::kTraining, sleeper("training b", 5ns));
  crew.start(Turn::kDevice, sleeper("device", 5ns));
  crew.start(Turn::kFiller, sleeper("early", 3ns));
  EXPECT_TRUE(log.empty());  // this thread has kept its turn
  crew.wait();
  EXPECT_THAT(log, ElementsAre("3 early", "5 device", "5 training a", "5 training b", "5 filler"));
}

TEST_F(TurnClockTest, ARingMakesThoseWhoWaitForTheBellDueAtOnce) {
  Crew crew(*clock);
  Bell other;
  other.id = clock->bell_id();
  crew.start(Turn::kFiller, [&] {
    clock->wait(bell, 0, at(1s));
    note("rung");
  });
  crew.start(Turn::kFiller, [&] {
    clock->wait(other, 0, at(50ns));
    note("not rung");
  });
  crew.start(Turn::kTraining, [&] {
    clock->sleep_until(at(10ns));
    clock->ring(bell);
    note("rings");  // and keeps its turn
  });
  crew.wait();
  EXPECT_THAT(log, ElementsAre("10 rings", "10 rung", "50 not rung"));
}

TEST_F(TurnClockTest, ARingBeforeTheWaitIsNotMissed) {
  clock->ring(bell);
  clock->wait(bell, 0, HostTime::max());
  EXPECT_EQ(clock->now(), at(0ns));
  clock->wait(bell, 1, at(7ns));
  EXPECT_EQ(clock->now(), at(7ns));
}

/// The policy sees all that happens at 5 ns, what a released thread does then included.
TEST_F(TurnClockTest, AWaitWhoseDeadlineHasPassedLetsAllGoFirstWhoAreDue) {
  Crew crew(*clock);
  crew.start(Turn::kPolicy, [&] {
    clock->sleep_until(at(5ns));
    note("policy");
    clock->wait(bell, bell.rings, clock->now());
    note("policy again");
  });
  crew.start(Turn::kFiller, [&] {
    clock->wait(bell, 0, at(1s));
    note("woken");
  });
  crew.start(Turn::kControl, [&] {
    clock->sleep_until(at(5ns));
    note("control");
    Bell own;
    own.id = clock->bell_id();
    clock->wait(own, 0, at(5ns));
    note("control again");
  });
  crew.start(Turn::kControl, [&] {
    clock->sleep_until(at(6ns));
    clock->ring(bell);
  });
  crew.wait();
  EXPECT_THAT(log, ElementsAre("5 policy", "5 control", "5 policy again", "5 control again",
                               "6 woken"));
}

TEST_F(TurnClockTest, AThreadThatJoinsIsDueNow) {
  clock->sleep_until(at(4ns));
  Crew crew(*clock);
  crew.start(Turn::kDevice, [this] { note("new"); });
  note("starter");
  clock->sleep_until(at(5ns));
  note("starter");
  EXPECT_THAT(log, ElementsAre("4 starter", "4 new", "5 starter"));
  EXPECT_EQ(clock->parts_begun(), 2u);
}

TEST_F(TurnClockTest, WhereNobodyCanEverGoOnTheControllerIsWoken) {
  Crew crew(*clock);
  bool woken = false;
  crew.start(Turn::kTraining, [&] {
    while (!woken) clock->wait(bell, 0, HostTime::max());
    note("training");
  });
  Bell own;
  own.id = clock->bell_id();
  clock->wait(own, 0, HostTime::max());
  note("control");
  woken = true;
  clock->ring(bell);
  crew.wait();
  EXPECT_THAT(log, ElementsAre("0 control", "0 training"));
}

TEST_F(TurnClockTest, WaitingForPartsGivesUp) {
  EXPECT_TRUE(clock->await_parts(1, 1h));
  EXPECT_FALSE(clock->await_parts(2, 1ms));
}

TEST_F(TurnClockTest, WhoeverKeepsTheTurnIsTheSameHolderUntilItHasGivenItBack) {
  const TurnHolder before = clock->holder();
  EXPECT_EQ(before.pid, getpid());
  EXPECT_EQ(clock->holder(), before);
  clock->sleep_until(at(1ns));
  EXPECT_EQ(clock->holder().pid, before.pid);
  EXPECT_EQ(clock->holder().turns, before.turns + 1);
}

/// Where it waits for the lock, this test never ends.
TEST_F(TurnClockTest, TheHolderIsKnownThoughAProcessWasStoppedInsideTheTable) {
  const TurnHolder before = clock->holder();
  const std::string address = clock->address();
  const auto memory = must(SharedSegment::open(address.substr(address.find(':') + 1),
                                               sizeof(TurnTable), "clock of turns"));
  const TableLock lock(*static_cast<TurnTable*>(memory->address()));
  EXPECT_EQ(clock->holder(), before);
}

TEST_F(TurnClockTest, ASecondObjectOfTheClockCountsAsTheSameClock) {
  auto same = must(open_clock(clock->address()));
  same->sleep_until(at(3ns));
  EXPECT_EQ(clock->now(), at(3ns));
  EXPECT_NE(same->bell_id(), bell.id);
}

TEST_F(TurnClockTest, MoreThreadsThanTheTableHasRowsOneAfterTheOther) {
  for (int i = 0; i < 140; ++i) {
    Crew crew(*clock);
    crew.start(Turn::kFiller, [this] { clock->sleep_until(clock->now() + 1ns); });
    crew.wait();
  }
  EXPECT_EQ(clock->now(), at(140ns));
}

TEST(TurnClockFaults, AThreadThatHasNotJoinedIsAProgrammerFault) {
  ::testing::GTEST_FLAG(death_test_style) = "fast";
  const auto clock = *make_turn_clock();
  EXPECT_DEATH(clock->sleep_until(at(1ns)), "does not take part in its clock");
}

TEST(TurnClockFaults, AddressesThatNameNoClockAreRefused) {
  EXPECT_EQ(error_of(open_clock("sun dial")).message,
            "\"sun dial\" is no clock; expected \"wall\", \"wall:NANOSECONDS\" or \"turns:NAME\"");
  EXPECT_FALSE(open_clock("wall:"));
  EXPECT_FALSE(open_clock("wall:-1"));
  EXPECT_FALSE(open_clock("wall:50us"));
  EXPECT_FALSE(open_clock("turns:bubblesim.turns.no.such"));
}

// Turns of several processes: the same order in every run, and processes that are killed.

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

TEST(Crew, WaitsInTheClocksTimeUntilTheLastThreadHasEnded) {
  auto clock = *make_turn_clock();
  const auto part = clock->join(Turn::kControl);
  Crew crew(*clock);
  for (const Duration length : {5ms, 9ms, 2ms}) {
    crew.start(Turn::kFiller, [&clock, length] { clock->sleep_until(HostTime{length}); });
  }
  crew.wait();
  EXPECT_EQ(clock->now(), HostTime{9ms});
}

TEST(Crew, CanStartThreadsAgainAndWaitsForThemWhenItDies) {
  auto clock = *make_turn_clock();
  const auto part = clock->join(Turn::kControl);
  int done = 0;
  {
    Crew crew(*clock);
    crew.start(Turn::kFiller, [&done] { ++done; });
    crew.wait();
    EXPECT_EQ(done, 1);
    crew.wait();
    crew.start(Turn::kFiller, [&done] { ++done; });
  }
  EXPECT_EQ(done, 2);
}

TEST(Crew, WorksOnTheWallClock) {
  const auto clock = wall_clock();
  std::atomic<int> done{0};
  {
    Crew crew(*clock);
    for (int i = 0; i < 8; ++i) crew.start(Turn::kFiller, [&done] { ++done; });
  }
  EXPECT_EQ(done, 8);
}

}  // namespace
}  // namespace bubblesim::capture
