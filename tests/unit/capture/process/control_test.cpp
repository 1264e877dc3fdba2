// The control socket: what it does, whom it hears, and that no peer can hold it up.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ctime>

#include "capture/protocol/capture_request.hpp"
#include "tests/fault.hpp"
#include "tests/unit/capture/process/job_process.hpp"

namespace bubblesim::capture {
namespace {

using Control = JobTest;

using ::testing::HasSubstr;
using Names = std::vector<std::string>;

std::string ask(int socket, const std::string& message) {
  EXPECT_EQ(::send(socket, message.data(), message.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(message.size()));
  std::string answer(kMaxMessageBytes, '\0');
  const ssize_t got = ::recv(socket, answer.data(), answer.size(), 0);
  answer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return answer;
}

ControlCommand start_of(const std::string& output) {
  ControlCommand start;
  start.kind = ControlCommand::Kind::kStart;
  start.start.output = output;
  return start;
}

TEST_F(Control, AnIdleProcessSaysWhoItIsAndWritesNothing) {
  JobProcess job({"init", "launch:100", "hear"}, {{"RANK", "2"}, {"WORLD_SIZE", "4"}});
  const auto status = must(job.status());
  EXPECT_EQ(status.state, RecorderState::kIdle);
  EXPECT_EQ(status.pid, job.pid());
  EXPECT_EQ(status.rank, 2U);
  EXPECT_EQ(status.world_size, 4U);
  EXPECT_EQ(status.executable, "fake_job");
  EXPECT_EQ(status.cupti, "");  // not even looked for
  job.tell();
  EXPECT_EQ(job.wait().error, "");
}

TEST_F(Control, StartsMarksAndStops) {
  JobProcess job({"init", "say:here", "hear", "launch:500", "say:done", "hear"}, {});
  ASSERT_TRUE(job.says("here"));
  const auto started = must(job.start(folder.path()));
  EXPECT_NE(started.state, RecorderState::kIdle);
  EXPECT_THAT(job.await(RecorderState::kRecording).cupti, HasSubstr("libcupti.so.13"));
  job.tell();
  ASSERT_TRUE(job.says("done"));
  ControlCommand mark;
  mark.kind = ControlCommand::Kind::kMark;
  mark.mark = "warm now";
  EXPECT_EQ(job.command(mark)->message, "");
  ASSERT_TRUE(job.stop());
  const RecorderStatus last = job.await(RecorderState::kIdle);
  EXPECT_EQ(last.output, folder.file("rank0.btr"));
  EXPECT_EQ(last.records, 1001U);  // 500 kernels, 500 calls, 1 mark
  EXPECT_EQ(last.lost, 0U);
  EXPECT_EQ(last.bytes, std::filesystem::file_size(last.output));
  job.tell();
  EXPECT_EQ(job.wait().code, 0);
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  ASSERT_EQ(recorded.trace.markers.size(), 1U);
  EXPECT_EQ(recorded.trace.names[recorded.trace.markers[0].name], "warm now");
}

TEST_F(Control, ASecondStartIsRefusedAndAThirdAfterTheStopIsNot) {
  JobProcess job({"init", "say:here", "rate:30000:1000"}, {});
  ASSERT_TRUE(job.says("here"));
  ASSERT_TRUE(job.start(folder.path()));
  (void)job.await(RecorderState::kRecording);
  EXPECT_THAT(job.start(folder.path())->message, HasSubstr("is under way"));
  ::usleep(50'000);  // time for a launch or two
  ASSERT_TRUE(job.stop());
  (void)job.await(RecorderState::kIdle);
  ASSERT_TRUE(job.start(folder.path()));
  (void)job.await(RecorderState::kRecording);
  ::usleep(50'000);
  ASSERT_TRUE(job.stop());
  (void)job.await(RecorderState::kIdle);
  EXPECT_EQ(folder.files(), (Names{"rank0.btr", "rank0.pid" + std::to_string(job.pid()) + ".btr"}));
}

TEST_F(Control, StopsAndStartsManyTimesWhileTheJobLaunches) {
  JobProcess job({"init", "say:here", "rate:100000:200", "hear"}, {});
  ASSERT_TRUE(job.says("here"));
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(job.start(folder.file("run" + std::to_string(i) + ".btr")));
    (void)job.await(RecorderState::kRecording);
    ASSERT_TRUE(job.stop());
    (void)job.await(RecorderState::kIdle);
  }
  EXPECT_LE(folder.files().size(), 8U);
}

TEST_F(Control, AMarkOfNothingIsRefused) {
  JobProcess job({"init", "hear"}, {});
  ControlCommand mark;
  mark.kind = ControlCommand::Kind::kMark;
  mark.mark = "nobody listens";
  EXPECT_THAT(job.command(mark)->message, HasSubstr("nothing is being recorded"));
}

TEST_F(Control, StopsByItselfAfterTheDuration) {
  JobProcess job({"init", "say:here", "rate:60000:500", "hear"}, {});
  ASSERT_TRUE(job.says("here"));
  ControlCommand start = start_of(folder.path());
  start.start.duration = std::chrono::milliseconds(300);
  EXPECT_NE(job.command(start)->state, RecorderState::kIdle);
  const RecorderStatus last = job.await(RecorderState::kIdle);
  EXPECT_GE(last.recorded, std::chrono::milliseconds(300));
  EXPECT_LT(last.recorded, std::chrono::seconds(3));
}

TEST_F(Control, StopsByItselfWhenTheFileIsLongEnough) {
  JobProcess job({"init", "say:here", "hear", "threads:4:80000", "hear"}, {});
  ASSERT_TRUE(job.says("here"));
  ControlCommand start = start_of(folder.path());
  start.start.max_bytes = 1U << 20U;
  ASSERT_TRUE(job.command(start));
  (void)job.await(RecorderState::kRecording);
  job.tell();
  const RecorderStatus last = job.await(RecorderState::kIdle);
  EXPECT_GE(last.bytes, 1U << 20U);
  EXPECT_LT(last.bytes, 8U << 20U);
}

// CUPTI takes 1.2 s to be set up, which is over by then; what the job does before is not in it.
TEST_F(Control, StartsAtTheAppointedSecond) {
  JobProcess job({"init", "say:here", "rate:60000:500"}, {{"FAKE_CUPTI", "subscribe_ms=1200"}});
  ASSERT_TRUE(job.says("here"));
  ControlCommand start = start_of(folder.path());
  start.start.start_at_unix_s = std::time(nullptr) + 4;
  ASSERT_TRUE(job.command(start));
  (void)job.await(RecorderState::kRecording);
  ::usleep(50'000);
  ASSERT_TRUE(job.stop());
  (void)job.await(RecorderState::kIdle);
  const Recorded recorded = read_recording(folder.file("rank0.btr"));
  ASSERT_FALSE(recorded.trace.clocks.empty());
  const std::int64_t late =
      recorded.trace.clocks.front().realtime_ns - *start.start.start_at_unix_s * 1'000'000'000;
  EXPECT_GE(late, 0);
  EXPECT_LT(late, 1'000'000'000);
  ASSERT_FALSE(recorded.trace.host_calls.empty());
  for (const traces::HostCall& call : recorded.trace.host_calls) {
    EXPECT_GE(to_ns(call.start.time_since_epoch()), *start.start.start_at_unix_s * 1'000'000'000);
  }
}

TEST_F(Control, AStopTakesBackAStartThatIsStillToCome) {
  JobProcess job({"init", "hear"}, {});
  ControlCommand start = start_of(folder.path());
  start.start.delay = std::chrono::hours(1);
  EXPECT_EQ(job.command(start)->state, RecorderState::kScheduled);
  ASSERT_TRUE(job.stop());
  EXPECT_THAT(job.await(RecorderState::kIdle).message, HasSubstr("before its time"));
  EXPECT_EQ(folder.files(), Names{});
}

TEST_F(Control, AStatusIsAnsweredWhileCuptiTakesItsTime) {
  JobProcess job({"init", "say:here", "hear"}, {{"FAKE_CUPTI", "subscribe_ms=1500"}});
  ASSERT_TRUE(job.says("here"));
  ASSERT_TRUE(job.start(folder.path()));
  EXPECT_EQ(job.await(RecorderState::kStarting).state, RecorderState::kStarting);
  ASSERT_TRUE(job.stop());
  (void)job.await(RecorderState::kIdle);
}

TEST_F(Control, StopsWhileAFlushIsUnderWay) {
  JobProcess job({"init", "say:here", "rate:60000:500"}, {{"FAKE_CUPTI", "flush_ms=400"}});
  ASSERT_TRUE(job.says("here"));
  ASSERT_TRUE(job.start(folder.path()));
  (void)job.await(RecorderState::kRecording);
  ::usleep(600'000);  // into the first flush, at half a second
  ASSERT_TRUE(job.stop());
  EXPECT_GT(job.await(RecorderState::kIdle).records, 0U);
}

TEST_F(Control, NonsenseIsAnswered) {
  JobProcess job({"init", "hear"}, {});
  const int socket = connect_to(job.pid());
  for (const std::string message : {"", "{", "[]", "{\"command\":\"dance\"}", "\xff\xfe"}) {
    if (message.empty()) continue;  // an empty datagram cannot be told from the end
    const auto status = must(decode_status(ask(socket, message)));
    EXPECT_NE(status.message, "");
    EXPECT_EQ(status.state, RecorderState::kIdle);
  }
  const auto status = must(decode_status(ask(socket, std::string(kMaxMessageBytes + 1, 'x'))));
  EXPECT_THAT(status.message, HasSubstr("65537 bytes"));
  ::close(socket);
}

TEST_F(Control, APeerThatNeverReadsIsCutOffAndOthersAreHeard) {
  JobProcess job({"init", "hear"}, {});
  const int rude = connect_to(job.pid());
  const std::string status = encode(ControlCommand{});
  for (int i = 0; i < 20000; ++i) {
    if (::send(rude, status.data(), status.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
        errno == EPIPE) {
      break;
    }
  }
  EXPECT_TRUE(job.status());
  ::close(rude);
}

TEST_F(Control, OfMorePeersThanThereIsRoomForTheLongestSilentIsCutOff) {
  JobProcess job({"init", "hear"}, {});
  std::vector<int> peers;
  const std::string status = encode(ControlCommand{});
  for (int i = 0; i < 17; ++i) {
    peers.push_back(connect_to(job.pid()));
    EXPECT_TRUE(decode_status(ask(peers.back(), status)));
  }
  char byte = 0;
  EXPECT_EQ(::recv(peers[0], &byte, 1, 0), 0);  // room for 16: the first was closed
  EXPECT_TRUE(decode_status(ask(peers[1], status)));
  for (const int peer : peers) ::close(peer);
  EXPECT_TRUE(job.status());
}

TEST_F(Control, AnotherUserIsRefusedInASentence) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  JobProcess job({"init", "hear"}, {});
  ASSERT_TRUE(job.status());
  const ControlAddress where = abstract_address(0, job.pid());
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::seteuid(65534), 0);
  const int connected =
      ::connect(socket, reinterpret_cast<const sockaddr*>(&where.address), where.length);
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_EQ(connected, 0);
  const auto answer = must(decode_status(ask(socket, encode(ControlCommand{}))));
  EXPECT_THAT(answer.message, HasSubstr("only the user of this process and root"));
  EXPECT_EQ(answer.pid, 0);  // and nothing else is said
  ::close(socket);
}

TEST_F(Control, ListensOnAPathTooAndRemovesItAtTheEnd) {
  JobProcess job({"init", "hear"}, {{kEnvSocketFolder, folder.path()}});
  ASSERT_TRUE(job.status());
  const auto path = must(path_address(folder.path(), ::geteuid(), job.pid()));
  for (int i = 0; i < 200 && folder.files().empty(); ++i) ::usleep(5000);
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&path.address), path.length), 0);
  EXPECT_TRUE(decode_status(ask(socket, encode(ControlCommand{}))));
  ::close(socket);
  job.tell();
  end = job.wait();
  EXPECT_EQ(end.code, 0) << end.error;
  EXPECT_EQ(folder.files(), Names{});
}

TEST_F(Control, OnlyTheProgramNamedIsThereAtAll) {
  const Variables other = recording_to(folder, {{kEnvOnly, "python3"}});
  EXPECT_EQ(run_job({"init", "launch:10", "sleep:200"}, other).error, "");
  EXPECT_EQ(folder.files(), Names{});
  const Variables named = recording_to(folder, {{kEnvOnly, "fake_job"}});
  EXPECT_EQ(run_job({"init", "traced", "launch:10"}, named).code, 0);
  EXPECT_EQ(folder.files(), Names{"rank0.btr"});
}

}  // namespace
}  // namespace bubblesim::capture
