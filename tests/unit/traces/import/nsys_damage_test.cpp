// Files that are no exports, damaged ones, and rows that make no sense.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/fault.hpp"
#include "tests/unit/traces/import/invariants.hpp"
#include "tests/unit/traces/import/nsys_samples.hpp"
#include "traces/import/nsys_import.hpp"

namespace bubblesim::traces {
namespace {

using namespace sample;

std::string fault_of(const std::string& bytes) {
  const auto job = import_nsys_bytes(bytes, "given");
  return job ? "" : job.error().text();
}

void expect_mentions(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(NsysDamage, what_is_no_database_is_refused) {
  expect_mentions(fault_of(""), "is empty");
  expect_mentions(fault_of("{\"traceEvents\": []}"), "is not an SQLite database");
  expect_mentions(fault_of(std::string("SQLite format 3\0", 16)), "is cut");
  EXPECT_FALSE(looks_like_sqlite("/nowhere"));
}

TEST(NsysDamage, a_report_is_refused_with_the_command_that_exports_it) {
  const auto job = error_of(import_nsys_file("folder/report1.nsys-rep"));
  expect_mentions(job.text(),
                  "nsys export --type sqlite --output report1.sqlite report1.nsys-rep");
}

TEST(NsysDamage, a_database_of_something_else_is_refused_by_its_tables) {
  const Export file("CREATE TABLE users (name TEXT); CREATE TABLE orders (id INTEGER);");
  expect_mentions(fault_of(file.bytes()), "its tables are 'users', 'orders'");
  const sample::Export amd("CREATE TABLE rocpd_string_0a1b(id INTEGER, string TEXT);", "_amd");
  expect_mentions(fault_of(amd.bytes()), "is a database of AMD's profiler");
}

TEST(NsysDamage, an_export_without_cuda_is_refused) {
  const Export file(kStringTable + kCallTable + call(1, 2, 3));
  expect_mentions(fault_of(file.bytes()), "without device activity");
}

TEST(NsysDamage, an_export_of_copies_alone_says_that_it_has_no_kernels) {
  const std::string copy =
      kStringTable + kCopyTable +
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1200, 1300, 0, 1, 7, 6, " +
      std::to_string(global_pid(100)) + ", 4096, 2, 2, 0);";
  for (const std::string& kernels : {std::string(), kKernelTable}) {  // absent, and without a row
    const RankTrace trace = only_rank(copy + kernels);
    EXPECT_EQ(trace.device_ops.size(), 1U);
    EXPECT_EQ(trace.counters.count("nsys_kernels_not_in_export"), 1U);
  }
}

TEST(NsysDamage, a_file_that_was_cut_is_refused) {
  const Export file(small_export());
  const std::string bytes = file.bytes();
  expect_mentions(fault_of(bytes.substr(0, bytes.size() - 1)), "is cut: found");
}

TEST(NsysDamage, views_are_not_tables) {
  // A view could run for ever.
  const Export file("CREATE TABLE StringIds (id INTEGER);"
                    "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS "
                    "(SELECT 1 UNION ALL SELECT start + 1 FROM n) SELECT start, start AS end, "
                    "0 AS deviceId, 7 AS streamId FROM n;");
  expect_mentions(fault_of(file.bytes()), "without device activity");
}

TEST(NsysDamage, rows_that_make_no_sense_are_dropped_and_counted) {
  const std::string columns = "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, "
                              "streamId, globalPid) VALUES ";
  std::string rows;
  for (const char* row : {"'soon', 5, 0, 7", "5, 9223372036854775807, 0, 7", "5, 6, -1, 7",
                          "5, 6, 0, NULL", "0, 0, 0, 7", "50, 40, 0, 7"}) {
    rows += columns + "(" + row + ", " + std::to_string(global_pid(100)) + ");";
  }
  const RankTrace trace = only_rank(small_export() + kCopyTable + rows);
  EXPECT_EQ(trace.device_ops.size(), 2U);  // the kernel, and the copy that lasts less than zero
  EXPECT_EQ(trace.counters.count("nsys_rows_unreadable_dropped"), 4U);
  EXPECT_EQ(trace.counters.count("nsys_zero_timestamps_dropped"), 1U);
  EXPECT_EQ(trace.counters.count("nsys_negative_durations_clamped"), 1U);
}

// nsys export --lazy=false writes tables without rows.
TEST(NsysDamage, unusable_kernels_alone_or_none_are_refused) {
  for (const std::string& rows : {kernel(0, 0, 5), std::string()}) {
    const Export file(kStringTable + kKernelTable + rows);
    expect_mentions(fault_of(file.bytes()), "no row of CUPTI_ACTIVITY_KIND_KERNEL has");
  }
}

// 2000 kernels on pages of 512 bytes: some 60 leaves below one or two inner pages.
std::string many_kernels() {
  std::string sql = "PRAGMA page_size=512;" + kStringTable + kKernelTable + "BEGIN;";
  for (int i = 0; i < 2000; ++i) sql += kernel(1000 + 10 * i, 1005 + 10 * i, i + 1);
  return sql + "COMMIT;";
}

TEST(NsysDamage, a_damaged_page_loses_rows_and_is_counted) {
  const Export file(many_kernels());
  std::string bytes = file.bytes();
  const std::size_t page = bytes.size() / 512 / 2 * 512;
  for (std::size_t i = 0; i < 512; ++i) bytes[page + i] = '\xff';
  const auto job = must(import_nsys_bytes(bytes, "given"));
  EXPECT_EQ(broken_promise(job.ranks[0]), "");
  EXPECT_LT(job.ranks[0].device_ops.size(), 2000U);
  EXPECT_GT(job.ranks[0].device_ops.size(), 0U);
  EXPECT_GE(job.ranks[0].counters.count("nsys_tables_damaged"), 1U);
}

TEST(NsysDamage, pages_that_refer_to_one_leaf_again_and_again_end) {
  const Export file(many_kernels());
  std::string bytes = file.bytes();
  // Every inner page of a table (first byte 5): all its children become its first child.
  for (std::size_t page = 512; page + 512 <= bytes.size(); page += 512) {
    if (bytes[page] != 5) continue;
    const auto cells = static_cast<std::size_t>(static_cast<unsigned char>(bytes[page + 3]) * 256 +
                                                static_cast<unsigned char>(bytes[page + 4]));
    const auto cell = [&](std::size_t i) {
      return page + static_cast<std::size_t>(
                        static_cast<unsigned char>(bytes[page + 12 + 2 * i]) * 256 +
                        static_cast<unsigned char>(bytes[page + 13 + 2 * i]));
    };
    for (std::size_t i = 1; i < cells; ++i) {
      for (std::size_t k = 0; k < 4; ++k) bytes[cell(i) + k] = bytes[cell(0) + k];
    }
  }
  const auto job = import_nsys_bytes(bytes, "given");
  if (!job) return;
  EXPECT_EQ(broken_promise(job->ranks[0]), "");
  EXPECT_LE(job->ranks[0].device_ops.size(), bytes.size() / 8);
}

TEST(NsysDamage, names_that_are_not_utf8_are_repaired) {
  const RankTrace trace = only_rank(
      "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
      "INSERT INTO StringIds VALUES (1, CAST(x'67ff' AS TEXT));" +
      kKernelTable + kernel(1020, 1120, 5));
  EXPECT_EQ(trace.names[trace.device_ops[0].name], "g\xEF\xBF\xBD");
  EXPECT_EQ(trace.counters.count("nsys_names_not_utf8"), 1U);
}

TEST(NsysDamage, paths_with_odd_characters_are_opened) {
  const Export file(small_export(), " ?mode=x#%41");
  EXPECT_TRUE(import_nsys_file(file.path()).has_value());
}

// Real exports of the data folder against figures that SQL gives; skipped where it is absent.

namespace fs = std::filesystem;

const fs::path kData = BUBBLESIM_DATA_DIR;

struct Figures {
  std::size_t kernels = 0;
  std::size_t copies = 0;
  std::size_t memsets = 0;
  std::size_t with_launch = 0;
  std::int64_t busy_ns = 0;  ///< sum of durations of kernels
};

Figures figures_of(const RankTrace& trace) {
  Figures out;
  for (const DeviceOp& op : trace.device_ops) {
    out.kernels += op.kind == DeviceOpKind::kKernel ? 1 : 0;
    out.copies += op.kind == DeviceOpKind::kCopy ? 1 : 0;
    out.memsets += op.kind == DeviceOpKind::kMemset ? 1 : 0;
    out.with_launch += op.launch != kNone ? 1 : 0;
    if (op.kind == DeviceOpKind::kKernel) out.busy_ns += to_ns(op.duration);
  }
  return out;
}

RankTrace read(const fs::path& path) {
  JobTrace job = must(import_nsys_file(path));
  EXPECT_EQ(job.ranks.size(), 1U);
  EXPECT_EQ(broken_promise(job.ranks[0]), "");
  return std::move(job.ranks[0]);
}

// Schema 3.16: one process of NVIDIA/Fuser on an H200; NVTX ranges, driver calls.
TEST(NsysData, a_run_on_an_h200_agrees_with_sql) {
  const fs::path path = kData / "NVIDIA+Fuser/report2.e7fc719.sqlite.gz";
  if (!fs::exists(path)) GTEST_SKIP() << "no " << path;
  const RankTrace trace = read(path);
  const Figures got = figures_of(trace);
  EXPECT_EQ(got.kernels, 19U);
  EXPECT_EQ(got.copies, 1U);
  EXPECT_EQ(got.memsets, 1U);
  EXPECT_EQ(got.with_launch, 21U);
  EXPECT_EQ(got.busy_ns, 390428);
  EXPECT_EQ(trace.host_calls.size(), 968U);
  EXPECT_EQ(trace.markers.size(), 652U);
  EXPECT_EQ(trace.device.name, "NVIDIA H200");
  EXPECT_EQ(trace.device.sm_count, 132U);
  EXPECT_EQ(trace.provenance.tool, "Nsight Systems 2024.6.2.25, schema 3.16.1");
  EXPECT_EQ(trace.provenance.note, "process 30571 (./bin/test_matmul), GPU 0");
  EXPECT_EQ(to_ns(trace.device_ops[0].start), 1733878431540588992 + 784431748);
}

// Schema 3.13: CloverLeaf on an A100; every kernel is followed by a cudaDeviceSynchronize.
TEST(NsysData, cloverleaf_agrees_with_sql) {
  const fs::path path = kData / "hpcgroup+pipit/pipit/tests/data/cloverleaf-nsys" /
                        "perlmutter-cloverleaf-cuda.sqlite.gz";
  if (!fs::exists(path)) GTEST_SKIP() << "no " << path;
  const RankTrace trace = read(path);
  const Figures got = figures_of(trace);
  EXPECT_EQ(got.kernels, 1312U);
  EXPECT_EQ(got.copies, 279U);
  EXPECT_EQ(got.with_launch, 1591U);
  EXPECT_EQ(got.busy_ns, 294404540);
  EXPECT_EQ(trace.host_calls.size(), 3048U);
  EXPECT_EQ(trace.device.name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(trace.rank, 0U);
  EXPECT_EQ(trace.counters.count("nsys_ranks_from_environment"), 1U);
  std::map<HostCallKind, std::size_t> calls;
  for (const HostCall& call : trace.host_calls) ++calls[call.kind];
  EXPECT_EQ(calls[HostCallKind::kDeviceSync], 1312U);
  EXPECT_EQ(calls[HostCallKind::kLaunchKernel], 1312U);
  EXPECT_EQ(calls[HostCallKind::kCopy], 279U);
}

}  // namespace
}  // namespace bubblesim::traces
