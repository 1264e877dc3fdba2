// Typed reading of JSON: the values.
#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "sim/base/json.hpp"
#include "sim/base/json_reader.hpp"
#include "tests/unit/sim/base/parsed.hpp"

namespace bubblesim {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

enum class Mode : std::uint8_t { kSpatial, kTimeSliced };
constexpr std::array kModes{Choice<Mode>{"spatial", Mode::kSpatial},
                            Choice<Mode>{"time_sliced", Mode::kTimeSliced}};

struct JsonReader : testing::Test { Errors errors; };

TEST_F(JsonReader, ReadsEveryTypeOfValue) {
  const JsonDocument document = parsed(R"({
    "name": "h100", "sms": 132, "offset": -7, "seed": 18446744073709551615, "share": 0.25,
    "whole": 3, "on": true, "slice": "1.024ms", "memory": "80GiB", "bandwidth": "3.35TB/s",
    "mode": "time_sliced"})");
  ObjectReader root = document.root(errors);
  EXPECT_EQ(root.text("name"), "h100");
  EXPECT_EQ(root.integer<std::uint32_t>("sms", {1, 1024}), 132U);
  EXPECT_EQ(root.integer<std::int8_t>("offset"), -7);
  EXPECT_EQ(root.integer<std::uint64_t>("seed"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(root.number("share", {0, 1}), 0.25);
  EXPECT_EQ(root.number("whole", {}), 3.0);
  EXPECT_TRUE(root.flag("on"));
  EXPECT_EQ(root.duration("slice", {Duration{1}}), Duration{1024000});
  EXPECT_EQ(root.bytes("memory"), Bytes{std::uint64_t{80} << 30U});
  EXPECT_EQ(root.rate("bandwidth"), BytesPerSecond{3.35e12});
  EXPECT_EQ(root.choice("mode", kModes), Mode::kTimeSliced);
  root.finish();
  EXPECT_THAT(errors, IsEmpty());
}

TEST_F(JsonReader, IntegersMayBeWrittenAsExactFloats) {
  const JsonDocument document =
      parsed(R"({"a": 1e1, "b": -20.0, "c": 9007199254740991.0, "d": 9007199254740992.0,
                 "e": -1.0, "f": 1e300})");
  ObjectReader root = document.root(errors);
  EXPECT_EQ(root.integer<std::uint32_t>("a"), 10U);
  EXPECT_EQ(root.integer<int>("b"), -20);
  EXPECT_EQ(root.integer<std::uint64_t>("c"), std::uint64_t{9007199254740991});
  EXPECT_THAT(errors, IsEmpty());
  (void)root.integer<std::uint64_t>("d");  // 2^53: 9007199254740993.0 reads as the same double
  (void)root.integer<std::uint32_t>("e");
  (void)root.integer<std::int64_t>("f");
  EXPECT_EQ(errors.size(), 3U);
}

TEST_F(JsonReader, AFallbackMakesAKeyOptional) {
  const JsonDocument document = parsed("{}");
  ObjectReader root = document.root(errors);
  EXPECT_EQ(root.text("name", "none"), "none");
  EXPECT_EQ(root.integer<std::uint32_t>("sms", {1, 1024}, 80), 80U);
  EXPECT_EQ(root.number("share", {0, 1}, 0.5), 0.5);
  EXPECT_TRUE(root.flag("on", true));
  EXPECT_EQ(root.duration("slice", {}, Duration{5}), Duration{5});
  EXPECT_EQ(root.bytes("memory", {}, Bytes{6}), Bytes{6});
  EXPECT_EQ(root.rate("bandwidth", {}, BytesPerSecond{7}), BytesPerSecond{7});
  EXPECT_EQ(root.choice("mode", kModes, Mode::kTimeSliced), Mode::kTimeSliced);
  EXPECT_THAT(root.texts("names", Presence::kOptional), IsEmpty());
  EXPECT_FALSE(root.child("gpu", Presence::kOptional).present());
  root.finish();
  EXPECT_THAT(errors, IsEmpty());
}

TEST_F(JsonReader, ReadsLists) {
  const JsonDocument document =
      parsed(R"({"a": ["x", "y"], "b": [1, 2.5], "c": [3, 4], "d": ["1us"], "e": [-1], "f": []})");
  ObjectReader root = document.root(errors);
  EXPECT_THAT(root.texts("a"), ElementsAre("x", "y"));
  EXPECT_THAT(root.numbers("b", {}), ElementsAre(1.0, 2.5));
  EXPECT_THAT(root.integers<std::uint16_t>("c"), ElementsAre(3, 4));
  EXPECT_THAT(root.durations("d"), ElementsAre(Duration{1000}));
  EXPECT_THAT(root.integers<std::int32_t>("e"), ElementsAre(-1));
  EXPECT_THAT(root.texts("f"), IsEmpty());
  root.finish();
  EXPECT_THAT(errors, IsEmpty());
}

TEST_F(JsonReader, ReadsChildrenAndKnowsWhereTheyStand) {
  const JsonDocument document = parsed(R"({"jobs": [{"n": 1}, {"n": 2}], "a/b~": {"x": 3}})");
  ObjectReader root = document.root(errors);
  auto jobs = root.children("jobs");
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[1].integer<int>("n"), 2);
  EXPECT_EQ(jobs[1].pointer("n"), "/jobs/1/n");
  ObjectReader odd = root.child("a/b~");
  EXPECT_EQ(odd.pointer(), "/a~1b~0");
  EXPECT_EQ(odd.integer<int>("x"), 3);
  EXPECT_EQ(jobs[0].integer<int>("n"), 1);
  root.finish();
  EXPECT_THAT(errors, IsEmpty());
}

TEST_F(JsonReader, AKeyMayBeTextOrAnObject) {
  const JsonDocument document = parsed(R"({"a": "text", "b": {"x": 1}, "c": [1], "d": null})");
  ObjectReader root = document.root(errors);
  EXPECT_EQ(root.kind("a"), JsonKind::kText);
  EXPECT_EQ(root.kind("b"), JsonKind::kObject);
  EXPECT_EQ(root.kind("c"), JsonKind::kList);
  EXPECT_EQ(root.kind("d"), JsonKind::kNull);
  EXPECT_EQ(root.kind("e"), JsonKind::kAbsent);
  EXPECT_TRUE(root.has("a"));
  EXPECT_FALSE(root.has("e"));
  EXPECT_EQ(root.raw("b"), R"({"x":1})");
  EXPECT_THAT(root.keys(), ElementsAre("a", "b", "c", "d"));
  root.finish();
  EXPECT_THAT(errors, IsEmpty());
}

TEST_F(JsonReader, RawTextIsCompactJson) {
  const JsonDocument document = parsed(R"({"v": [1, -2, 2.5, "q\"\n", true, null, {"k": []}]})");
  EXPECT_EQ(document.root(errors).raw("v"), R"([1,-2,2.5,"q\"\n",true,null,{"k":[]}])");
}

TEST_F(JsonReader, AScalarIsWhatWasWritten) {
  const JsonDocument document = parsed(
      R"({"a": true, "b": 7, "c": -7, "d": 7.0, "e": "7", "f": [7], "g": 18446744073709551615})");
  ObjectReader root = document.root(errors);
  EXPECT_EQ(root.scalar("a"), JsonScalar(true));
  EXPECT_EQ(root.scalar("b"), JsonScalar(std::int64_t{7}));
  EXPECT_EQ(root.scalar("c"), JsonScalar(std::int64_t{-7}));
  EXPECT_EQ(root.scalar("d"), JsonScalar(7.0));
  EXPECT_EQ(root.scalar("e"), JsonScalar("7"));
  EXPECT_EQ(root.scalar("f"), JsonScalar("[7]"));
  EXPECT_EQ(root.scalar("g"), JsonScalar("18446744073709551615"));
  root.finish();
  EXPECT_THAT(errors, IsEmpty());
}

// JSON as text, whatever bytes are in it.

TEST(JsonText, IsOnOneLineOrIndented) {
  const Json json = {{"b", 1}, {"a", {2}}};
  EXPECT_EQ(compact_text(json), R"({"b":1,"a":[2]})");
  EXPECT_EQ(indented_text(json, 1), "{\n \"b\": 1,\n \"a\": [\n  2\n ]\n}");
}

TEST(JsonText, BytesThatAreNotUtf8AreReplaced) {
  const Json json = {{"name", "job\xff"}};
  EXPECT_EQ(compact_text(json), "{\"name\":\"job\xef\xbf\xbd\"}");
  EXPECT_EQ(indented_text(json, 0), "{\n\"name\": \"job\xef\xbf\xbd\"\n}");
}

std::vector<std::string> faults_of(const Errors& errors) {
  std::vector<std::string> out;
  for (const Error& error : errors) out.push_back(error.place + ": " + error.message);
  return out;
}

TEST_F(JsonReader, TheRootMayNameItsSchemaAndNobodyElse) {
  const JsonDocument document = parsed(R"({"$schema": "run.schema.json", "a": {"$schema": "x"}})");
  ObjectReader root = document.root(errors);
  EXPECT_TRUE(root.child("a").present());
  EXPECT_THAT(root.keys(), ElementsAre("a"));
  root.finish();
  EXPECT_THAT(faults_of(errors), ElementsAre("/a/$schema: unknown key \"$schema\"; known: none"));
}

TEST_F(JsonReader, ASchemaThatIsNoTextIsAFault) {
  const JsonDocument document = parsed(R"({"$schema": 5})");
  document.root(errors).finish();
  EXPECT_THAT(faults_of(errors), ElementsAre("/$schema: found the number 5; expected text"));
}

TEST_F(JsonReader, OneOfSeveralKeysIsExpected) {
  const auto faults = [&](std::string_view text) {
    const JsonDocument document = parsed(text);
    errors.clear();
    ObjectReader root = document.root(errors);
    root.one_of({"a", "b", "c"});
    root.finish();
    return faults_of(errors);
  };
  EXPECT_THAT(faults(R"({"b": 1})"), IsEmpty());
  EXPECT_THAT(faults("{}"), ElementsAre(R"(: expected "a", "b" or "c"; found neither)"));
  EXPECT_THAT(faults(R"({"a": 1, "c": 1})"),
              ElementsAre(R"(: found both "a" and "c"; expected one of them)"));
  EXPECT_THAT(faults(R"({"a": 1, "b": 1, "c": 1})"),
              ElementsAre(R"(: found all of "a" and "b" and "c"; expected one of them)"));
}

TEST_F(JsonReader, ARequiredKeyMayHaveItsOwnMessageAndATextItsOneValue) {
  const JsonDocument document = parsed(R"({"unit": "ms"})");
  ObjectReader root = document.root(errors);
  EXPECT_FALSE(root.require("source", "where is it from?"));
  root.expect("unit", "s");
  root.finish();
  EXPECT_THAT(faults_of(errors),
              ElementsAre(": where is it from?", R"(/unit: found "ms"; expected "s")"));
}

}  // namespace
}  // namespace bubblesim
