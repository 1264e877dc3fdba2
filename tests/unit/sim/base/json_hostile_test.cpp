// JSON made to hurt: cut short, nested, enormous. Each is refused or read, never worse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "sim/base/json_reader.hpp"

namespace bubblesim {
namespace {

using ::testing::HasSubstr;

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
    const auto document = JsonDocument::parse(nested(depth), "deep.json");
    ASSERT_FALSE(document);
    EXPECT_THAT(document.error().at(0).message, HasSubstr("nested more than 64 deep"));
    EXPECT_EQ(document.error().at(0).place.substr(0, 6), "/a/0/0");
  }
  EXPECT_FALSE(JsonDocument::parse(std::string(1000000, '['), "deep.json"));
  EXPECT_FALSE(JsonDocument::parse(std::string(1000000, '{'), "deep.json"));
}

TEST(JsonHostile, MessagesAboutHugeNamesAreShort) {
  const std::string huge(1000000, 'n');
  const auto document =
      JsonDocument::parse("{\"" + huge + "\": 1, \"t\": \"" + huge + "\"}", "huge.json");
  ASSERT_TRUE(document);
  Errors errors;
  ObjectReader root = document->root(errors);
  (void)root.flag("t");
  root.finish();
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_LT(errors[0].text().size(), 200U);
  EXPECT_LT(errors[1].text().size(), 600U);
  const auto unclosed = JsonDocument::parse("{\"" + huge, "huge.json");
  ASSERT_FALSE(unclosed);
  EXPECT_LT(unclosed.error().at(0).text().size(), 300U);
}

TEST(JsonHostile, AFloodOfFaultsEndsAfterAHundred) {
  std::string text = "{\"a\": 0";
  for (int i = 0; i < 100000; ++i) text += ", \"k" + std::to_string(i) + "\": 0, \"a\": 0";
  const auto document = JsonDocument::parse(text + "}", "flood.json");
  ASSERT_TRUE(document);
  Errors errors;
  ObjectReader root = document->root(errors);
  root.finish();
  ASSERT_EQ(errors.size(), 101U);
  EXPECT_THAT(errors.back().message, HasSubstr("more faults follow"));
}

TEST(JsonHostile, NumbersBeyondTheTypesAreRefused) {
  EXPECT_FALSE(JsonDocument::parse(R"({"a": 1e999})", "n.json"));
  EXPECT_FALSE(JsonDocument::parse(R"({"a": NaN})", "n.json"));
  const auto document = JsonDocument::parse(R"({"a": 18446744073709551616})", "n.json");
  ASSERT_TRUE(document);
  Errors errors;
  (void)document->root(errors).integer<unsigned long>("a");
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
  const auto document = JsonDocument::parse(text + "]", "wide.json");
  ASSERT_FALSE(document);
  EXPECT_THAT(document.error().at(0).message, HasSubstr("more than 4000000 values"));
}

TEST(JsonHostile, MoreThan64MebibytesAreRefused) {
  const std::string text(kMaxJsonFileBytes + 1, ' ');
  const auto document = JsonDocument::parse(text, "big.json");
  ASSERT_FALSE(document);
  EXPECT_THAT(document.error().at(0).message, HasSubstr("expected at most 67108864"));
}

}  // namespace
}  // namespace bubblesim
