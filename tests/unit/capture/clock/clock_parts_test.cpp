// The parts of clocks of several processes: marks of who lives, shared memory, wall clocks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "capture/clock/host_clock.hpp"
#include "capture/clock/process_mark.hpp"
#include "capture/clock/shared_segment.hpp"
#include "tests/fault.hpp"
#include "tests/unit/capture/clock/child_process.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;
using bubblesim::testing::ChildProcess;

TEST(SharedSegment, IsOneMemoryForAllWhoOpenIt) {
  auto made = must(SharedSegment::make("bubblesim.test", 4096));
  auto opened = must(SharedSegment::open(made->name(), 4096, "test"));
  static_cast<char*>(made->address())[17] = 'x';
  EXPECT_EQ(static_cast<char*>(opened->address())[17], 'x');
}

TEST(SharedSegment, CanBeOpenedByItsOwnerOnly) {
  auto made = *SharedSegment::make("bubblesim.test", 4096);
  struct stat found {};
  ASSERT_EQ(stat(("/dev/shm/" + made->name()).c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
}

TEST(SharedSegment, ItsNameGoesWithItsMakerAndNotWithAChildOfHis) {
  std::string name;
  {
    auto made = *SharedSegment::make("bubblesim.test", 4096);
    name = made->name();
    ChildProcess child([&] { made.reset(); });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_TRUE(SharedSegment::open(name, 4096, "test"));
  }
  const auto gone = error_of(SharedSegment::open(name, 4096, "test"));
  EXPECT_NE(gone.message.find("there is no test \"" + name + "\""), std::string::npos);
}

TEST(SharedSegment, OfADeadMakerIsSweptAndNoOther) {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "bubblesim-sweep-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto file = [&](const std::string& name, std::chrono::minutes age) {
    std::ofstream(folder + "/" + name) << "x";
    fs::last_write_time(folder + "/" + name, fs::file_time_type::clock::now() - age);
    return folder + "/" + name;
  };
  const std::string old = file("gate.7.0", std::chrono::minutes(2));
  const std::string young = file("gate.7.1", std::chrono::minutes(0));
  const std::string held = file("gate.8.0", std::chrono::minutes(2));
  const std::string other = file("rig.7.0", std::chrono::minutes(2));
  const int maker = ::open(held.c_str(), O_RDWR);
  ASSERT_EQ(::flock(maker, LOCK_EX), 0);
  SharedSegment::sweep("gate.", folder);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(fs::exists(held));
  EXPECT_TRUE(fs::exists(other));
  ::close(maker);
  SharedSegment::sweep("gate.", folder);
  EXPECT_FALSE(fs::exists(held));
  fs::remove_all(folder);
}

/// Files of this process may have 4 KiB: as where /dev/shm is full.
TEST(SharedSegment, ThatDoesNotFitIsAFaultAndLeavesNothing) {
  ChildProcess child([] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) ::_exit(3);
    const auto made = SharedSegment::make("bubblesim.huge", 1 << 20);
    ::_exit(!made && made.error().message == "cannot make shared memory of 1048576 bytes: "
                                             "File too large" ? 0 : 4);
  });
  EXPECT_EQ(child.wait(), 0);
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("bubblesim.huge"));
  }
}

TEST(SharedSegment, HasAllOfItsRoomBeforeAnybodyWrites) {
  const auto made = *SharedSegment::make("bubblesim.test", 1 << 20);
  struct stat found {};
  ASSERT_EQ(stat(("/dev/shm/" + made->name()).c_str(), &found), 0);
  EXPECT_GE(found.st_blocks * 512, 1 << 20);
}

TEST(SharedSegment, IsLockedWhileItsMakerLives) {
  const auto made = *SharedSegment::make("bubblesim.test", 4096);
  const int file = ::open(("/dev/shm/" + made->name()).c_str(), O_RDWR);
  EXPECT_NE(::flock(file, LOCK_EX | LOCK_NB), 0);
  ::close(file);
}

TEST(SharedSegment, ThatIsTooSmallIsRefused) {
  auto made = *SharedSegment::make("bubblesim.test", 4096);
  EXPECT_EQ(error_of(SharedSegment::open(made->name(), 8192, "test")).message,
            "\"" + made->name() +
                "\" is no test of this version: it has 4096 bytes, "
                "expected 8192");
}

TEST(ProcessMark, ThisProcessLives) {
  const ProcessMark mark = this_process();
  EXPECT_EQ(mark.pid, getpid());
  EXPECT_GT(mark.start, 0u);
  EXPECT_GT(mark.space, 0u);
  EXPECT_FALSE(has_ended(mark));
  EXPECT_EQ(mark, this_process());
}

TEST(ProcessMark, AZombieHasEndedAndSoHasWhatIsGone) {
  ProcessMark mark = this_process();
  ChildProcess child([] { pause(); });
  mark.pid = child.pid();
  mark.start = 0;  // not known
  EXPECT_FALSE(has_ended(mark));
  child.kill_only();
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT);
  EXPECT_TRUE(has_ended(mark));
  child.wait();
  EXPECT_TRUE(has_ended(mark));
}

TEST(ProcessMark, AnotherProcessOfTheSameNumberIsNotTheOne) {
  ProcessMark mark = this_process();
  mark.start -= 1;
  EXPECT_TRUE(has_ended(mark));
}

TEST(ProcessMark, WhatIsOfAnotherNamespaceCannotBeSeen) {
  ProcessMark mark = this_process();
  mark.start -= 1;
  mark.space += 1;
  EXPECT_FALSE(has_ended(mark));
  mark.space = 0;
  EXPECT_FALSE(has_ended(mark));
  EXPECT_FALSE(has_ended(ProcessMark{}));
}

// None of these holds the machine to a time: only orders, and "not before".
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
