// Jobs: how they start, how they end, which signals reach them.
#include "capture/control/job_process.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "capture/control/process_info.hpp"

namespace bubblesim::capture {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

const Variables kPath{{"PATH", "/usr/bin:/bin"}};

ChildEnd run(const std::string& script) {
  auto job = JobProcess::start({"sh", "-c", script}, kPath);
  EXPECT_TRUE(job);
  for (int i = 0; i < 200; ++i) {
    if (const auto end = (*job)->wait(100ms)) return *end;
  }
  ADD_FAILURE() << "did not end: " << script;
  return {};
}

TEST(Job, TheExitCodeIsPassedOn) {
  EXPECT_EQ(run("exit 0").exit_code, 0);
  EXPECT_EQ(run("exit 7").exit_code, 7);
  EXPECT_EQ(run("exit 255").exit_code, 255);
}

TEST(Job, ASignalThatEndsItGivesItsNumberAnd128) {
  const ChildEnd end = run("kill -9 $$");
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_EQ(end.signal, 9);
}

TEST(Job, ItGetsTheEnvironmentAndNothingElse) {
  auto job = JobProcess::start({"sh", "-c", "test \"$A\" = 'x y' && test -z \"$HOME\""},
                               {{"A", "x y"}, {"PATH", "/usr/bin:/bin"}});
  ASSERT_TRUE(job);
  EXPECT_EQ((*job)->wait(10s)->exit_code, 0);
}

TEST(Job, ACommandThatIsNotThereIs127AndOneThatCannotRunIs126) {
  const auto missing = JobProcess::start({"no-such-command-here"}, kPath);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().exit_code, 127);
  EXPECT_THAT(missing.error().error.text(), HasSubstr("no-such-command-here"));
  const auto forbidden = JobProcess::start({"/etc/passwd"}, kPath);
  ASSERT_FALSE(forbidden);
  EXPECT_EQ(forbidden.error().exit_code, 126);
  const std::string script = ::testing::TempDir() + "no_interpreter_" + std::to_string(getpid());
  std::ofstream(script) << "#!/no/such/interpreter\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto broken = JobProcess::start({script}, kPath);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().exit_code, 126);
  EXPECT_THAT(broken.error().error.text(), HasSubstr("interpreter"));
  std::filesystem::remove(script);
}

TEST(Job, WaitReturnsInTimeWhileTheJobGoesOn) {
  auto job = JobProcess::start({"sleep", "60"}, kPath);
  ASSERT_TRUE(job);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE((*job)->wait(50ms));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  kill((*job)->pid(), SIGKILL);
  EXPECT_EQ((*job)->wait(10s)->signal, SIGKILL);
}

TEST(Job, ASignalSentToUsIsSentOn) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    auto job = JobProcess::start({"sleep", "60"}, kPath);
    ASSERT_TRUE(job);
    kill(getpid(), signal);
    const auto end = (*job)->wait(10s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->signal, signal);
  }
}

TEST(Job, SignalsAreAsTheyWereAfterwardsAndInTheJob) {
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  // The kernel's list of blocked signals of the job: none.
  EXPECT_EQ(run("grep -q '^SigBlk:.0*$' /proc/self/status").exit_code, 0);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
}

TEST(ProcessInfo, KnowsThisProcess) {
  const auto info = process_info(getpid());
  ASSERT_TRUE(info);
  EXPECT_EQ(info->user, geteuid());
  EXPECT_EQ(info->parent, getppid());
  EXPECT_FALSE(process_info(0));
  EXPECT_EQ(recorder_trace(getpid()), RecorderTrace::kNone);
}

TEST(ProcessInfo, ChildrenOfChildrenAreDescendants) {
  auto job = JobProcess::start({"sh", "-c", "sleep 60 & wait"}, kPath);
  ASSERT_TRUE(job);
  std::vector<pid_t> found;
  for (int i = 0; i < 100 && found.size() < 2; ++i) {
    found = descendants(getpid());
    usleep(10000);
  }
  EXPECT_GE(found.size(), 2U);
  for (const pid_t pid : found) kill(pid, SIGKILL);
  EXPECT_TRUE((*job)->wait(10s));
}

// The environment names the library, but a shell never loads it.
TEST(ProcessInfo, AProcessThatOnlyWasAskedToLoadTheRecorderIsTold) {
  Variables variables = kPath;
  variables["CUDA_INJECTION64_PATH"] = "/x/libbubblesim_capture.so";
  auto job = JobProcess::start({"sleep", "60"}, variables);
  ASSERT_TRUE(job);
  RecorderTrace trace = RecorderTrace::kUnknown;
  for (int i = 0; i < 1000 && trace == RecorderTrace::kUnknown; ++i) {
    trace = recorder_trace((*job)->pid());
    usleep(1000);
  }
  EXPECT_EQ(trace, RecorderTrace::kOnlyAsked);
  kill((*job)->pid(), SIGKILL);
  EXPECT_TRUE((*job)->wait(10s));
}

}  // namespace
}  // namespace bubblesim::capture
