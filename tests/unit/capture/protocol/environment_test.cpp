// Requests in the environment of a job.
#include <gmock/gmock.h>

#include <chrono>

#include "capture/protocol/capture_request.hpp"

namespace bubblesim::capture {
namespace {

using testing::AllOf, testing::HasSubstr;
using namespace std::chrono_literals;

using Variables = std::map<std::string, std::string>;

Result<std::optional<StartRequest>> read(const Variables& variables) {
  return request_from_environment([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

using Request = std::optional<StartRequest>;

// What a good environment holds.
Request good(const Variables& variables) {
  auto asked = read(variables);
  EXPECT_TRUE(asked) << asked.error().text();
  return asked.value_or(Request{});
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

}  // namespace
}  // namespace bubblesim::capture
