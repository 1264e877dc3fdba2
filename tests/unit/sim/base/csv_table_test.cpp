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
  EXPECT_EQ(*table.number(0, "b"), 2.5);
  EXPECT_EQ(*table.number(1, "b"), std::nullopt);
  EXPECT_EQ(table.text(1, "c"), "");
  EXPECT_EQ(*table.count(1, "a"), 3U);
}

TEST(CsvTable, QuotesHoldCommasAndQuotes) {
  const CsvTable table = table_from("name,n\n\"a, \"\"b\"\"\",1\n");
  EXPECT_EQ(table.text(0, "name"), "a, \"b\"");
  EXPECT_EQ(*table.count(0, "n"), 1U);
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
  const auto first = CsvTable::parse("a,t,t\n1,2,3\n", "t.csv", RepeatedColumn::kFirstCounts);
  EXPECT_EQ(first->text(0, "t"), "2");
  EXPECT_EQ(table_from("a,b,,\n1,2,,\n").text(0, "b"), "2");  // a spreadsheet's empty columns
}

TEST(CsvTable, WhatIsNoNumberIsAFault) {
  const CsvTable table = table_from("a,b\n1x,nan\n-1,0\n2.5,\n");
  EXPECT_THAT(table.number(0, "a").error().text(), HasSubstr("1x"));
  EXPECT_FALSE(table.number(0, "b"));
  EXPECT_FALSE(table.count(1, "a"));
  EXPECT_FALSE(table.count(1, "b"));
  EXPECT_FALSE(table.count(2, "a"));
  EXPECT_FALSE(table.count(2, "b"));
}

}  // namespace
}  // namespace bubblesim
