// The rules find what they are for, in files of two lines.
#include <gmock/gmock.h>

#include "tests/conformance/layers/rules.hpp"

namespace bubblesim::layers {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty, ::testing::SizeIs;

const char* const kTable =
    "| room | holds | may include |\n|---|---|---|\n"
    "| `sim/base` | clocks | - |\n"
    "| `traces` | records | base |\n"
    "| `traces/import` | files | base, traces |\n"
    "| `traces/export` | files | base, traces |\n"
    "| `sim/run` | one run | base, traces |\n"
    "| `sim/app` | the command | everything |\n";

Breaches layer_breaches(const char* path, const char* include) {
  const std::string text = "\n#include \"" + std::string(include) + "\"\n";
  return check_layers(parse_source(path, text), read_rooms(kTable));
}

TEST(LayerRules, AnArrowThatTheTableLacksIsNamedWithWhatIsAllowed) {
  EXPECT_THAT(layer_breaches("traces/a.cpp", "sim/run/run.hpp"),
              ElementsAre("traces/a.cpp:2: includes sim/run/run.hpp; traces may include sim/base"));
  EXPECT_THAT(layer_breaches("sim/base/a.cpp", "traces/a.hpp"), SizeIs(1));
}

TEST(LayerRules, OwnRoomAndAllowedRoomsPass) {
  EXPECT_THAT(layer_breaches("traces/import/a.cpp", "traces/trace.hpp"), IsEmpty());
  EXPECT_THAT(layer_breaches("traces/import/a.cpp", "traces/import/b.hpp"), IsEmpty());
  EXPECT_THAT(layer_breaches("sim/app/a.cpp", "sim/run/b.hpp"), IsEmpty());
}

TEST(LayerRules, AFoldersNameStandsForItsRoomsFromOutsideOnly) {
  EXPECT_THAT(layer_breaches("sim/run/a.cpp", "traces/import/b.hpp"), IsEmpty());
  EXPECT_THAT(layer_breaches("traces/export/a.cpp", "traces/import/b.hpp"), SizeIs(1));
  EXPECT_THAT(layer_breaches("traces/a.cpp", "traces/import/b.hpp"), SizeIs(1));
}

TEST(LayerRules, AnIncludeBesideTheFileIsNotAFullPath) {
  const auto file = parse_source("sim/gpu/a.cpp", "#include \"gpu.hpp\"\n");
  EXPECT_THAT(check_full_paths(file, {"sim/gpu/gpu.hpp"}), SizeIs(1));
}

TEST(LayerRules, AHeaderNeedsItsPurposeAndItsGuard) {
  EXPECT_THAT(check_header_form(parse_source("a.hpp", "// Why.\n#pragma once\n")), IsEmpty());
  EXPECT_THAT(check_header_form(parse_source("a.hpp", "int a();\n")), SizeIs(2));
  EXPECT_THAT(check_header_form(parse_source("a.cpp", "int a();\n")), IsEmpty());
}

TEST(LayerRules, ColumnsAreCountedInCharacters) {
  EXPECT_THAT(check_line_length(parse_source("a.cpp", std::string(100, 'x') + "\n")), IsEmpty());
  EXPECT_THAT(check_line_length(parse_source("a.cpp", std::string(101, 'x') + "\n")), SizeIs(1));
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\xc3\xa4";
  EXPECT_THAT(check_line_length(parse_source("a.cpp", umlauts + "\n")), IsEmpty());
}

TEST(LayerRules, JsonComesInThroughOneFileAndNoHeaderOfARoom) {
  const std::string library = "#include <nlohmann/json.hpp>\n";
  const std::string wrapped = "#include \"sim/base/json.hpp\"\n";
  EXPECT_THAT(check_json(parse_source("sim/base/json.hpp", library)), IsEmpty());
  EXPECT_THAT(check_json(parse_source("sim/base/json_fwd.hpp", library)), IsEmpty());
  EXPECT_THAT(check_json(parse_source("sim/run/a.cpp", library)), SizeIs(1));
  EXPECT_THAT(check_json(parse_source("sim/run/a.cpp", wrapped)), IsEmpty());
  EXPECT_THAT(check_json(parse_source("sim/run/a.hpp", wrapped)), SizeIs(1));
  EXPECT_THAT(check_json(parse_source("tests/unit/sim/run/a.hpp", wrapped)), IsEmpty());
}

TEST(LayerRules, LibrariesAreQuietAndProgramsMaySpeak) {
  const std::string text = "void f() { std::cout << 1; }\n";
  EXPECT_THAT(check_quiet(parse_source("sim/run/a.cpp", text)), SizeIs(1));
  EXPECT_THAT(check_quiet(parse_source("sim/app/a.cpp", text)), IsEmpty());
  EXPECT_THAT(check_quiet(parse_source("capture/replay/main.cpp", text)), IsEmpty());
  EXPECT_THAT(check_quiet(parse_source("capture/replay/job_main.cu", text)), IsEmpty());
}

TEST(LayerRules, WordsInCommentsAndLiteralsAreNotCode) {
  const std::string text =
      "// printf(\n/* std::cout\n exit( */\nauto a = \"exit(\"; auto b = R\"x(printf()x\";\n"
      "int c = 1'000'000; snprintf(a, b, c); on_exit_of(c);\n";
  EXPECT_THAT(check_quiet(parse_source("sim/run/a.cpp", text)), IsEmpty());
}

// Headers include what they name of the standard library: the rule on files of two lines.

using ::testing::Contains;

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
