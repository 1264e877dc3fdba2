// The fast bracket matcher against one that reads byte by byte: where the plain one finds a right
// end, the fast one finds the same, and it never finds an end that is not there.
#include "traces/import/json_scan.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/base/random.hpp"

namespace bubblesim::traces {
namespace {

/// Length of the object or array at text[0]; 0: damaged, too deep, or its end is missing.
std::size_t plain_match(std::string_view text) {
  std::vector<char> open;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      else if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (kJsonBytes[static_cast<unsigned char>(c)] == JsonByte::kBad) return 0;
    if (c == '{' || c == '[') open.push_back(c);
    if (open.size() > kMaxDepth) return 0;
    if (c != '}' && c != ']') continue;
    if (open.back() != (c == '}' ? '{' : '[')) return 0;
    open.pop_back();
    if (open.empty()) return at + 1;
  }
  return 0;
}

void expect_same(const std::string& text) {
  EXPECT_EQ(match_brackets(text), plain_match(text)) << text;
}

TEST(JsonBrackets, a_match_ends_where_the_opened_value_ends) {
  expect_same(R"({"a": [1, {"b": "}]"}], "c": null} , {"d": 1})");
  expect_same("[]");
  expect_same("[1.5e-3, true, NaN]\t]");
}

TEST(JsonBrackets, quotes_and_backslashes_count_at_every_place_of_a_block) {
  for (std::size_t shift = 0; shift < 130; ++shift) {
    const std::string space(shift, ' ');
    expect_same("{" + space + R"("a\"}": "\\", "b\\\"": "\\\\"} ])");
    expect_same("{" + space + R"("a\\": "\" }", "c": "\u007d\\\\\\"}"})");
    expect_same("[" + space + R"("open \\\" string)");
    expect_same("{\"" + space + "\": [\"" + space + "]\", 1]}");
  }
}

TEST(JsonBrackets, damage_is_left_to_the_other_reader) {
  EXPECT_EQ(match_brackets(R"({"a": [1})"), 0U);
  EXPECT_EQ(match_brackets(R"({"a": x})"), 0U);
  EXPECT_EQ(match_brackets(R"({"a": 1/2})"), 0U);
  EXPECT_EQ(match_brackets("{\"a\": \x01}"), 0U);
  EXPECT_EQ(match_brackets("{\"a\": \xc3\xa9}"), 0U);
  EXPECT_EQ(match_brackets(R"({"a": \"b"})"), 0U);
  EXPECT_EQ(match_brackets(R"({"a": 1)"), 0U);
}

TEST(JsonBrackets, nesting_stops_at_the_limit) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  expect_same(nested(kMaxDepth));
  EXPECT_EQ(match_brackets(nested(kMaxDepth + 1)), 0U);
}

TEST(JsonBrackets, random_texts_match_as_byte_by_byte) {
  RandomStream random(7, "json_brackets_test");
  constexpr std::string_view kBytes = "{}[]\"\"\"\\\\:, \n019aetrx/\x80";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = "{";
    const auto length = static_cast<std::size_t>(random.uniform() * 200);
    while (text.size() < length) {
      const auto place = static_cast<std::size_t>(random.uniform() * kBytes.size());
      // Mostly strings, so that many texts go on for several blocks.
      text += random.uniform() < 0.5 ? kBytes[place] : "\"ab c\\\" \\\\\""[text.size() % 11];
    }
    expect_same(text);
  }
}

}  // namespace
}  // namespace bubblesim::traces
