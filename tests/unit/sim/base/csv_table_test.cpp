// Tables of measurements: cells by column name, quotes, faults with their line.
#include "sim/base/csv_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bubblesim {
namespace {

using testing::HasSubstr;

CsvTable table_from(std::string_view text) {
  auto table = CsvTable::parse(text, "t.csv");
  EXPECT_TRUE(table) << table.error().text();
  return *std::move(table);
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
