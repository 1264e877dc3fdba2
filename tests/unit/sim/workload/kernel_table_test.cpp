// Programs from tables of kernels.
#include "sim/workload/kernel_table.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fault.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::workload {
namespace {

using testing::HasSubstr, testing::StartsWith;

const std::string kHeader = "Name,Profile,Memory_footprint,SM_usage,Duration\n";

Result<program::Program> parse(const std::string& rows, Duration launch_gap = us(2)) {
  return parse_kernel_table(kHeader + rows, "t.csv", plain_gpu(), launch_gap);
}

std::string fault(const std::string& text) {
  const auto program = parse_kernel_table(text, "t.csv", plain_gpu(), us(2));
  return program ? "accepted" : program.error().text();
}

// Launches at 0, 2 and 4 us; the kernels of 10, 20 and 5 us follow each other: 10, 30, 35.
TEST(KernelTable, KernelsRunInOrderOnOneStream) {
  const auto program = must(parse("Conv,1,0,3,10000\nBatchNorm,0,0,1,20000\nrest,-1,0,9,5000\n"));
  EXPECT_EQ(replayed(program), (Spans{{0, 10}, {10, 30}, {30, 35}}));
  EXPECT_EQ(microseconds(program.recorded_span), 35);
  EXPECT_EQ(program.names[program.ops[1].name], "BatchNorm");
  EXPECT_TRUE(program.counters.empty());
}

// The GPU needs 4 us for a launch, 1 us between kernels and 3 us to return: 4 to 14, 15 to 35, 38.
TEST(KernelTable, TheDevicesLatenciesHold) {
  hardware::GpuSpec spec = plain_gpu();
  spec.launch_latency = us(4);
  spec.stream_gap = us(1);
  spec.sync_latency = us(3);
  const auto program =
      must(parse_kernel_table(kHeader + "a,1,0,3,10000\nb,1,0,1,20000\n", "t.csv", spec, us(2)));
  const RunRecorder run = run_once(program);
  EXPECT_EQ(run.spans(), (Spans{{4, 14}, {15, 35}}));
  EXPECT_EQ(run.iterations.back(), (std::pair<std::uint32_t, std::int64_t>{1, 38}));
}

TEST(KernelTable, ProfilesAreTheClassAndTheSms) {
  const auto program = parse("a,1,0,3,10\nb,0,0,9,10\nc,-1,0,1.0,10\n");
  ASSERT_TRUE(program);
  const auto& profiles = program->profiles;
  EXPECT_EQ(profiles[0].kernel_class, program::KernelClass::kCompute);
  EXPECT_EQ(profiles[1].kernel_class, program::KernelClass::kMemory);
  EXPECT_EQ(profiles[2].kernel_class, program::KernelClass::kUnknown);
  EXPECT_EQ(profiles[0].blocks, 3U);
  EXPECT_EQ(profiles[1].blocks, 9U);
  EXPECT_EQ(profiles[2].blocks, 1U);
  EXPECT_EQ(profiles[0].residency.blocks_per_sm, 1U);
}

TEST(KernelTable, NamesMayHoldCommas) {
  const auto program = must(parse("void f<int, 4>(a, b),1,0,3,10\ng,,0,0,1,20\n,0,0,1,30\n"));
  EXPECT_EQ(program.names[program.ops[0].name], "void f<int, 4>(a, b)");
  EXPECT_EQ(program.names[program.ops[1].name], "g,");
  EXPECT_EQ(program.names[program.ops[2].name], "");
}

TEST(KernelTable, WhatIsNoRowIsLeftOutAndCounted) {
  for (const auto& [rows, kernels, counter, count] :
       {std::tuple{"a,1,0,3,0\nb,1,0,3,10\nc,1,0,3,0\n", 1U, "kernel_table_rows_without_time", 2U},
        // Carriage returns and blank lines.
        {"a,1,0,3,10\r\n\r\nb,1,0,3,10\r\n", 2U, "kernel_table_last_line_without_end", 0U},
        // A last line without its end may have been cut off in the middle of its last number.
        {"a,1,0,3,10\nb,1,0,3,10", 2U, "kernel_table_last_line_without_end", 1U}}) {
    const auto program = must(parse(rows));
    EXPECT_EQ(program.ops.size(), kernels) << rows;
    EXPECT_EQ(program.counters.count(counter), count) << rows;
  }
}

TEST(KernelTable, AMalformedRowIsAFaultWithItsLine) {
  for (const std::string row :
       {"a", "a,1,0,3", "1,0,3,10", "a,2,0,3,10", "a,-2,0,3,10", "a,x,0,3,10", "a,,0,3,10",
        "a,1.5,0,3,10", "a,1,x,3,10", "a,1,,3,10", "a,1,-5,3,10", "a,1,0,x,10", "a,1,0,-1,10",
        "a,1,0,0,10", "a,1,0,4.5,10",
        "a,1,0,nan,10", "a,1,0,1e9,10", "a,1,0,3,x", "a,1,0,3,", "a,1,0,3,-1", "a,1,0,3,nan",
        "a,1,0,3,inf", "a,1,0,3,1e13", "a,1,0,3,10 ", "a,1,0,3,10,", "a;1;0;3;10"}) {
    EXPECT_THAT(fault(kHeader + "ok,1,0,3,10\n" + row + "\n"),
                StartsWith("t.csv: line 3: found \"" + row + "\", expected Name,Profile,"))
        << row;
  }
}

TEST(KernelTable, AWrongHeaderIsAFaultButForACarriageReturn) {
  EXPECT_EQ(fault("Name,Profile,Memory_footprint,SM_usage,Duration\r\na,1,0,3,10\r\n"), "accepted");

  EXPECT_THAT(fault("Name,Profile\na,1,0,3,10\n"), StartsWith("t.csv: line 1: found \"Name,Pro"));
  EXPECT_THAT(fault("a,1,0,3,10\n"), StartsWith("t.csv: line 1"));
  EXPECT_THAT(fault("\xEF\xBB\xBF" + kHeader + "a,1,0,3,10\n"), StartsWith("t.csv: line 1"));
}

TEST(KernelTable, ATableWithoutKernelsIsAFault) {
  EXPECT_THAT(fault(""), HasSubstr("found no kernel"));
  EXPECT_THAT(fault(kHeader), HasSubstr("found no kernel"));
  EXPECT_THAT(fault(kHeader + "a,1,0,3,0\n"), HasSubstr("found no kernel"));
}

// However much is left, it is a program of the rows that are whole, or a fault; and a row that
// was cut is counted.
TEST(KernelTable, ATableCutAtAnyByteIsAFaultOrCounted) {
  const std::string text = kHeader + "Conv<1, 2>,1,0,49,26688\nBatchNorm,0,0,32,23328\n";
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto program = parse_kernel_table(text.substr(0, length), "t.csv", plain_gpu(), us(2));
    if (!program) {
      EXPECT_EQ(program.error().file, "t.csv");
      continue;
    }
    EXPECT_EQ(program->counters.count("kernel_table_last_line_without_end"),
              text[length - 1] == '\n' ? 0U : 1U)
        << length;
  }
}

TEST(KernelTableFile, AByteOrderMarkIsNotPartOfTheHeader) {
  const std::string path = testing::TempDir() + "/bubblesim_marked_table.csv";
  std::ofstream(path) << "\xEF\xBB\xBF" << kHeader << "a,1,0,3,10\n";
  const auto program = read_kernel_table(path, plain_gpu(), us(2));
  std::filesystem::remove(path);
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ(program->ops.size(), 1U);
}

TEST(KernelTableFile, AFileThatCannotBeReadIsAFault) {
  const auto missing = error_of(read_kernel_table("no/such/table", plain_gpu(), us(2)));
  EXPECT_THAT(missing.text(), StartsWith("no/such/table: cannot be read"));
  EXPECT_FALSE(read_kernel_table(std::filesystem::temp_directory_path(), plain_gpu(), us(2)));
}

struct Published {
  std::string name;
  std::size_t rows;
  double milliseconds;  ///< sum of durations, as the data folder's index has it
};

// Orion's own tables, measured on a V100.
TEST(KernelTableFile, PublishedTablesAreReadInFull) {
  const std::string folder = BUBBLESIM_DATA_DIR "/eth-easl+orion/benchmarking/model_kernels/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  const std::vector<Published> tables{
      {"bert_2_fwd", 572, 48.63},        {"mobilenetv2_32_fb1", 890, 40.48},
      {"mobilenetv2_4_fwd", 152, 2.26},  {"resnet50_32_fb1", 946, 95.28},
      {"resnet50_4_fwd", 175, 6.5},      {"transformer_xl_4_fwd", 459, 16.67}};
  for (const Published& table : tables) {
    const auto program = must(read_kernel_table(folder + table.name, plain_gpu(), us(2)));
    EXPECT_EQ(program.ops.size(), table.rows) << table.name;
    EXPECT_NEAR(to_seconds(program.recorded_span) * 1e3, table.milliseconds, 0.005) << table.name;
    EXPECT_TRUE(program.counters.empty());
  }
}

}  // namespace
}  // namespace bubblesim::workload
