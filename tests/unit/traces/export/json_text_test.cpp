#include "traces/export/json_text.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "sim/base/json.hpp"

namespace bubblesim::traces {
namespace {

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string microseconds(std::int64_t ns) {
  std::string out;
  append_microseconds(out, ns);
  return out;
}

TEST(JsonText, EveryAsciiLetterIsReadBack) {
  std::string all;
  for (char letter = 0; letter < 127; ++letter) all += letter;
  EXPECT_EQ(Json::parse(json_string(all)), all);
}

TEST(JsonText, Utf8IsKept) {
  const std::string text = "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80";
  EXPECT_EQ(Json::parse(json_string(text)), text);
}

TEST(JsonText, EachByteThatIsNotUtf8IsReplaced) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(Json::parse(json_string("a\xFF\xC3")), "a" + replaced + replaced);
  EXPECT_EQ(Json::parse(json_string("\xC0\xAF")), replaced + replaced);  // overlong "/"
  EXPECT_EQ(Json::parse(json_string("\xED\xA0\x80")), replaced + replaced + replaced);  // surrogate
  EXPECT_EQ(Json::parse(json_string("\xE2\x82")), replaced + replaced);  // cut off
}

TEST(JsonText, MicrosecondsKeepEveryNanosecond) {
  EXPECT_EQ(microseconds(0), "0.000");
  EXPECT_EQ(microseconds(1), "0.001");
  EXPECT_EQ(microseconds(1'234'567), "1234.567");
  EXPECT_EQ(microseconds(-1'500), "-1.500");
  EXPECT_EQ(microseconds(std::numeric_limits<std::int64_t>::min()), "-9223372036854775.808");
}

}  // namespace
}  // namespace bubblesim::traces
