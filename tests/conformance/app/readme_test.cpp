// Every `bubblesim` command that README.md shows runs as written, in the order of the page.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

// Lines of fenced sh blocks that start with "bubblesim "; a backslash at the end joins lines.
std::vector<std::string> commands_of(const std::string& page) {
  std::vector<std::string> commands;
  bool fenced = false;
  bool goes_on = false;
  for (std::string line : lines_of(page)) {
    if (line.starts_with("```")) {
      fenced = !fenced && line == "```sh";
      goes_on = false;
      continue;
    }
    if (!fenced) continue;
    const bool joined = goes_on;
    goes_on = line.ends_with('\\');
    if (goes_on) line.pop_back();
    if (joined && !commands.empty()) {
      commands.back() += line;
    } else if (line.starts_with("bubblesim ")) {
      commands.push_back(line);
    } else {
      goes_on = false;
    }
  }
  return commands;
}

TEST(Readme, CommandsOfAPageAreFoundInItsShellBlocks) {
  EXPECT_EQ(commands_of("bubblesim no\n```sh\n# comment\nbubblesim a\nbubblesim b \\\n  --c\n"
                        "ls\n```\nbubblesim no\n```\nbubblesim no\n```\n```sh\nbubblesim d\n```\n"),
            (std::vector<std::string>{"bubblesim a", "bubblesim b   --c", "bubblesim d"}));
}

TEST(Readme, CommandsRun) {
  const std::filesystem::path page = std::filesystem::path(BUBBLESIM_SOURCE_DIR) / "README.md";
  if (!std::filesystem::exists(page)) GTEST_SKIP() << "no README.md";
  const Workplace place;
  std::filesystem::create_directory(place.path("out"));  // as scripts/demo leaves it
  const std::vector<std::string> commands = commands_of(place.read("README.md"));
  EXPECT_FALSE(commands.empty());
  for (const std::string& command : commands) {
    const Outcome outcome = place.shell(command);
    EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.err;
  }
}

}  // namespace
}  // namespace bubblesim::app_test
