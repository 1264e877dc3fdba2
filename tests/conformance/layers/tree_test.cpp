// The tree as it is, held to the rules. A failure lists every breach.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "sim/base/input_file.hpp"
#include "tests/conformance/layers/rules.hpp"

namespace bubblesim::layers {
namespace {

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
    rooms_ = read_rooms(read_text_file(kRoot / "sim/README.md").value_or(""));
  }
  template <class Rule>
  static void expect_kept(Rule rule) {
    ASSERT_FALSE(files_.empty());
    Breaches all;
    for (const SourceFile& file : files_)
      for (std::string& breach : rule(file)) all.push_back(std::move(breach));
    EXPECT_TRUE(all.empty()) << all.size() << " breaches:" << joined(all);
  }
  static const Room* room_named(const std::string& path) {
    const auto is_named = [&](const Room& room) { return room.path == path; };
    const auto found = std::find_if(rooms_.begin(), rooms_.end(), is_named);
    return found == rooms_.end() ? nullptr : &*found;
  }
  static inline std::vector<SourceFile> files_;
  static inline Rooms rooms_;
};

TEST_F(Tree, IncludesFollowTheTableOfRooms) {
  expect_kept([](const SourceFile& file) { return check_layers(file, rooms_); });
}

TEST_F(Tree, RoomsIncludeOneAnotherInNoCircle) {
  std::set<std::string> settled;
  const auto is_settled = [&](const Room& room) {
    return std::all_of(rooms_.begin(), rooms_.end(), [&](const Room& target) {
      return target.path == room.path || !may_include(room, target) ||
             settled.contains(target.path);
    });
  };
  for (std::size_t round = 0; round < rooms_.size(); ++round)
    for (const Room& room : rooms_)
      if (is_settled(room)) settled.insert(room.path);
  for (const Room& room : rooms_) EXPECT_TRUE(settled.contains(room.path)) << room.path;
}

TEST_F(Tree, TheTableOfRoomsNamesRoomsThatExist) {
  ASSERT_GT(rooms_.size(), 50U);
  for (const Room& room : rooms_) {
    EXPECT_TRUE(std::filesystem::is_directory(kRoot / room.path)) << room.path;
    for (const std::string& name : room.may_include)
      EXPECT_TRUE(name == "capture" || room_named(name) != nullptr)
          << room.path << " may include " << name;
  }
}

TEST_F(Tree, FoldersOfMoreThan2000LinesAreRooms) {
  std::map<std::string, std::size_t> lines;
  for (const SourceFile& file : files_)
    if (!file.path.starts_with("tests/"))
      lines[std::filesystem::path(file.path).parent_path().string()] += file.lines.size();
  for (const auto& [folder, count] : lines)
    EXPECT_TRUE(count <= 2000 || room_named(folder) != nullptr) << folder << ": " << count;
}

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

TEST_F(Tree, CountersAreForReadersAndNoCodeDecidesByThem) {
  // But where a file is read: it keeps some facts as counters.
  const std::set<std::string> read{"sim/run/load_trace.cpp", "sim/store/run_record.cpp",
                                   "traces/align.cpp", "traces/trace_origin.hpp"};
  expect_kept([&](const SourceFile& file) {
    Breaches found;
    if (file.path.starts_with("tests/") || read.contains(file.path)) return found;
    for (const std::string& line : file.code) {
      const std::size_t at = line.find("counters.count(");
      if (at == std::string::npos || line.find_first_of("<>=!?", at) == std::string::npos) continue;
      found.push_back(file.path + ":" + line);
    }
    return found;
  });
}

TEST_F(Tree, EverySourceLiesInARoomOfTheTable) {
  expect_kept([](const SourceFile& file) {
    return room_of(rooms_, file.path) != nullptr || file.path.starts_with("tests/")
               ? Breaches{}
               : Breaches{file.path + ": lies in no room of the table"};
  });
}

/// Whether the room has a page of its own, or a row in that of a folder around it.
bool is_described(const std::filesystem::path& room) {
  if (std::filesystem::exists(kRoot / room / "README.md")) return true;
  for (auto folder = room.parent_path(); !folder.empty(); folder = folder.parent_path())
    if (read_text_file(kRoot / folder / "README.md").value_or("")
            .find("`" + room.lexically_relative(folder).string() + "/`") != std::string::npos)
      return true;
  return false;
}

TEST_F(Tree, EveryRoomIsDescribedInAReadme) {
  for (const Room& room : rooms_) EXPECT_TRUE(is_described(room.path)) << room.path;
}

}  // namespace
}  // namespace bubblesim::layers
