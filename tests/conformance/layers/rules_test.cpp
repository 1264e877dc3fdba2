// The rules find what they are for, in files of two lines.
#include "tests/conformance/layers/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bubblesim::layers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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

}  // namespace
}  // namespace bubblesim::layers
