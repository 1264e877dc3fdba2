// bubblesim capture with jobs that need no GPU, and with a recorder that the test plays. What a
// real recorder does: tests/unit/capture/process.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "tests/conformance/app/command.hpp"
#include "tests/unit/capture/control/fake_recorder.hpp"

namespace bubblesim::app_test {
namespace {

using capture::RecorderState;
using capture::testing::FakeRecorder;
using testing::AllOf, testing::HasSubstr, testing::Matcher;

// A file that may pass for the recorder, for jobs that never load it.
class Capture : public testing::Test {
 protected:
  void SetUp() override { place_.write("recorder.so", "\x7f" "ELF"); }
  [[nodiscard]] Outcome launch(const std::string& rest) const {
    return place_.bubblesim("capture --library recorder.so " + rest);
  }
  void expect_fault(const std::string& arguments, const Matcher<const std::string&>& says) const {
    app_test::expect_fault(place_, "capture " + arguments, says);
  }
  [[nodiscard]] static std::string own_pid() { return std::to_string(getpid()); }

  Workplace place_;
};

TEST_F(Capture, PassesTheJobsExitCodeOn) {
  EXPECT_EQ(launch("-o run -- sh -c 'exit 3'").code, 3);
  EXPECT_EQ(launch("-o run -- sh -c 'kill -9 $$'").code, 137);
  EXPECT_EQ(launch("--idle -- sh -c 'exit 4'").code, 4);
  EXPECT_EQ(launch("--idle -- true").code, 0);
  EXPECT_EQ(launch("-o run -- no-such-command").code, 127);
  EXPECT_EQ(launch("-o run -- /etc/passwd").code, 126);
}

TEST_F(Capture, LeavesTheJobsWordsAndInputsAlone) {
  const Outcome outcome = launch("--idle -- sh -c 'cat; echo \"$@\"; echo e >&2' x --lr 3 -- -o");
  EXPECT_EQ(outcome.out, "--lr 3 -- -o\n");
  EXPECT_EQ(outcome.err, "e\n");
}

TEST_F(Capture, AJobThatUsesNoGpuLeavesNoFileAndASentence) {
  const Outcome outcome = launch("-o run -- true");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("nothing was recorded: "));
  EXPECT_TRUE(std::filesystem::is_empty(place_.path("run")));
}

TEST_F(Capture, AJobShorterThanTheDelayIsTold) {
  EXPECT_THAT(launch("-o run --delay 50s -- true").err,
              HasSubstr("before the recording was to begin"));
}

TEST_F(Capture, JsonIsTheLastLineOfStandardOutput) {
  const Outcome outcome = launch("-o run --json -- sh -c 'echo working; exit 5'");
  const auto lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "working");
  const Json json = parse_json(lines[1]);
  EXPECT_EQ(json.at("exit_code"), 5);
  EXPECT_TRUE(json.at("recordings").empty());
  EXPECT_THAT(json.at("message").get<std::string>(), HasSubstr("nothing was recorded"));
}

TEST_F(Capture, TheJobIsToldWhatToRecord) {
  const Outcome outcome = launch(
      "-o run --duration 10s --max-size 1GB --iterations 7 --graphs graph --no-memory -- "
      "sh -c 'env | grep ^BUBBLESIM_CAPTURE_ | sort'");
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("_DURATION=10s\n"), HasSubstr("_GRAPHS=graph\n"),
                                 HasSubstr("_ITERATIONS=7\n"), HasSubstr("_MAX_BYTES=1GB\n"),
                                 HasSubstr("_MEMORY=0\n"), HasSubstr("_START=now\n")));
}

TEST_F(Capture, FaultsOfTheCommandLineStartNothing) {
  place_.write("text.so", "hello");
  const std::string good = "--library recorder.so ";
  expect_fault("", HasSubstr("expected a command after --"));
  expect_fault("-o run", HasSubstr("expected a command after --"));
  expect_fault("-- true", HasSubstr("expected -o DIR"));
  expect_fault("-o run --library text.so -- touch no", HasSubstr("no shared object"));
  expect_fault("-o run --library nowhere.so -- touch no", HasSubstr("no such file"));
  expect_fault(good + "-o run --duration 10 -- touch no", HasSubstr("--duration"));
  expect_fault(good + "-o run --duration 0s -- touch no", HasSubstr("more than 0s"));
  expect_fault(good + "-o run --max-size 1kB -- touch no", HasSubstr("1MiB or more"));
  expect_fault(good + "-o run --iterations 0 -- touch no", HasSubstr("--iterations"));
  expect_fault(good + "-o run --start-at 5 -- touch no", HasSubstr("to come"));
  expect_fault(good + "-o run --graphs edge -- touch no", HasSubstr("--graphs"));
  expect_fault(good + "-o run --durations 3s -- touch no", HasSubstr("--durations"));
  expect_fault(good + "-o run --iterations 2 --every 9 --on-signal URG -- touch no",
               HasSubstr("--every"));
  expect_fault(good + "--idle -o run -- touch no", HasSubstr("excludes"));
  expect_fault(good + "-o recorder.so/run -- touch no", HasSubstr("recorder.so/run"));
  EXPECT_FALSE(std::filesystem::exists(place_.path("no")));
}

TEST_F(Capture, AnotherToolInTheJobIsNamedAndNothingStarts) {
  const Outcome outcome = place_.shell(
      "CUDA_INJECTION64_PATH=/opt/x.so bubblesim capture --library recorder.so -o run -- "
      "touch no");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("\"/opt/x.so\", the library of another tool"));
  EXPECT_FALSE(std::filesystem::exists(place_.path("no")));
  EXPECT_TRUE(std::filesystem::is_empty(place_.path("run")));
}

TEST_F(Capture, ProcessesThatCannotBeAskedAreNamed) {
  expect_fault("attach 1073741824 -o run", HasSubstr("process 1073741824: does not exist"));
  expect_fault("stop " + own_pid(), HasSubstr("has no recorder"));
  expect_fault("status 0", HasSubstr("PID"));
  expect_fault("attach " + own_pid(), HasSubstr("--output"));
  expect_fault("mark " + own_pid(), HasSubstr("NAME"));
}

TEST_F(Capture, ASilentRecorderIsNamedAfterTheTimeout) {
  const FakeRecorder recorder([](const std::string&) { return std::string(); });
  expect_fault("status --timeout 0.2 " + own_pid(), HasSubstr("no answer in 200ms"));
}

TEST_F(Capture, ARecordingIsStartedSeenMarkedAndStopped) {
  const FakeRecorder recorder(capture::testing::obedient());
  const Outcome started =
      place_.bubblesim("capture attach " + own_pid() + " -o run --duration 10s");
  EXPECT_EQ(started.code, 0) << started.err;
  EXPECT_THAT(started.out, AllOf(HasSubstr("recording"), HasSubstr("/run/rank0.recording.btr")));
  expect_fault("attach " + own_pid() + " -o run", HasSubstr("is recording already"));
  const Outcome seen = place_.bubblesim("capture status --json " + own_pid());
  EXPECT_EQ(parse_json(seen.out).at(0).at("state"), "recording");
  EXPECT_THAT(place_.bubblesim("capture status").out, HasSubstr(own_pid()));
  EXPECT_EQ(place_.bubblesim("capture mark " + own_pid() + " half").code, 0);
  EXPECT_THAT(succeed(place_, "capture stop " + own_pid()).out, HasSubstr("idle"));
  const Outcome late = place_.bubblesim("capture mark " + own_pid() + " late");
  EXPECT_EQ(late.code, 1);
  EXPECT_THAT(late.err, HasSubstr("does not record"));
  EXPECT_THAT(recorder.heard(),
              testing::Contains(AllOf(HasSubstr("_DURATION\":\"10s\""),
                                      HasSubstr(place_.path("run")))));
}

// Another user's process names the file: root would read, and rewrite, whatever it names.
TEST_F(Capture, RootJoinsNothingForAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  place_.write("mine.btr", "not a trace");
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t other = fork();
  if (other == 0) {
    if (setresuid(65534, 65534, 65534) != 0) _exit(1);
    auto status = capture::testing::own_status(RecorderState::kIdle);
    status.output = place_.path("mine.btr");
    const FakeRecorder recorder([status](const std::string& message) mutable {
      const bool starts = message.find("\"start\"") != std::string::npos;
      status.state = starts ? RecorderState::kRecording : RecorderState::kIdle;
      return encode(status);
    });
    if (write(ready[1], "r", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char letter = 0;
  ASSERT_EQ(read(ready[0], &letter, 1), 1);
  const Outcome outcome =
      place_.bubblesim("capture attach " + std::to_string(other) + " -o run --wait");
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("is of user nobody (65534)"),
                                 HasSubstr("mine.btr is left as its recorder wrote it")));
}

TEST_F(Capture, AFailedStartGivesTheRecordersReason) {
  capture::RecorderStatus status = capture::testing::own_status(RecorderState::kFailed);
  status.message = "nsys holds CUPTI";
  const FakeRecorder recorder(capture::testing::always(status));
  expect_fault("attach " + own_pid() + " -o run", HasSubstr("nsys holds CUPTI"));
}

TEST_F(Capture, RecordersInContainersAreReachedByAFolderOfSockets) {
  ASSERT_TRUE(std::filesystem::create_directory(place_.path("sockets")));
  const FakeRecorder recorder(capture::testing::obedient(), place_.path("sockets"));
  expect_fault("status " + own_pid(), HasSubstr("has no recorder"));
  const Outcome seen = succeed(place_, "capture status --json --sockets sockets " + own_pid());
  EXPECT_EQ(parse_json(seen.out).at(0).at("state"), "idle");
  expect_fault("status --sockets nowhere " + own_pid(), HasSubstr("nowhere"));
}

}  // namespace
}  // namespace bubblesim::app_test
