// Reading measured all-reduce tables.
#include "sim/validate/all_reduce_table.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace bubblesim::validate {
namespace {

std::string write_table(const std::string& name, const std::string& text) {
  const std::string folder = testing::TempDir() + "/all_reduce_tables";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + name) << text;
  return folder + "/" + name;
}

std::string reading_fault(const std::string& text) {
  const auto table = read_all_reduce_table(write_table("bad", text), 8);
  return table ? std::string("no fault") : table.error().text();
}

TEST(AllReduceTable, ColumnsAreFoundByNameAndTheFirstTimeCounts) {
  const auto table = read_all_reduce_table(
      write_table("good", "type,size(B),time(us),busbw(GB/s),time(us)\r\n"
                    "float,1024,3.5,0,9\r\nfloat,2048,4,0,9\r\n"), 4);
  ASSERT_TRUE(table) << table.error().text();
  EXPECT_EQ(table->gpus, 4U);
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_EQ(table->rows[0].bytes, Bytes{1024});
  EXPECT_EQ(table->rows[0].measured, Duration{3500});
}

TEST(AllReduceTable, FaultsNameTheLineAndWhatWasExpected) {
  EXPECT_NE(reading_fault("").find("empty"), std::string::npos);
  EXPECT_NE(reading_fault("size,time\n1,2\n").find("line 1: expected columns size(B)"),
            std::string::npos);
  EXPECT_NE(reading_fault("size(B),time(ns)\n").find("found no row"), std::string::npos);
  EXPECT_NE(reading_fault("size(B),time(ns)\n1024,5\n2048\n").find("line 3"), std::string::npos);
  EXPECT_NE(reading_fault("size(B),time(ns)\n1024,nan\n").find("line 2"), std::string::npos);
  EXPECT_NE(reading_fault("size(B),time(ns)\n1024,-5\n").find("line 2"), std::string::npos);
  EXPECT_NE(reading_fault("size(B),time(ns)\n1024,5\n512,5\n").find("expected ascending sizes"),
            std::string::npos);
  EXPECT_FALSE(read_all_reduce_table("no/such/file", 8));
}

TEST(AllReduceTable, AFolderIsReadByTheGpusInItsNames) {
  const std::string folder = testing::TempDir() + "/all_reduce_folder";
  std::filesystem::create_directories(folder);
  for (const char* name : {"AR_GPU8_LUT", "AR_GPU2_LUT", "README"}) {
    std::ofstream(folder + "/" + name) << "size(B),time(ns)\n1024,5000\n";
  }
  const auto tables = read_all_reduce_folder(folder);
  ASSERT_TRUE(tables) << tables.error().text();
  ASSERT_EQ(tables->size(), 2U);
  EXPECT_EQ(tables->at(0).gpus, 2U);
  EXPECT_EQ(tables->at(1).gpus, 8U);
  EXPECT_FALSE(read_all_reduce_folder("no/such/folder"));
}

}  // namespace
}  // namespace bubblesim::validate
