// Messages of the control socket: what is written is read back, what is hostile is named.
#include <gmock/gmock.h>

#include <chrono>

#include "capture/protocol/capture_request.hpp"

namespace bubblesim::capture {
namespace {

using testing::AllOf, testing::HasSubstr;
using namespace std::chrono_literals;
using Kind = ControlCommand::Kind;

ControlCommand full_start() {
  ControlCommand command;
  command.kind = Kind::kStart;
  command.start.output = "/data/run \"1\"\\\xE2\x82\xAC";
  command.start.duration = 1ns;
  command.start.max_bytes = kLeastMaxBytes.value;
  command.start.iterations = 4'294'967'295U;
  command.start.start_at_unix_s = 1'800'000'000;
  command.start.first_iteration = 100;
  command.start.every = 1000;
  command.start.last = std::chrono::seconds(30);
  command.start.detail = Detail::kLight;
  command.start.names = Names::kHashed;
  command.start.counted = CountedBy::kCollectives;
  command.start.signal = SIGURG;
  command.start.delay = 366 * 24h;
  command.start.graphs = GraphRecords::kGraph;
  command.start.memory = false;
  command.start.readers = Readers::kAll;
  return command;
}

RecorderStatus full_status() {
  RecorderStatus status;
  status.state = RecorderState::kRecording;
  status.pid = 4321;
  status.rank = 3;
  status.world_size = 8;
  status.executable = "python3.11";
  status.output = "/data/run/rank3.btr";
  status.message = "graphs are recorded whole";
  status.cupti = "/opt/cuda/libcupti.so.13 (130001)";
  status.recorded = 12'345'678'901ns;
  status.records = 18'446'744'073'709'551'615U;
  status.bytes = 1U << 30U;
  status.lost = 7;
  status.iterations = 12;
  return status;
}

TEST(Message, EveryCommandIsReadBack) {
  ControlCommand command;
  for (const Kind kind : {Kind::kStop, Kind::kStatus}) {
    command.kind = kind;
    EXPECT_EQ(decode_command(encode(command)), command);
  }
  command.kind = Kind::kMark;
  command.mark = "eval starts";
  EXPECT_EQ(decode_command(encode(command)), command);
  ControlCommand start;
  start.kind = Kind::kStart;
  start.start.output = "/data/run";
  EXPECT_EQ(decode_command(encode(start)), start);
  EXPECT_EQ(decode_command(encode(full_start())), full_start());
}

TEST(Message, AStatusIsReadBackInEveryState) {
  RecorderStatus status = full_status();
  for (const RecorderState state :
       {RecorderState::kIdle, RecorderState::kScheduled, RecorderState::kStarting,
        RecorderState::kRecording, RecorderState::kStopping, RecorderState::kFailed}) {
    status.state = state;
    EXPECT_EQ(decode_status(encode(status)), status) << state_name(state);
  }
  EXPECT_EQ(decode_status(encode(RecorderStatus{})), RecorderStatus{});
}

TEST(Message, ACommandIsOneLineOfJson) {
  ControlCommand command;
  command.kind = Kind::kStart;
  command.start.output = "/o";
  command.start.duration = 10s;
  EXPECT_THAT(encode(command),
              AllOf(testing::StartsWith(R"({"command":"start","request":{"BUBBLESIM_CAPTURE_)"),
                    HasSubstr(R"("BUBBLESIM_CAPTURE_DURATION":"10s")"),
                    HasSubstr(R"("BUBBLESIM_CAPTURE_START":"now")")));
}

TEST(Message, AStatusFitsIntoAMessageWhateverItsTextsHold) {
  RecorderStatus status = full_status();
  status.message = std::string(100'000, '\x01');
  status.executable = std::string(5'000, '\xff');
  status.output = std::string(5'000, '"');
  const std::string text = encode(status);
  EXPECT_LE(text.size(), kMaxMessageBytes);
  const auto read = decode_status(text);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->records, status.records);
  EXPECT_EQ(read->message, std::string(2000, '\x01'));
}

TEST(Message, ACommandThatCannotBeReadIsNamed) {
  const struct {
    const char* text;
    const char* expected;
  } cases[] = {
      {"", "message"},
      {"[]", "a list"},
      {"{\"command\":", "line 1"},
      {"{}", "command"},
      {R"({"command":"strat"})", "did you mean \"start\"?"},
      {R"({"command":3})", "the number 3"},
      {R"({"command":"stop","force":true})", "unknown key \"force\""},
      {R"({"command":"stop","output":"/o"})", "unknown key \"output\""},
      {R"({"command":"status","command":"stop"})", "command"},
      {R"({"command":"start"})", "\"request\" is missing"},
      {R"({"command":"start","request":7})", "the number 7"},
      {R"({"command":"start","request":{}})", "BUBBLESIM_CAPTURE_START is missing"},
      {R"({"command":"start","request":{"BUBBLESIM_CAPTURE_START":"now"}})", "_OUTPUT: is not set"},
      {R"({"command":"start","request":{"BUBBLESIM_CAPTURE_START":1}})", "the number 1"},
      {R"({"command":"mark"})", "\"name\" is missing"},
      {R"({"command":"mark","name":""})", "/name"},
      {R"({"command":"mark","name":"a\nb"})", "/name"},
  };
  for (const auto& sample : cases) {
    const auto refused = decode_command(sample.text);
    ASSERT_FALSE(refused) << sample.text;
    EXPECT_THAT(refused.error().text(), HasSubstr(sample.expected)) << sample.text;
  }
}

// A value that the environment may not have is none of a message's, too; nor is an unknown name.
TEST(Message, ARequestHasTheLimitsOfTheEnvironment) {
  const auto fault = [](const std::string& name, const std::string& value) {
    const auto refused =
        decode_command(R"({"command":"start","request":{"BUBBLESIM_CAPTURE_START":"now",)"
                       R"("BUBBLESIM_CAPTURE_OUTPUT":"o","BUBBLESIM_CAPTURE_)" +
                       name + R"(":)" + value + "}}");
    return refused ? "none" : refused.error().text();
  };
  EXPECT_THAT(fault("DURATION", R"("0s")"), HasSubstr("more than 0"));
  EXPECT_THAT(fault("DURATION", "10"), HasSubstr("the number 10"));
  EXPECT_THAT(fault("ITERATIONS", R"("4294967296")"), HasSubstr("4294967295"));
  EXPECT_THAT(fault("MAX_BYTES", R"("1KiB")"), HasSubstr("at least 1MiB"));
  EXPECT_THAT(fault("GRAPHS", R"("nodes")"), HasSubstr("\"node\""));
  EXPECT_THAT(fault("DURATIONS", R"("1s")"),
              HasSubstr("did you mean \"BUBBLESIM_CAPTURE_DURATION\"?"));
}

TEST(Message, AStatusThatCannotBeReadIsNamed) {
  const std::string good = encode(full_status());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return decode_status(text);
  };
  EXPECT_THAT(changed("\"recording\"", "\"recordng\"").error().text(),
              HasSubstr("did you mean \"recording\"?"));
  EXPECT_THAT(changed("\"pid\":4321", "\"pid\":-1").error().text(), HasSubstr("/pid"));
  EXPECT_THAT(changed("\"world_size\":8", "\"world_size\":0").error().text(),
              HasSubstr("/world_size"));
  EXPECT_THAT(changed("\"lost\":7", "\"lost\":7.5").error().text(), HasSubstr("/lost"));
  EXPECT_THAT(changed("\"lost\":7,", "").error().text(), HasSubstr("lost"));
  EXPECT_THAT(changed("\"lost\"", "\"host\"").error().text(), HasSubstr("lost"));
}

TEST(Message, WhatIsTooLongIsNotParsed) {
  const std::string text(kMaxMessageBytes + 1, '[');
  EXPECT_THAT(decode_command(text).error().text(), HasSubstr("found 65537 bytes"));
  EXPECT_THAT(decode_status(text).error().text(), HasSubstr("at most 65536"));
}

TEST(Message, DeepNestingIsRefused) {
  EXPECT_FALSE(decode_command(R"({"command":)" + std::string(60'000, '[')));
}

TEST(Message, TheLongestRequestFits) {
  ControlCommand command = full_start();
  command.start.output = std::string(kMaxOutputBytes, '"');
  EXPECT_LE(encode(command).size(), kMaxMessageBytes);
  EXPECT_EQ(decode_command(encode(command)), command);
}

}  // namespace
}  // namespace bubblesim::capture
