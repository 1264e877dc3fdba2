// A private MPS daemon: a shell script in its place, on PATH.
#include "capture/substrate/mps_daemon.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/fault.hpp"
#include "tests/unit/capture/substrate/mps_script.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const std::string kGood =
    mps_script(kQuitsWhenTold, R"(echo started > "$CUDA_MPS_LOG_DIRECTORY/control.log")");
/// As kGood, deaf to `quit`.
const std::string kDeaf = mps_script(":");

class Mps : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/bubblesim-mps-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    settings_.folder = pattern;
    settings_.environment = {{"PATH", pattern + ":/usr/bin:/bin"}};
  }
  void TearDown() override { std::filesystem::remove_all(settings_.folder); }

  void program(const std::string& text) { write_mps_program(settings_.folder, text); }
  static pid_t pid_in(const std::string& folder) {
    pid_t pid = 0;
    std::ifstream(folder + "/nvidia-cuda-mps-control.pid") >> pid;
    return pid;
  }
  /// Gone, or ended and not yet reaped by whoever adopted it.
  static bool ended(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text(4096, '\0');
    stat.read(text.data(), 4096);  // not by an iterator, which throws if it ends meanwhile
    text.resize(static_cast<std::size_t>(stat.gcount()));
    return text.empty() || text.find(") Z") != std::string::npos;
  }

  MpsSettings settings_;
};

TEST_F(Mps, StartsInFoldersOfItsOwnAndLeavesNothing) {
  program(kGood);
  auto daemon = MpsDaemon::start(settings_);
  ASSERT_TRUE(daemon) << daemon.error().text();
  EXPECT_EQ((*daemon)->pipe_directory(), settings_.folder + "/mps-pipe");
  EXPECT_EQ((*daemon)->log(), "started\n");
  EXPECT_TRUE((*daemon)->notes().empty());
  const pid_t pid = pid_in((*daemon)->pipe_directory());
  EXPECT_FALSE(ended(pid));
  EXPECT_TRUE((*daemon)->quit());
  EXPECT_TRUE(ended(pid));
  EXPECT_FALSE(std::filesystem::exists(settings_.folder + "/mps-pipe"));
  EXPECT_FALSE(std::filesystem::exists(settings_.folder + "/mps-log"));
  EXPECT_TRUE((*daemon)->quit());
}

TEST_F(Mps, ADaemonThatDoesNotQuitIsKilledAndThatIsAFault) {
  program(kDeaf);
  settings_.patience = 2s;
  auto daemon = MpsDaemon::start(settings_);
  ASSERT_TRUE(daemon) << daemon.error().text();
  const pid_t pid = pid_in((*daemon)->pipe_directory());
  const auto quit = (*daemon)->quit();
  ASSERT_FALSE(quit);
  EXPECT_THAT(quit.error().text(), HasSubstr("did not quit and was killed"));
  for (int i = 0; i < 1000 && !ended(pid); ++i) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(ended(pid));
}

TEST_F(Mps, WithoutTheProgramItIsAFault) {
  settings_.environment = {{"PATH", settings_.folder}};
  EXPECT_THAT(error_of(MpsDaemon::start(settings_)).text(),
              HasSubstr("no nvidia-cuda-mps-control in PATH"));
}

TEST_F(Mps, ADaemonThatCannotStartIsAFaultWithWhatItSaid) {
  program("#!/bin/sh\necho no device\nexit 3\n");
  EXPECT_THAT(error_of(MpsDaemon::start(settings_)).text(),
              HasSubstr("did not start (exit 3): no device"));
  EXPECT_FALSE(std::filesystem::exists(settings_.folder + "/mps-pipe"));
}

TEST_F(Mps, ADaemonThatDoesNotAnswerIsEndedAndAFault) {
  program("#!/bin/sh\n[ \"$1\" = -d ] && exit 0\necho cannot connect\nexit 1\n");
  EXPECT_THAT(error_of(MpsDaemon::start(settings_)).text(),
              HasSubstr("started, and does not answer (exit 1)"));
}

TEST_F(Mps, ADaemonThatWasThereBeforeIsNamedAndLeftAlone) {
  program(kGood);
  const std::string other = settings_.folder + "/other";
  std::filesystem::create_directory(other);
  std::ofstream(other + "/nvidia-cuda-mps-control.pid") << ::getpid();
  settings_.environment["CUDA_MPS_PIPE_DIRECTORY"] = other;
  auto daemon = MpsDaemon::start(settings_);
  ASSERT_TRUE(daemon) << daemon.error().text();
  ASSERT_EQ((*daemon)->notes().size(), 1U);
  EXPECT_THAT((*daemon)->notes()[0], HasSubstr(std::to_string(::getpid()) + ") was there before"));
  EXPECT_TRUE((*daemon)->quit());
  EXPECT_TRUE(std::filesystem::exists(other + "/nvidia-cuda-mps-control.pid"));
}

TEST_F(Mps, AFolderTooLongForSocketsIsAFault) {
  program(kGood);
  settings_.folder += "/" + std::string(100, 'x');
  EXPECT_THAT(MpsDaemon::start(settings_).error().text(), HasSubstr("too long"));
}

}  // namespace
}  // namespace bubblesim::capture
