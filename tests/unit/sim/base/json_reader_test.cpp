// Typed reading of JSON: the values.
#include <array>
#include <cstdint>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>

#include "sim/base/json.hpp"
#include "sim/base/json_reader.hpp"
#include "tests/unit/sim/base/parsed.hpp"

namespace bubblesim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

enum class Mode : std::uint8_t { kSpatial, kTimeSliced };
constexpr std::array kModes{Choice<Mode>{"spatial", Mode::kSpatial},
                            Choice<Mode>{"time_sliced", Mode::kTimeSliced}};

TEST(JsonReader, ReadsEveryTypeOfValue) {
  const JsonDocument document = parsed(R"({
    "name": "h100", "sms": 132, "offset": -7, "seed": 18446744073709551615, "share": 0.25,
    "whole": 3, "on": true, "slice": "1.024ms", "memory": "80GiB", "bandwidth": "3.35TB/s",
    "mode": "time_sliced"})");
  Errors errors;
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

TEST(JsonReader, IntegersMayBeWrittenAsExactFloats) {
  const JsonDocument document =
      parsed(R"({"a": 1e1, "b": -20.0, "c": 9007199254740991.0, "d": 9007199254740992.0,
                 "e": -1.0, "f": 1e300})");
  Errors errors;
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

TEST(JsonReader, AFallbackMakesAKeyOptional) {
  const JsonDocument document = parsed("{}");
  Errors errors;
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

TEST(JsonReader, ReadsLists) {
  const JsonDocument document =
      parsed(R"({"a": ["x", "y"], "b": [1, 2.5], "c": [3, 4], "d": ["1us"], "e": [-1], "f": []})");
  Errors errors;
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

TEST(JsonReader, ReadsChildrenAndKnowsWhereTheyStand) {
  const JsonDocument document = parsed(R"({"jobs": [{"n": 1}, {"n": 2}], "a/b~": {"x": 3}})");
  Errors errors;
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

TEST(JsonReader, AKeyMayBeTextOrAnObject) {
  const JsonDocument document = parsed(R"({"a": "text", "b": {"x": 1}, "c": [1], "d": null})");
  Errors errors;
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

TEST(JsonReader, RawTextIsCompactJson) {
  const JsonDocument document = parsed(R"({"v": [1, -2, 2.5, "q\"\n", true, null, {"k": []}]})");
  Errors errors;
  EXPECT_EQ(document.root(errors).raw("v"), R"([1,-2,2.5,"q\"\n",true,null,{"k":[]}])");
}

TEST(JsonReader, AScalarIsWhatWasWritten) {
  const JsonDocument document = parsed(
      R"({"a": true, "b": 7, "c": -7, "d": 7.0, "e": "7", "f": [7], "g": 18446744073709551615})");
  Errors errors;
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

TEST(JsonReader, LoadsAFile) {
  const std::string path = ::testing::TempDir() + "json_reader_test.json";
  std::ofstream(path) << R"({"n": 1})";
  const auto document = JsonDocument::load_file(path);
  ASSERT_TRUE(document);
  EXPECT_EQ(document->file(), path);
  Errors errors;
  EXPECT_EQ(document->root(errors).integer<int>("n"), 1);
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

}  // namespace
}  // namespace bubblesim
