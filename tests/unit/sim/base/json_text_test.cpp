// JSON as text, whatever bytes are in it.
#include <gtest/gtest.h>

#include "sim/base/json.hpp"

namespace bubblesim {
namespace {

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
