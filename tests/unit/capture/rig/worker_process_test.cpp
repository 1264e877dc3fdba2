#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "capture/rig/rig.hpp"
#include "capture/rig/worker_process.hpp"
#include "tests/fault.hpp"
#include "tests/temp_folder.hpp"
#include "tests/unit/capture/substrate/mps_script.hpp"

namespace bubblesim::capture {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using std::chrono::milliseconds;

class WorkerProcessTest : public testing::Test {
 protected:
  [[nodiscard]] std::string said() const { return folder_ + "/said.txt"; }
  [[nodiscard]] Result<WorkerProcess> shell(const std::string& script) const {
    return WorkerProcess::start({"/bin/sh", "-c", script}, {{"COLOUR", "blue"}}, said());
  }
  static void await_end(WorkerProcess& worker) {
    for (int i = 0; i < 10'000 && !worker.ended(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_TRUE(worker.ended());
  }

 private:
  const TempFolder temp_;
  const std::string folder_{temp_.path()};
};

TEST_F(WorkerProcessTest, HasTheEnvironmentThatItIsGivenAndNoOther) {
  auto worker = must(shell("echo \"$COLOUR ${HOME:-homeless}\" >&2; exit 3"));
  await_end(worker);
  EXPECT_EQ(worker.end_text(), "exited with 3: blue homeless");
}

TEST_F(WorkerProcessTest, ASignalIsNamed) {
  auto worker = must(shell("kill -9 $$"));
  await_end(worker);
  EXPECT_EQ(worker.end_text(), "killed by signal 9");
}

TEST_F(WorkerProcessTest, OfManyWordsTheLastAreKept) {
  auto worker = must(shell("for i in $(seq 1000); do echo word$i; done; exit 1"));
  await_end(worker);
  EXPECT_THAT(worker.end_text(), HasSubstr("exited with 1: ..."));
  EXPECT_THAT(worker.end_text(), HasSubstr("word1000"));
  EXPECT_LT(worker.end_text().size(), 600u);
}

TEST_F(WorkerProcessTest, DiesWithTheObject) {
  pid_t pid = 0;
  {
    auto worker = must(shell("exec sleep 1000"));
    EXPECT_FALSE(worker.ended());
    EXPECT_EQ(worker.end_text(), "still runs");
    pid = worker.pid();
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST_F(WorkerProcessTest, SignalsOfTheTerminalDoNotReachIt) {
  auto worker = must(shell("exec sleep 1000"));
  EXPECT_EQ(::getpgid(worker.pid()), worker.pid());
}

TEST_F(WorkerProcessTest, AProgramThatIsNotThereIsAFault) {
  const auto worker = error_of(WorkerProcess::start({"/nowhere/program"}, {}, said()));
  EXPECT_EQ(worker.text(), "/nowhere/program: found no such command");
}

// Runs with a daemon of MPS, which is a script here.

/// Goes when it is first spoken to, with its program: nobody can tell it to quit.
constexpr const char* kLeaves = "rm \"$0\"\nkill \"$(cat \"$pid\")\"";

class MpsRun : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/bubblesim-rig-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    place_.folder = pattern;
    place_.environment = {{"PATH", pattern + ":/usr/bin:/bin"}};
    place_.progress = [this](const std::string& text) { said_ += text + "\n"; };
    setup_.substrate = Substrate::kMps;
    daemon(kQuitsWhenTold);
  }
  void TearDown() override { std::filesystem::remove_all(place_.folder); }

  void daemon(const char* when_told) const {
    write_mps_program(place_.folder, mps_script(when_told));
  }

  RigPlace place_;
  RigSetup setup_;
  std::string said_;
};

TEST_F(MpsRun, AClientThatCannotRunSaysWhatItWasGiven) {
  place_.worker = "/bin/false";
  setup_.jobs.resize(14);
  setup_.shares.resize(14);
  for (std::uint32_t i = 0; i < 14; ++i) {
    setup_.jobs[i].client = ClientId{i};
    setup_.shares[i].sm_percentage = 58;
  }
  EXPECT_THAT(error_of(run_rig(place_, setup_)).text(),
              HasSubstr("exited with 1; clients of MPS: 14, this one with 58 % and "
                        "CUDA_DEVICE_MAX_CONNECTIONS=4"));
}

TEST_F(MpsRun, ADaemonThatDoesNotQuitCostsNoResult) {
  daemon(kLeaves);
  const auto result = must(run_rig(place_, setup_));
  EXPECT_EQ(result.counters.count("rig_mps_did_not_quit"), 1U);
  EXPECT_FALSE(result.counters.has_error());
  EXPECT_NE(said_, "");
}

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
