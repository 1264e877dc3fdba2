// Small handmade exports in the form of Nsight Systems: tables with the columns that it writes, and
// rows that tests choose. None of it was recorded.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "tests/fault.hpp"
#include "tests/unit/traces/import/invariants.hpp"
#include "traces/import/nsys_import.hpp"

namespace bubblesim::traces::sample {

/// Nsight Systems' global ids of a process and of a thread in it.
constexpr std::int64_t global_pid(std::int64_t pid) {
  return (std::int64_t{1} << 48U) | (pid << 24U);
}
constexpr std::int64_t global_tid(std::int64_t pid, std::int64_t tid) {
  return global_pid(pid) | tid;
}

inline const std::string kKernelTable =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, "
    "deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, "
    "streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
    "demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, registersPerThread INTEGER, "
    "gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, "
    "blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER);";
inline const std::string kCopyTable =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, "
    "contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, "
    "bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);";
inline const std::string kCallTable =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, "
    "eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, "
    "nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);";
inline const std::string kStringTable =
    "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
    "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel_v7000'), "
    "(3, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)'), "
    "(4, 'cudaEventRecord_v3020'), (5, 'cudaStreamWaitEvent_v3020'), "
    "(6, 'cudaStreamSynchronize_v3020'), (7, 'cudaMemcpyAsync_v3020'), "
    "(8, 'cudaGraphLaunch_v10000'), (9, 'main thread'), (10, 'Command Buffer Full'), "
    "(11, 'registered range'), (12, 'cudaSetDevice_v3020');";
inline const std::string kNvtxTable =
    "CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, "
    "rangeId INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, "
    "domainId INTEGER, jsonTextId INTEGER, jsonText TEXT, binaryData BLOB);";

inline const std::string kTables = kStringTable + kKernelTable + kCallTable;

/// A database file for one test, removed with the object.
class Export {
 public:
  explicit Export(const std::string& sql, const std::string& suffix = "") {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(::testing::TempDir()) /
            (std::string("bubblesim_") + info->test_suite_name() + "_" + info->name() + suffix +
             ".sqlite");
    std::filesystem::remove(path_);
    sqlite3* handle = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &handle), SQLITE_OK);
    // The file need not survive a power cut, so writes are not synchronised.
    sqlite3_exec(handle, "PRAGMA synchronous=OFF", nullptr, nullptr, nullptr);
    char* fault = nullptr;
    EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &fault), SQLITE_OK)
        << (fault == nullptr ? "" : fault);
    sqlite3_free(fault);
    sqlite3_close(handle);
  }
  Export(const Export&) = delete;
  Export& operator=(const Export&) = delete;
  ~Export() { std::filesystem::remove(path_); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

 private:
  std::filesystem::path path_;
};

/// A kernel of 2 x 128 threads with 32 registers and 1 KiB of shared memory.
inline std::string kernel(std::int64_t start, std::int64_t end, std::int64_t correlation,
                          std::int64_t pid = 100, std::int64_t device = 0,
                          std::int64_t stream = 7, std::int64_t name = 1) {
  const auto n = [](std::int64_t value) { return std::to_string(value) + ", "; };
  return "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + n(start) + n(end) + n(device) +
         "1, NULL, " + n(stream) + n(correlation) + n(global_pid(pid)) + n(name) + n(name) +
         "32, 2, 1, 1, 128, 1, 1, 1000, 24);";
}

inline std::string call(std::int64_t start, std::int64_t end, std::int64_t correlation,
                        std::int64_t name = 2, std::int64_t pid = 100, std::int64_t tid = 101) {
  const auto n = [](std::int64_t value) { return std::to_string(value) + ", "; };
  return "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + n(start) + n(end) + "0, " +
         n(global_tid(pid, tid)) + n(correlation) + n(name) + "0);";
}

/// One launch of one kernel: 1000 to 1010 ns on the host, 1020 to 1120 ns on the device.
inline std::string small_export() {
  return kTables + call(1000, 1010, 5) + kernel(1020, 1120, 5);
}

/// The ranks of an export of these rows; each keeps the invariants of imports.
inline JobTrace job_of(const std::string& sql) {
  const Export file(sql);
  JobTrace job = must(import_nsys_file(file.path()));
  for (const RankTrace& rank : job.ranks) EXPECT_EQ(broken_promise(rank), "");
  return job;
}

inline RankTrace only_rank(const std::string& sql) {
  JobTrace job = job_of(sql);
  EXPECT_EQ(job.ranks.size(), 1U);
  return std::move(job.ranks.front());
}

}  // namespace bubblesim::traces::sample
