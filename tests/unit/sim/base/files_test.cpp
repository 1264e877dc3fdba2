#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/csv_table.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/output_file.hpp"
#include "tests/fault.hpp"

namespace bubblesim {
namespace {

using ::testing::StartsWith;

TEST(input_file, is_read_to_its_last_byte) {
  const auto folder = must(ScratchFolder::make(::testing::TempDir(), "input-file"));
  std::string text = "a\0b\r\n";
  text += std::string(std::size_t{200'000}, 'x');  // more than three blocks of 64 KiB
  const std::string path = folder->path() + "/text";
  ASSERT_TRUE(write_whole_file(path, text));
  EXPECT_EQ(read_text_file(path).value(), text);
}

TEST(input_file, is_read_without_its_byte_order_mark) {
  const auto folder = must(ScratchFolder::make(::testing::TempDir(), "input-file"));
  const std::string path = folder->path() + "/text";
  ASSERT_TRUE(write_whole_file(path, "\xEF\xBB\xBFName,\xEF\xBB\xBF\n"));
  EXPECT_EQ(read_text_file(path).value(), "Name,\xEF\xBB\xBF\n");  // only the first is one
}

TEST(input_file, of_the_kernel_has_no_size_and_is_read) {
  EXPECT_THAT(read_text_file("/proc/self/status").value(), StartsWith("Name:"));
}

TEST(input_file, says_why_it_cannot_be_read) {
  EXPECT_EQ(read_text_file("no/such/file").error().text(),
            "no/such/file: cannot be read: No such file or directory");
  EXPECT_EQ(read_text_file("/proc").error().text(), "/proc: cannot be read: Is a directory");
}

// A file is whole under its name, or is not there.

namespace fs = std::filesystem;
using testing::HasSubstr;

class OutputFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] std::string read(const std::string& name) const {
    return read_text_file(path(name)).value();
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  std::unique_ptr<ScratchFolder> scratch_ =
      must(ScratchFolder::make(::testing::TempDir(), "output"));
  fs::path folder_ = scratch_->path();
};

TEST_F(OutputFileTest, has_its_name_once_it_is_whole) {
  auto file = must(OutputFile::create(path("a.txt")));
  file.stream() << "half";
  EXPECT_FALSE(fs::exists(path("a.txt")));
  EXPECT_TRUE(fs::exists(path("a.txt.partial")));
  file.stream() << " and half";
  ASSERT_TRUE(file.finish());
  EXPECT_EQ(read("a.txt"), "half and half");
  EXPECT_EQ(files(), 1U);
}

TEST_F(OutputFileTest, leaves_what_was_there_until_then) {
  ASSERT_TRUE(write_whole_file(path("a.txt"), "old"));
  {
    auto file = must(OutputFile::create(path("a.txt")));
    file.stream() << "new";
  }
  EXPECT_EQ(read("a.txt"), "old");
  EXPECT_EQ(files(), 1U);
}

// A device is no file that could be renamed; this one is a disk without room.
TEST_F(OutputFileTest, says_that_there_is_no_room) {
  const auto written = error_of(write_whole_file("/dev/full", "text"));
  EXPECT_THAT(written.text(), HasSubstr("/dev/full: cannot be written: No space left"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(OutputFileTest, says_why_it_cannot_be_opened) {
  EXPECT_THAT(write_whole_file(path("no/such/a.txt"), "").error().text(),
              HasSubstr("no/such/a.txt: cannot be written: No such file or directory"));
  EXPECT_THAT(write_whole_file(folder_.string(), "").error().text(),
              HasSubstr("cannot be written: Is a directory"));
  EXPECT_EQ(files(), 0U);
}

// Another user may write to the folder, too, and know the name.
TEST_F(OutputFileTest, a_link_under_the_partial_name_is_not_written_through) {
  ASSERT_TRUE(write_whole_file(path("victim.txt"), "precious"));
  fs::create_symlink("victim.txt", path("a.txt.partial"));
  ASSERT_TRUE(write_whole_file(path("a.txt"), "new"));
  EXPECT_EQ(read("victim.txt"), "precious");
  EXPECT_EQ(read("a.txt"), "new");
  EXPECT_FALSE(fs::is_symlink(path("a.txt")));
}

TEST_F(OutputFileTest, what_a_killed_writer_left_is_replaced) {
  std::ofstream(path("a.txt.partial")) << "half of something longer";
  ASSERT_TRUE(write_whole_file(path("a.txt"), "new"));
  EXPECT_EQ(read("a.txt"), "new");
  EXPECT_EQ(files(), 1U);
}

TEST_F(OutputFileTest, writes_through_a_link) {
  ASSERT_TRUE(write_whole_file(path("target.txt"), "old"));
  fs::create_symlink("target.txt", path("link.txt"));
  ASSERT_TRUE(write_whole_file(path("link.txt"), "new"));
  EXPECT_EQ(read("target.txt"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link.txt")));
}

// Names in the order in which people count.

using Paths = std::vector<std::filesystem::path>;

TEST(NaturalOrder, NumbersInNamesCompareAsNumbers) {
  Paths names{"worker10.json", "worker1.json", "worker2.json", "worker.json", "Worker3.json"};
  std::ranges::sort(names, natural_less);
  EXPECT_EQ(names, (Paths{"Worker3.json", "worker.json", "worker1.json", "worker2.json",
                          "worker10.json"}));
}

TEST(NaturalOrder, NumbersMayHaveAnyLength) {
  EXPECT_TRUE(natural_less("t99999999999999999999998", "t99999999999999999999999"));
  EXPECT_TRUE(natural_less("t99999999999999999999999", "t100000000000000000000000"));
}

TEST(NaturalOrder, LeadingZerosDecideLast) {
  EXPECT_TRUE(natural_less("rank01b", "rank1c"));
  EXPECT_TRUE(natural_less("rank01", "rank1"));
  EXPECT_FALSE(natural_less("rank1", "rank01"));
  EXPECT_FALSE(natural_less("rank1", "rank1"));
}

TEST(NaturalOrder, FoldersCompareBeforeWhatIsInThem) {
  Paths names{"job/rank10/a.json", "job/rank2/b.json", "job/rank2-old/a.json"};
  std::ranges::sort(names, natural_less);
  EXPECT_EQ(names, (Paths{"job/rank2/b.json", "job/rank2-old/a.json", "job/rank10/a.json"}));
}

// Tables of measurements: cells by column name, quotes, faults with their line.

CsvTable table_from(std::string_view text) {
  return must(CsvTable::parse(text, "t.csv"));
}

TEST(CsvTable, ReadsCellsByColumnName) {
  const CsvTable table = table_from("a,b\n1,2.5\r\n3,\n");
  EXPECT_EQ(table.rows(), 2U);
  EXPECT_TRUE(table.has("b"));
  EXPECT_FALSE(table.has("c"));
  EXPECT_EQ(table.text(0, "a"), "1");
  EXPECT_EQ(table.figure(0, "b"), 2.5);
  EXPECT_EQ(table.figure(1, "b"), std::nullopt);
  EXPECT_EQ(table.text(1, "c"), "");
}

TEST(CsvTable, QuotesHoldCommasAndQuotes) {
  const CsvTable table = table_from("name,n\n\"a, \"\"b\"\"\",1\n");
  EXPECT_EQ(table.text(0, "name"), "a, \"b\"");
  EXPECT_EQ(table.figure(0, "n"), 1);
}

TEST(CsvTable, FaultsNameTheLine) {
  EXPECT_THAT(CsvTable::parse("a,b\n1\n", "t.csv").error().text(),
              testing::AllOf(HasSubstr("t.csv"), HasSubstr("line 2"), HasSubstr("1 cells")));
  EXPECT_FALSE(CsvTable::parse("", "t.csv"));
  EXPECT_FALSE(CsvTable::parse("a,b\n", "t.csv"));
  EXPECT_FALSE(CsvTable::read("no/such/file.csv"));
}

TEST(CsvTable, NamesEachColumnOnce) {
  EXPECT_EQ(CsvTable::parse("\njob, hours,x,hours\na,1,2,3\n", "t.csv").error().text(),
            "t.csv: line 2: columns 2 and 4 are both named \"hours\"; expected each name once");
  EXPECT_EQ(table_from("a,b,,\n1,2,,\n").text(0, "b"), "2");  // a spreadsheet's empty columns
}

TEST(CsvTable, WhatIsNoNumberIsNoFigure) {
  const CsvTable table = table_from("a,b\n1x,nan\n-1,\n");
  EXPECT_EQ(table.figure(0, "a"), std::nullopt);
  EXPECT_EQ(table.figure(0, "b"), std::nullopt);
  EXPECT_EQ(table.figure(1, "a"), -1);
}

}  // namespace
}  // namespace bubblesim
