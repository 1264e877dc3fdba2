// Talking to recorders that are good, slow, silent, gone, or no recorders at all.
#include "capture/control/recorder_client.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/fault.hpp"
#include "tests/unit/capture/control/fake_recorder.hpp"

namespace bubblesim::capture {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;
using testing::FakeRecorder;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

const ClientOptions kShort{Duration{200ms}, {}};

// A process that does nothing until it is ended.
class Sleeper {
 public:
  explicit Sleeper(uid_t user = geteuid()) {
    pid_ = fork();
    if (pid_ == 0) {
      if (user != geteuid() && setresuid(user, user, user) != 0) _exit(1);
      for (;;) pause();
    }
  }
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

Result<RecorderStatus> ask_own(const ControlCommand& command,
                               const ClientOptions& options = kShort) {
  const auto client = RecorderClient::find(getpid(), options);
  return client ? client->ask(command) : tl::make_unexpected(client.error());
}

std::string fault_of(const Result<RecorderStatus>& answer) {
  return answer ? "no fault" : answer.error().text();
}

TEST(Client, ACommandIsAnsweredByTheStatus) {
  FakeRecorder recorder(testing::always(testing::own_status(RecorderState::kRecording)));
  const auto answer = must(ask_own(status_command()));
  EXPECT_EQ(answer, testing::own_status(RecorderState::kRecording));
  EXPECT_EQ(recorder.heard(), std::vector<std::string>{R"({"command":"status"})"});
}

TEST(Client, AnAnswerThatComesLateButInTimeIsTaken) {
  FakeRecorder recorder([](const std::string&) {
    std::this_thread::sleep_for(100ms);
    return encode(testing::own_status(RecorderState::kIdle));
  });
  EXPECT_TRUE(ask_own(status_command(), {Duration{5s}, {}}));
}

TEST(Client, ASilentRecorderCostsTheTimeoutAndNoMore) {
  FakeRecorder recorder([](const std::string&) { return std::string(); });
  const auto began = Clock::now();
  EXPECT_THAT(fault_of(ask_own(status_command())),
              AllOf(HasSubstr("process " + std::to_string(getpid())),
                    HasSubstr("no answer in 200ms")));
  EXPECT_GE(Clock::now() - began, 200ms);
  EXPECT_LT(Clock::now() - began, 5s);
}

TEST(Client, GarbageIsShownAndNotBelieved) {
  for (const std::string garbage : {"hello", "{}", "\x01\xff", "{\"state\":\"idle\"}"}) {
    FakeRecorder recorder([&](const std::string&) { return garbage; });
    EXPECT_THAT(fault_of(ask_own(status_command())), HasSubstr("cannot be read")) << garbage;
  }
}

TEST(Client, AClosedConnectionIsNamed) {
  FakeRecorder recorder([](const std::string&) { return std::string("(close)"); });
  EXPECT_THAT(fault_of(ask_own(status_command())), HasSubstr("closed the connection"));
}

TEST(Client, ARefusalIsAFault) {
  RecorderStatus nobody;
  nobody.message = "refused: too many connections";
  FakeRecorder recorder(testing::always(nobody));
  EXPECT_THAT(fault_of(ask_own(status_command())), HasSubstr("refused: too many connections"));
}

TEST(Client, APathSocketIsFoundInItsFolder) {
  const std::string folder = ::testing::TempDir();
  FakeRecorder recorder(testing::always(testing::own_status(RecorderState::kIdle)), folder);
  EXPECT_TRUE(ask_own(status_command(), {Duration{2s}, folder}));
  EXPECT_THAT(fault_of(ask_own(status_command())), HasSubstr("no recorder"));
}

// The id is this process's, which has an abstract socket too: the folder that was asked for counts.
TEST(Client, TheFolderAskedForComesBeforeTheAbstractName) {
  const std::string folder = ::testing::TempDir();
  FakeRecorder by_name(testing::always(testing::own_status(RecorderState::kIdle)));
  FakeRecorder by_path(testing::always(testing::own_status(RecorderState::kFailed)), folder);
  const auto answer = must(ask_own(status_command(), {Duration{2s}, folder}));
  EXPECT_EQ(answer.state, RecorderState::kFailed);
}

TEST(Client, AProcessThatDoesNotExistIsNamed) {
  pid_t gone = 0;
  {
    const Sleeper sleeper;
    gone = sleeper.pid();
  }
  EXPECT_THAT(error_of(RecorderClient::find(gone)).text(),
              AllOf(HasSubstr("process " + std::to_string(gone)), HasSubstr("does not exist")));
  EXPECT_FALSE(RecorderClient::find(0));
  EXPECT_FALSE(RecorderClient::find(-1));
}

TEST(Client, AProcessWithoutARecorderSaysHowToHaveOne) {
  const Sleeper sleeper;
  EXPECT_THAT(
      error_of(RecorderClient::find(sleeper.pid())).text(),
      AllOf(HasSubstr("has no recorder"), HasSubstr("bubblesim capture --idle -- COMMAND")));
}

TEST(Client, ALauncherPointsToItsChildren) {
  FakeRecorder recorder(testing::always(testing::own_status(RecorderState::kIdle)));
  const auto client = error_of(RecorderClient::find(getppid()));
  // Other tests may run beside this one: their recorders are named, too.
  EXPECT_THAT(client.text(), AllOf(HasSubstr("children these have one: "),
                                           HasSubstr(std::to_string(getpid()))));
}

// Root may ask anybody: the test becomes another user to be refused.
TEST(Client, AnotherUsersProcessIsNotAsked) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  const Sleeper sleeper;
  ASSERT_EQ(seteuid(65534), 0);
  const auto client = RecorderClient::find(sleeper.pid());
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().text(),
              AllOf(HasSubstr("belongs to user root (0)"), HasSubstr("only that user and root")));
}

TEST(Client, ANameThatAnotherProcessTookIsNotBelieved) {
  const Sleeper sleeper;
  const ControlAddress address = abstract_address(geteuid(), sleeper.pid());
  const int impostor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(impostor, reinterpret_cast<const sockaddr*>(&address.address), address.length), 0);
  ASSERT_EQ(listen(impostor, 1), 0);
  const auto client = RecorderClient::find(sleeper.pid(), kShort);
  close(impostor);
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().text(), HasSubstr("is held by process " + std::to_string(getpid())));
}

TEST(Client, APathThatAnotherProcessTookIsNotBelieved) {
  const Sleeper sleeper;
  const std::string folder = ::testing::TempDir();
  FakeRecorder impostor(testing::always(testing::own_status(RecorderState::kIdle)), folder,
                        sleeper.pid());
  EXPECT_THAT(error_of(RecorderClient::find(sleeper.pid(), {Duration{2s}, folder})).text(),
              HasSubstr("is held by process " + std::to_string(getpid())));
}

TEST(Client, TheUserIsTheProcessesOwn) {
  FakeRecorder recorder(testing::always(testing::own_status(RecorderState::kIdle)));
  const auto client = must(RecorderClient::find(getpid(), kShort));
  EXPECT_EQ(client.user(), geteuid());
}

TEST(Client, ARecorderThatTakesNoConnectionCostsTheTimeout) {
  const ControlAddress address = abstract_address(geteuid(), getpid());
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const auto* place = reinterpret_cast<const sockaddr*>(&address.address);
  ASSERT_EQ(bind(listener, place, address.length), 0);
  ASSERT_EQ(listen(listener, 0), 0);
  std::vector<int> waiting;  // until its queue is full
  for (int i = 0; i < 4; ++i) {
    waiting.push_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(waiting.back(), place, address.length) != 0) break;
  }
  EXPECT_THAT(fault_of(ask_own(status_command())), HasSubstr("no answer in 200ms"));
  for (const int descriptor : waiting) close(descriptor);
  close(listener);
}

TEST(Client, ASurveyAsksEachRecorderOnce) {
  const std::string folder = ::testing::TempDir();
  const auto answer = testing::always(testing::own_status(RecorderState::kIdle));
  FakeRecorder by_name(answer);
  FakeRecorder by_path(answer, folder);
  const RecorderSurvey survey = survey_recorders({Duration{2s}, folder});
  EXPECT_EQ(std::count(survey.recorders.begin(), survey.recorders.end(),
                       testing::own_status(RecorderState::kIdle)),
            1);
}

}  // namespace
}  // namespace bubblesim::capture
