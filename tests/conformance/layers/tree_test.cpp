// The tree as it is, held to the rules. A failure lists every breach.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/layers/rules.hpp"
#include "tests/conformance/layers/standard_headers.hpp"

namespace bubblesim::layers {
namespace {

using ::testing::IsEmpty;

const std::filesystem::path kRoot = BUBBLESIM_SOURCE_DIR;

std::string joined(const Breaches& breaches) {
  std::string text;
  for (const std::string& breach : breaches) text += "\n  " + breach;
  return text;
}

class Tree : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    files_ = read_tree(kRoot, {"sim", "traces", "policies", "capture", "tests"});
  }
  template <class Rule>
  static void expect_kept(Rule rule) {
    ASSERT_FALSE(files_.empty());
    Breaches all;
    for (const SourceFile& file : files_)
      for (std::string& breach : rule(file)) all.push_back(std::move(breach));
    EXPECT_TRUE(all.empty()) << all.size() << " breaches:" << joined(all);
  }
  static inline std::vector<SourceFile> files_;
};

TEST_F(Tree, IncludesFollowTheTableOfRooms) { expect_kept(check_layers); }

TEST_F(Tree, IncludesAreFullPathsToFilesThatExist) {
  std::set<std::string> known;
  for (const SourceFile& file : files_) known.insert(file.path);
  expect_kept([&](const SourceFile& file) { return check_full_paths(file, known); });
}

TEST_F(Tree, HeadersSayWhatTheyAreForAndAreGuarded) { expect_kept(check_header_form); }

TEST_F(Tree, LinesHaveAtMost100Columns) { expect_kept(check_line_length); }

TEST_F(Tree, JsonLibraryComesInThroughOneFile) { expect_kept(check_json); }

TEST_F(Tree, HeadersIncludeWhatTheyNameOfTheStandardLibrary) {
  ASSERT_FALSE(files_.empty());
  const Breaches all = check_standard_includes(files_);
  EXPECT_TRUE(all.empty()) << all.size() << " breaches:" << joined(all);
}

TEST_F(Tree, LibrariesNeitherPrintNorExit) { expect_kept(check_quiet); }

TEST_F(Tree, EverySourceLiesInARoomOfTheTable) {
  expect_kept([](const SourceFile& file) {
    return room_of(file.path) != nullptr || file.path.starts_with("tests/")
               ? Breaches{}
               : Breaches{file.path + ": lies in no room of the table"};
  });
}

TEST_F(Tree, EveryRoomHasAReadme) {
  Breaches missing;
  for (const Room& room : rooms())
    if (std::filesystem::exists(kRoot / room.path / "CMakeLists.txt") &&
        !std::filesystem::exists(kRoot / room.path / "README.md"))
      missing.push_back(room.path + "/README.md is missing");
  EXPECT_THAT(missing, IsEmpty());
}

}  // namespace
}  // namespace bubblesim::layers
