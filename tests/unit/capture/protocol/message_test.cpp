// Messages of the control socket: what is written is read back, what is hostile is named.
#include <gmock/gmock.h>

#include <chrono>
#include <cstddef>

#include "capture/protocol/capture_request.hpp"
#include "tests/fault.hpp"

namespace bubblesim::capture {
namespace {

using Kind = ControlCommand::Kind;
using Variables = std::map<std::string, std::string>;
using namespace std::chrono_literals;
using testing::AllOf, testing::HasSubstr;

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
  const auto read = must(decode_status(text));
  EXPECT_EQ(read.records, status.records);
  EXPECT_EQ(read.message, std::string(2000, '\x01'));
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

// Requests in the environment of a job.
Result<std::optional<StartRequest>> read(const Variables& variables) {
  return request_from_environment([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

using Request = std::optional<StartRequest>;

// What a good environment holds.
Request good(const Variables& variables) {
  return must(read(variables));
}

Variables with(const char* name, const std::string& value) {
  Variables variables{{kEnvStart, "now"}, {kEnvOutput, "/data/run"}};
  variables[name] = value;
  return variables;
}

TEST(Environment, WithoutStartNothingIsAsked) {
  EXPECT_EQ(good({}), Request{});
  EXPECT_EQ(good({{kEnvOutput, "/data/run"}, {kEnvDuration, "nonsense"}}), Request{});
  EXPECT_EQ(good({{kEnvStart, ""}}), Request{});
}

TEST(Environment, DefaultsAreThoseOfTheRequest) {
  StartRequest expected;
  expected.output = "/data/run";
  EXPECT_EQ(good({{kEnvStart, "now"}, {kEnvOutput, "/data/run"}}), expected);
}

TEST(Environment, EveryValueIsRead) {
  Variables variables{{kEnvStart, "2.5"},          {kEnvOutput, "/data/run"},
                      {kEnvDuration, "500ms"},     {kEnvMaxBytes, "2GB"},
                      {kEnvIterations, "20"},      {kEnvStartAt, "1800000000"},
                      {kEnvGraphs, "graph"},       {kEnvMemory, "0"},
                      {kEnvFirstIteration, "100"}, {kEnvLast, "10s"},
                      {kEnvEvery, "1000"},         {kEnvDetail, "light"},
                      {kEnvNames, "hashed"},       {kEnvCount, "collectives"},
                      {kEnvSignal, "USR2"}};
  StartRequest expected;
  expected.output = "/data/run";
  expected.delay = 2500ms;
  expected.first_iteration = 100;
  expected.last = 10s;
  expected.every = 1000;
  expected.detail = Detail::kLight;
  expected.names = Names::kHashed;
  expected.counted = CountedBy::kCollectives;
  expected.signal = SIGUSR2;
  expected.duration = 500ms;
  expected.max_bytes = 2'000'000'000;
  expected.iterations = 20;
  expected.start_at_unix_s = 1'800'000'000;
  expected.graphs = GraphRecords::kGraph;
  expected.memory = false;
  EXPECT_EQ(good(variables), expected);
}

TEST(Environment, ADelayHasSecondsOrAUnit) {
  EXPECT_EQ(good(with(kEnvStart, "5"))->delay, 5s);
  EXPECT_EQ(good(with(kEnvStart, "0.000000001"))->delay, 1ns);
  EXPECT_EQ(good(with(kEnvStart, "250us"))->delay, 250us);
  EXPECT_EQ(good(with(kEnvStart, "0"))->delay, 0s);
}

TEST(Environment, WhatIsWrittenIsReadBack) {
  StartRequest request;
  request.output = "/data/a folder/räñk \xE2\x82\xAC";
  for (const Duration delay : {0ns, 1ns, Duration{1500ms}, Duration{kLongestSpan}}) {
    request.delay = delay;
    EXPECT_EQ(good(environment_of(request)), request) << delay.count();
  }
  request.duration = 123456789ns;
  request.max_bytes = 1'048'577;
  request.iterations = 4'294'967'295U;
  request.start_at_unix_s = kLastStartUnixSeconds;
  request.graphs = GraphRecords::kGraph;
  request.memory = false;
  request.readers = Readers::kAll;
  request.first_iteration = 0;
  request.last = 1ns;
  request.every = 1;
  request.detail = Detail::kLight;
  request.names = Names::kHashed;
  EXPECT_EQ(good(environment_of(request)), request);
}

TEST(Environment, AFaultNamesTheVariableWhatItHoldsAndWhatIsAllowed) {
  const struct {
    const char* name;
    std::string value;
    const char* expected;
  } cases[] = {
      {kEnvStart, "soon", "\"now\""},
      {kEnvStart, "-1", "\"now\""},
      {kEnvStart, "1.2.3", "\"now\""},
      {kEnvDuration, "10", "\"10s\""},
      {kEnvDuration, "0s", "more than 0"},
      {kEnvDuration, "9000h", "366 days"},
      {kEnvMaxBytes, "1000", "at least 1MiB"},
      {kEnvMaxBytes, "1MB", "at least 1MiB"},
      {kEnvIterations, "0", "from 1 to 4294967295"},
      {kEnvIterations, "4294967296", "from 1 to 4294967295"},
      {kEnvIterations, "12 ", "whole number"},
      {kEnvStartAt, "-5", "from 0"},
      {kEnvStartAt, "99999999999999999999", "from 0"},
      {kEnvGraphs, "nodes", "\"node\" or \"graph\""},
      {kEnvMemory, "yes", "\"1\" or \"0\""},
  };
  for (const auto& sample : cases) {
    const auto refused = read(with(sample.name, sample.value));
    ASSERT_FALSE(refused) << sample.name << "=" << sample.value;
    EXPECT_THAT(refused.error().text(), AllOf(HasSubstr(sample.name), HasSubstr(sample.expected),
                                              HasSubstr("\"" + sample.value + "\"")));
  }
}

TEST(Environment, AnOutputIsNeededAndMustBeAPath) {
  EXPECT_THAT(read({{kEnvStart, "now"}}).error().text(),
              AllOf(HasSubstr(kEnvOutput), HasSubstr("not set")));
  EXPECT_THAT(read(with(kEnvOutput, "a\nb")).error().text(), HasSubstr("\\x0a"));
  EXPECT_FALSE(read(with(kEnvOutput, "\xff\xfe")));
  EXPECT_THAT(read(with(kEnvOutput, std::string(4096, 'a'))).error().text(),
              HasSubstr("found 4096 bytes"));
}

// Where recorders listen.
TEST(Address, AnAbstractNameBeginsWithAZeroByteAndEndsWithItsLength) {
  const ControlAddress made = abstract_address(1000, 42);
  EXPECT_EQ(made.text, "@bubblesim.1000.42");
  EXPECT_EQ(made.address.sun_family, AF_UNIX);
  EXPECT_EQ(made.address.sun_path[0], '\0');
  EXPECT_EQ(std::string(made.address.sun_path + 1), "bubblesim.1000.42");
  EXPECT_EQ(made.length, offsetof(sockaddr_un, sun_path) + 1 + 17);
}

TEST(Address, TheLargestNumbersFit) {
  EXPECT_EQ(abstract_address(4294967295U, 2147483647).text, "@bubblesim.4294967295.2147483647");
}

TEST(Address, APathIsInTheFolderGiven) {
  EXPECT_EQ(path_address("/run/b", 0, 7)->text, "/run/b/bubblesim.0.7.sock");
  EXPECT_EQ(path_address("/run/b/", 0, 7)->text, "/run/b/bubblesim.0.7.sock");
}

// "/bubblesim.0.7.sock" has 19 bytes: a folder of 88 makes 107, which fits.
TEST(Address, AFolderWithTooLongANameIsRefused) {
  EXPECT_TRUE(path_address(std::string(88, 'f'), 0, 7));
  const auto refused = path_address(std::string(89, 'f'), 0, 7);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("108 bytes"));
  EXPECT_THAT(refused.error().message, testing::HasSubstr("107"));
}

TEST(Address, AFolderWithoutANameIsRefused) {
  EXPECT_FALSE(path_address("", 0, 7));
  EXPECT_FALSE(path_address(std::string_view("/a\0b", 4), 0, 7));
}

}  // namespace
}  // namespace bubblesim::capture
