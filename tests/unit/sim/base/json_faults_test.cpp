// Typed reading of JSON: every fault of a file at once, each with its place and what would do.
#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_reader.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/base/parsed.hpp"

namespace bubblesim {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

constexpr std::array<std::string_view, 2> kColours{"red", "green"};

std::vector<std::string> texts_of(const Errors& errors) {
  std::vector<std::string> out;
  for (const Error& error : errors) out.push_back(error.text());
  return out;
}

struct JsonFaults : testing::Test { Errors errors; };

TEST_F(JsonFaults, AllFaultsOfAFileAreReportedAtOnce) {
  const JsonDocument document = parsed(R"({
    "name": 5, "sms": 0, "share": 2, "slice": 5, "memory": "3 GB", "colour": "gren",
    "gpu": {"clok": 1}, "list": [1, "x"]})");
  ObjectReader root = document.root(errors);
  EXPECT_EQ(root.text("name", "fallback"), "fallback");
  EXPECT_EQ(root.integer<std::uint32_t>("sms", {1, 1024}), 1U);  // the least of the range
  EXPECT_EQ(root.number("share", {0, 1}), 0.0);
  EXPECT_EQ(root.duration("slice", {Duration{1000}}), Duration{1000});
  EXPECT_EQ(root.bytes("memory"), Bytes{0});
  EXPECT_EQ(root.choice("colour", kColours), "red");
  EXPECT_EQ(root.child("gpu").number("clock", {0, 1}, 0.5), 0.5);
  EXPECT_THAT(root.numbers("list", {}), ElementsAre(1.0));  // the valid elements
  EXPECT_EQ(root.text("missing"), "");
  root.finish();
  EXPECT_THAT(
      texts_of(errors),
      ElementsAre(
          "run.json: /name: found the number 5; expected text",
          "run.json: /sms: found the number 0; expected an integer from 1 to 1024",
          "run.json: /share: found the number 2; expected a number from 0 to 1",
          "run.json: /slice: found the number 5 without a unit; expected a duration of at least "
          "1us as text such as \"1.024ms\"",
          "run.json: /memory: found \"3 GB\": \" GB\" is not a unit of it; expected a number of "
          "bytes such as \"40GiB\" (units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)",
          "run.json: /colour: unknown colour \"gren\"; did you mean \"green\"? Known: red, green",
          "run.json: /list/1: found the text \"x\"; expected a number",
          "run.json: required key \"missing\" is missing",
          "run.json: /gpu/clok: unknown key \"clok\"; did you mean \"clock\"? Known: clock"));
}

// A fault of the key that a text stands for is the element's.
TEST_F(JsonFaults, ATextMayStandForAnObject) {
  const JsonDocument document = parsed(R"({"a": ["x", {"name": "y", "nam": 1}, 5, {}]})");
  ObjectReader root = document.root(errors);
  std::vector<ObjectReader> elements = root.children_or_texts("a", "name");
  ASSERT_EQ(elements.size(), 3U);
  EXPECT_EQ(elements[0].text("name"), "x");
  EXPECT_EQ(elements[0].pointer(), "/a/0");
  elements[0].fault("name", "no such thing");
  EXPECT_EQ(elements[1].text("name"), "y");
  elements[1].fault("name", "no such thing");
  EXPECT_EQ(elements[2].text("name"), "");
  root.finish();
  EXPECT_THAT(texts_of(errors),
              ElementsAre("run.json: /a/2: found the number 5; expected an object",
                          "run.json: /a/0: no such thing", "run.json: /a/1/name: no such thing",
                          "run.json: /a/3: required key \"name\" is missing",
                          "run.json: /a/1/nam: unknown key \"nam\"; did you mean \"name\"? "
                          "Known: name"));
}

TEST_F(JsonFaults, WrongKindsAreNamed) {
  const JsonDocument document =
      parsed(R"({"a": null, "b": true, "c": [1, 2], "d": {}, "e": 1.5, "f": 300, "g": [{}, 4]})");
  ObjectReader root = document.root(errors);
  (void)root.text("a");
  (void)root.integer<int>("b");
  (void)root.flag("c");
  (void)root.texts("d");
  (void)root.integer<int>("e");
  (void)root.integer<std::int8_t>("f");
  EXPECT_EQ(root.children("g").size(), 1U);
  (void)root.child("b");
  root.finish();
  EXPECT_THAT(texts_of(errors),
              ElementsAre("run.json: /a: found null; expected text",
                          "run.json: /b: found true; expected an integer from -2147483648 to "
                          "2147483647",
                          "run.json: /c: found a list of 2; expected true or false",
                          "run.json: /d: found an object; expected a list",
                          HasSubstr("found the number 1.5; expected an integer"),
                          HasSubstr("from -128 to 127"),
                          "run.json: /g/1: found the number 4; expected an object",
                          "run.json: /b: found true; expected an object"));
}

// A negative number asks where counts begin.
TEST_F(JsonFaults, RangesOfCountsNameTheirFloor) {
  const JsonDocument document = parsed(R"({"a": -1, "b": -2})");
  ObjectReader root = document.root(errors);
  (void)root.integer<std::uint32_t>("a", {0, 65'536});
  (void)root.integer<std::uint64_t>("b");
  root.finish();
  EXPECT_THAT(texts_of(errors),
              ElementsAre("run.json: /a: found the number -1; expected an integer from 0 to 65536",
                          "run.json: /b: found the number -2; expected an integer of at least 0"));
}

TEST_F(JsonFaults, ReadersOfAnAbsentChildAreSilent) {
  const JsonDocument document = parsed(R"({"gpu": 4})");
  ObjectReader root = document.root(errors);
  ObjectReader gpu = root.child("gpu");
  EXPECT_FALSE(gpu.present());
  EXPECT_EQ(gpu.integer<int>("sms", {1, 9}), 1);
  EXPECT_EQ(gpu.text("name"), "");
  EXPECT_FALSE(gpu.child("deeper").present());
  root.finish();
  EXPECT_THAT(texts_of(errors),
              ElementsAre("run.json: /gpu: found the number 4; expected an object"));
}

TEST_F(JsonFaults, ARootThatIsNotAnObjectIsAFault) {
  const JsonDocument document = parsed("[1, 2, 3]");
  ObjectReader root = document.root(errors);
  EXPECT_FALSE(root.present());
  EXPECT_THAT(texts_of(errors), ElementsAre("run.json: found a list of 3; expected an object"));
}

TEST_F(JsonFaults, DuplicateKeysAreFaultsWithTheirObject) {
  const JsonDocument document = parsed(R"({"a": [{"x": 1, "x": 2, "x": 3}], "b": 1, "b": 1})");
  ObjectReader root = document.root(errors);
  EXPECT_THAT(texts_of(errors),
              ElementsAre("run.json: /a/0: key \"x\" stands more than once in this object",
                          "run.json: key \"b\" stands more than once in this object"));
  EXPECT_EQ(root.children("a").at(0).integer<int>("x"), 1);  // the first counts
}

TEST_F(JsonFaults, SyntaxErrorsGiveLineAndColumn) {
  const auto document = error_of(JsonDocument::parse("{\n  \"a\": 1,\n  \"b\" 2\n}", "run.json"));
  ASSERT_EQ(document.size(), 1U);
  EXPECT_EQ(document[0].place, "line 3, column 7");
  EXPECT_THAT(document[0].message, HasSubstr("expected ':'"));
}

TEST_F(JsonFaults, AFileThatIsNotThereIsAFault) {
  EXPECT_EQ(error_of(JsonDocument::load_file("no/such/file.json"))[0].text(),
            "no/such/file.json: no such file");
  EXPECT_THAT(error_of(JsonDocument::load_file(::testing::TempDir()))[0].message,
              HasSubstr("not a regular file"));
}

TEST_F(JsonFaults, ACallersOwnFaultHasTheKeysPlace) {
  const JsonDocument document = parsed(R"({"jobs": [{"a": 1}]})");
  ObjectReader job = document.root(errors).children("jobs").at(0);
  job.fault("a", "too odd");
  job.fault("", "too even");
  EXPECT_THAT(texts_of(errors),
              ElementsAre("run.json: /jobs/0/a: too odd", "run.json: /jobs/0: too even"));
}

TEST_F(JsonFaults, ReadingAKeyTwiceDeclaresItOnce) {
  const JsonDocument document = parsed(R"({"gpu": {"a": 1, "b": 2}})");
  ObjectReader root = document.root(errors);
  EXPECT_EQ(root.child("gpu").integer<int>("a"), 1);
  EXPECT_EQ(root.child("gpu").integer<int>("b"), 2);
  root.finish();
  root.finish();
  EXPECT_TRUE(errors.empty());
}

// JSON made to hurt: cut short, nested, enormous. Each is refused or read, never worse.

constexpr std::string_view kSmall =
    R"({"name": "a\u00e9b", "list": [1, -2.5e3, true, null], "gpu": {"sms": 80}})";

std::string nested(std::size_t depth) {
  return "{\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
}

TEST(JsonHostile, ATextCutAnywhereIsASyntaxFault) {
  ASSERT_TRUE(JsonDocument::parse(kSmall, "cut.json"));
  for (std::size_t size = 0; size < kSmall.size(); ++size) {
    const auto document = JsonDocument::parse(kSmall.substr(0, size), "cut.json");
    ASSERT_FALSE(document) << size;
    EXPECT_THAT(document.error().at(0).place, HasSubstr("line 1, column ")) << size;
  }
}

TEST(JsonHostile, AnyByteChangedIsReadOrRefused) {
  for (std::size_t at = 0; at < kSmall.size(); ++at) {
    for (int byte = 0; byte < 256; byte += 5) {
      std::string text(kSmall);
      text[at] = static_cast<char>(byte);
      const auto document = JsonDocument::parse(text, "changed.json");
      Errors errors;
      if (!document) continue;
      ObjectReader root = document->root(errors);
      (void)root.text("name");
      (void)root.numbers("list", {});
      (void)root.child("gpu").integer<int>("sms");
      root.finish();
    }
  }
}

TEST(JsonHostile, SixtyFourLevelsAreReadAndSixtyFiveRefused) {
  EXPECT_TRUE(JsonDocument::parse(nested(kMaxJsonDepth), "deep.json"));
  for (const std::size_t depth : {kMaxJsonDepth + 1, std::size_t{1000000}}) {
    const auto document = error_of(JsonDocument::parse(nested(depth), "deep.json"));
    EXPECT_THAT(document.at(0).message, HasSubstr("nested more than 64 deep"));
    EXPECT_EQ(document.at(0).place.substr(0, 6), "/a/0/0");
  }
  EXPECT_FALSE(JsonDocument::parse(std::string(1000000, '['), "deep.json"));
  EXPECT_FALSE(JsonDocument::parse(std::string(1000000, '{'), "deep.json"));
}

TEST(JsonHostile, MessagesAboutHugeNamesAreShort) {
  const std::string huge(1000000, 'n');
  const auto document =
      must(JsonDocument::parse("{\"" + huge + "\": 1, \"t\": \"" + huge + "\"}", "huge.json"));
  Errors errors;
  ObjectReader root = document.root(errors);
  (void)root.flag("t");
  root.finish();
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_LT(errors[0].text().size(), 200U);
  EXPECT_LT(errors[1].text().size(), 600U);
  EXPECT_LT(error_of(JsonDocument::parse("{\"" + huge, "huge.json")).at(0).text().size(), 300U);
}

TEST(JsonHostile, AFloodOfFaultsEndsAfterAHundred) {
  std::string text = "{\"a\": 0";
  for (int i = 0; i < 100000; ++i) text += ", \"k" + std::to_string(i) + "\": 0, \"a\": 0";
  const auto document = must(JsonDocument::parse(text + "}", "flood.json"));
  Errors errors;
  ObjectReader root = document.root(errors);
  root.finish();
  ASSERT_EQ(errors.size(), 101U);
  EXPECT_THAT(errors.back().message, HasSubstr("more faults follow"));
}

TEST(JsonHostile, NumbersBeyondTheTypesAreRefused) {
  EXPECT_FALSE(JsonDocument::parse(R"({"a": 1e999})", "n.json"));
  EXPECT_FALSE(JsonDocument::parse(R"({"a": NaN})", "n.json"));
  const auto document = must(JsonDocument::parse(R"({"a": 18446744073709551616})", "n.json"));
  Errors errors;
  (void)document.root(errors).integer<unsigned long>("a");
  ASSERT_EQ(errors.size(), 1U);
}

TEST(JsonHostile, BytesAfterTheEndAreNeverIgnored) {
  using namespace std::string_literals;
  for (const std::string& text : {"{}\0"s, "{}\0x"s, "{} {}"s, "{}x"s, "\0"s, ""s, " "s}) {
    EXPECT_FALSE(JsonDocument::parse(text, "n.json"));
  }
  const auto document = JsonDocument::parse("{\n}\0x"s, "n.json");
  EXPECT_EQ(document.error().at(0).text(),
            "n.json: line 2, column 2: not valid JSON: found a NUL byte");
}

TEST(JsonHostile, InvalidUtf8AndCommentsAreRefused) {
  EXPECT_FALSE(JsonDocument::parse("{\"a\": \"\xC3(\"}", "n.json"));
  EXPECT_FALSE(JsonDocument::parse("{} // no", "n.json"));
}

TEST(JsonHostile, MoreValuesThanAConfigHasAreRefused) {
  std::string text = "[0";
  for (std::size_t i = 0; i < kMaxJsonValues; ++i) text += ",0";
  EXPECT_THAT(error_of(JsonDocument::parse(text + "]", "wide.json")).at(0).message,
              HasSubstr("more than 4000000 values"));
}

TEST(JsonHostile, MoreThan64MebibytesAreRefused) {
  const std::string text(kMaxJsonFileBytes + 1, ' ');
  EXPECT_THAT(error_of(JsonDocument::parse(text, "big.json")).at(0).message,
              HasSubstr("expected at most 67108864"));
}

}  // namespace
}  // namespace bubblesim
