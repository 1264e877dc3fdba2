// Headers include what they name of the standard library: the rule on files of two lines.
#include "tests/conformance/layers/standard_headers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bubblesim::layers {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::filesystem::path kTreeRoot = BUBBLESIM_SOURCE_DIR;

TEST(StandardIncludes, AHeaderThatForgetsOneIsNamed) {
  EXPECT_THAT(check_standard_includes({parse_source("sim/gpu/a.hpp", "\nstd::map<int, int> a;\n")}),
              ElementsAre("sim/gpu/a.hpp:2: uses std::map without <map>"));
}

TEST(StandardIncludes, AHeaderOfTheProjectMayBringThem) {
  const SourceFile first = parse_source("sim/gpu/a.hpp", "#include <map>\n");
  const SourceFile second = parse_source("sim/gpu/b.hpp", "#include \"sim/gpu/a.hpp\"\n");
  const SourceFile third =
      parse_source("sim/gpu/c.hpp", "#include \"sim/gpu/b.hpp\"\nstd::map<int, int> a;\n");
  EXPECT_THAT(check_standard_includes({first, second, third}), IsEmpty());
}

TEST(StandardIncludes, OneOfSeveralSuffices) {
  EXPECT_THAT(check_standard_includes(
                  {parse_source("sim/gpu/a.hpp", "#include <map>\nstd::pair<int, int> a;\n")}),
              IsEmpty());
}

// What is parsed for all headers hides that one of them forgets it, unless it is named here.
TEST(StandardIncludes, WhateverIsParsedForAllHeadersIsHeld) {
  const auto headers = read_tree(kTreeRoot / "tests/conformance/headers", {"."});
  ASSERT_EQ(headers.size(), 1U);
  std::set<std::string> declared;
  for (const auto& [name, header] : standard_names()) declared.emplace(header);
  ASSERT_FALSE(headers.front().includes.empty());
  for (const Include& include : headers.front().includes)
    EXPECT_THAT(declared, Contains(include.path));
}

}  // namespace
}  // namespace bubblesim::layers
