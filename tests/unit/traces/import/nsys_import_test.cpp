// What becomes of the tables of an Nsight Systems export.
#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/fault.hpp"
#include "tests/unit/traces/import/nsys_samples.hpp"
#include "traces/import/nsys_database.hpp"
#include "traces/import/nsys_import.hpp"
#include "traces/launch_shapes.hpp"

namespace bubblesim::traces {
namespace {

using namespace sample;
using std::chrono::nanoseconds;

TraceTime at(std::int64_t ns) { return TraceTime{nanoseconds(ns)}; }

TEST(NsysImport, a_kernel_is_tied_to_its_launch) {
  const RankTrace trace = only_rank(small_export());
  ASSERT_EQ(trace.device_ops.size(), 1U);
  ASSERT_EQ(trace.host_calls.size(), 1U);
  const DeviceOp& op = trace.device_ops[0];
  EXPECT_EQ(trace.names[op.name], "gemm");
  EXPECT_EQ(op.start, at(1020));
  EXPECT_EQ(op.duration, nanoseconds(100));
  EXPECT_EQ(op.launch, 0U);
  const LaunchShape& shape = trace.shapes[op.shape];
  EXPECT_EQ(shape.blocks(), 2U);
  EXPECT_EQ(shape.threads_per_block(), 128U);
  EXPECT_EQ(shape.registers_per_thread, 32U);
  EXPECT_EQ(shape.shared_memory_bytes, 1024U);
  EXPECT_EQ(trace.streams[op.stream.index()].system_id, 7U);
  const HostCall& launch = trace.host_calls[0];
  EXPECT_EQ(trace.names[launch.name], "cudaLaunchKernel");
  EXPECT_EQ(launch.kind, HostCallKind::kLaunchKernel);
  EXPECT_EQ(trace.threads[launch.thread.index()].system_id, 101U);
  EXPECT_EQ(trace.provenance.format, "nsys");
  EXPECT_EQ(trace.provenance.note, "process 100, GPU 0");
}

TEST(NsysImport, rows_that_are_there_twice_are_read_once) {
  // Four kernels: one is the small export's over again, two have another stream or launch.
  const RankTrace trace = only_rank(
      small_export() + call(1011, 1015, 6) + kernel(1020, 1120, 5, 100, 0, 8) +
      kernel(1020, 1120, 5) + kernel(1020, 1120, 6, 100, 0, 8));
  EXPECT_EQ(trace.device_ops.size(), 3U);
  EXPECT_EQ(trace.counters.count("nsys_duplicate_rows_dropped"), 1U);
}

TEST(NsysImport, kernels_of_one_graph_may_be_equal) {
  const RankTrace trace = only_rank(kTables + call(1000, 1010, 5, 8) +
                                    kernel(1020, 1120, 5) + kernel(1020, 1120, 5));
  EXPECT_EQ(trace.device_ops.size(), 2U);
  EXPECT_EQ(trace.counters.count("nsys_duplicate_rows_dropped"), 0U);
}

TEST(NsysImport, times_become_absolute) {
  const RankTrace trace = only_rank(
      small_export() + "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);"
                       "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);");
  EXPECT_EQ(trace.device_ops[0].start, at(1700000000000001020));
}

// `nsys export --ts-normalize=true` has added the session's start already; a row before 2006 is
// damage there.
TEST(NsysImport, times_since_1970_stay) {
  for (const std::string session :
       {"", "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);"
            "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);"}) {
    const RankTrace trace = only_rank(
        kStringTable + kKernelTable + session +
        kernel(1700000000000001020, 1700000000000001120, 5) + kernel(10, 20, 6));
    ASSERT_EQ(trace.device_ops.size(), 1U);
    EXPECT_EQ(trace.device_ops[0].start, at(1700000000000001020));
    EXPECT_EQ(trace.counters.count("nsys_session_start_unknown"), 0U);
    EXPECT_EQ(trace.counters.count("nsys_rows_unreadable_dropped"), 1U);
  }
}

TEST(NsysImport, the_gpu_is_that_of_the_process_own_numbering) {
  const RankTrace trace = only_rank(
      small_export() +
      "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, "
      "smCount INTEGER, cuDevice INTEGER, computeMajor INTEGER, computeMinor INTEGER);"
      "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA T4', 16, 40, 0, 7, 5), "
      "(1, 'NVIDIA H100', 80, 132, 1, 9, 0);"
      "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);"
      "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1, 0, 100), (0, 0, 200);");
  EXPECT_EQ(trace.device.name, "NVIDIA H100");
  EXPECT_EQ(trace.device.sm_count, 132U);
  EXPECT_EQ(trace.device.compute_major, 9U);
  EXPECT_EQ(trace.device.memory_bytes, 80U);
}

TEST(NsysImport, copies_say_their_direction_and_bytes) {
  const RankTrace trace = only_rank(
      small_export() + kCopyTable + call(1030, 1035, 6, 7) +
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1200, 1300, 0, 1, 7, 6, " +
      std::to_string(global_pid(100)) + ", 4096, 2, 2, 0);");
  ASSERT_EQ(trace.device_ops.size(), 2U);
  const DeviceOp& copy = trace.device_ops[1];
  EXPECT_EQ(copy.kind, DeviceOpKind::kCopy);
  EXPECT_EQ(copy.direction, CopyDirection::kDeviceToHost);
  EXPECT_EQ(copy.bytes, 4096U);
  EXPECT_EQ(trace.names[copy.name], "Memcpy DtoH (Device -> Pageable)");
}

TEST(NsysImport, a_graph_recorded_as_one_span_has_no_known_shape) {
  const RankTrace trace = only_rank(
      kStringTable + kCallTable + call(1000, 1010, 5, 8) +
      "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, smCount INTEGER);"
      "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA A100', 108);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, "
      "deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, "
      "globalPid INTEGER, graphId INTEGER, graphExecId INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1020, 9020, 0, 1, 7, 5, " +
      std::to_string(global_pid(100)) + ", 31, 32);");
  ASSERT_EQ(trace.device_ops.size(), 1U);
  EXPECT_EQ(trace.names[trace.device_ops[0].name], "CUDA graph 31");
  EXPECT_FALSE(has_known_shape(trace, trace.device_ops[0]));
  EXPECT_EQ(trace.counters.count("launch_shapes_mostly_missing"), 1U);
  EXPECT_EQ(trace.device_ops[0].launch, 0U);
  EXPECT_EQ(trace.counters.count("nsys_graphs_as_one_operation"), 1U);
}

/// A row of the synchronisations, without and with the event's own number.
std::string sync_row(const std::string& values, const std::string& event = "") {
  return "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, "
         "deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, "
         "globalPid INTEGER, syncType INTEGER, eventId INTEGER" +
         std::string(event.empty() ? "" : ", eventSyncId INTEGER") +
         ");INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (" + values + event + ");";
}

// Stream 7 runs a kernel and records an event; stream 8 waits for it, then runs the next.
std::string two_streams(const std::string& sync_type) {
  const std::string pid = std::to_string(global_pid(100));
  return small_export() + call(1100, 1101, 6, 4) + call(1102, 1103, 7, 5) + call(1104, 1105, 8) +
         kernel(1200, 1300, 8, 100, 0, 8) +
         sync_row("1102, 1103, 0, 1, 8, 7, " + pid + ", " + sync_type + ", 3", ", 40") +
         "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (deviceId INTEGER, contextId INTEGER, "
         "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, eventId INTEGER, "
         "eventSyncId INTEGER);"
         "INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (0, 1, 7, 6, " + pid + ", 3, 40);";
}

TEST(NsysImport, a_stream_wait_is_an_edge_whatever_number_the_table_gives_it) {
  for (const std::string type : {"1", "2", "3", "4"}) {
    SCOPED_TRACE("syncType " + type);
    const RankTrace trace = only_rank(two_streams(type));
    ASSERT_EQ(trace.edges.size(), 1U);
    EXPECT_EQ(trace.edges[0].before.index(), 0U);
    EXPECT_EQ(trace.edges[0].after.index(), 1U);
    EXPECT_FALSE(trace.edges[0].inferred);
  }
}

// The row says GPU 0. Where the process's kernel ran on GPU 1, its context says that the stream is
// there.
TEST(NsysImport, synchronisations_name_their_streams_on_the_gpu_of_their_context) {
  for (const auto& [gpu, type] : {std::pair{0, "2"}, {1, "3"}}) {
    const RankTrace trace = only_rank(
        kTables + call(1000, 1010, 5) + kernel(1020, 1120, 5, 100, gpu) + call(1011, 1200, 6, 6) +
        sync_row("1012, 1199, 0, 1, 7, 6, " + std::to_string(global_pid(100)) + ", " + type +
                 ", 4294967295"));
    ASSERT_EQ(trace.host_calls.size(), 2U) << gpu;
    EXPECT_EQ(trace.host_calls[1].kind, HostCallKind::kStreamSync) << gpu;
    EXPECT_EQ(trace.streams.size(), 1U) << gpu;
    EXPECT_EQ(trace.host_calls[1].stream, trace.device_ops[0].stream.value) << gpu;
    EXPECT_EQ(trace.host_calls[1].event, 0U) << gpu;
  }
}

TEST(NsysImport, ranges_and_marks_become_markers) {
  const std::string tid = std::to_string(global_tid(100, 101));
  const RankTrace trace = only_rank(
      small_export() + kNvtxTable +
      "INSERT INTO NVTX_EVENTS (start, end, eventType, text, textId, globalTid) "
      "VALUES (990, 1200, 59, 'iteration 3', NULL, " + tid + "), "
      "(995, 996, 60, NULL, 11, " + tid + "), (997, NULL, 34, 'mark', NULL, " +
      tid + "), (998, NULL, 59, 'open', NULL, " + tid +
      "), (0, NULL, 75, 'NCCL', NULL, " + tid + ");");
  ASSERT_EQ(trace.markers.size(), 3U);
  EXPECT_EQ(trace.markers[0].kind, MarkerKind::kIteration);
  EXPECT_EQ(trace.markers[0].number, 3);
  EXPECT_EQ(trace.markers[0].duration, nanoseconds(210));
  EXPECT_EQ(trace.names[trace.markers[1].name], "registered range");
  EXPECT_EQ(trace.markers[2].duration, nanoseconds(0));
  EXPECT_EQ(trace.counters.count("nsys_nvtx_ranges_open_dropped"), 1U);
  EXPECT_EQ(trace.counters.count("nsys_nvtx_rows_skipped"), 1U);
}

TEST(NsysImport, a_full_launch_queue_is_a_stall) {
  const RankTrace trace = only_rank(
      small_export() +
      "CREATE TABLE CUPTI_ACTIVITY_KIND_OVERHEAD (start INTEGER, end INTEGER, "
      "globalTid INTEGER, correlationId INTEGER, nameId INTEGER, "
      "overheadType INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD VALUES (1002, 1008, " +
      std::to_string(global_tid(100, 101)) + ", 5, 10, 8);");
  ASSERT_EQ(trace.stalls.size(), 1U);
  EXPECT_EQ(trace.stalls[0].kind, StallKind::kQueueFull);
  EXPECT_EQ(trace.stalls[0].duration, nanoseconds(6));
}

TEST(NsysImport, allocations_add_up) {
  const std::string pid = std::to_string(global_pid(100));
  const RankTrace trace = only_rank(
      small_export() +
      "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, "
      "globalPid INTEGER, deviceId INTEGER, bytes INTEGER, memKind INTEGER, "
      "memoryOperationType INTEGER);"
      "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (10, " + pid +
      ", 0, 300, 2, 0), (20, " + pid + ", 0, 50, 2, 0), (30, " + pid +
      ", 0, 300, 2, 1), (15, " + pid + ", 0, 9, 1, 0);");
  ASSERT_EQ(trace.memory.size(), 3U);
  EXPECT_EQ(trace.memory[0].allocated_bytes, 300U);
  EXPECT_EQ(trace.memory[1].allocated_bytes, 350U);
  EXPECT_EQ(trace.memory[2].allocated_bytes, 50U);
  EXPECT_EQ(trace.counters.count("nsys_memory_rows_skipped"), 1U);
}

TEST(NsysImport, stream_priorities_are_signed_and_flags_are_kinds) {
  const RankTrace trace = only_rank(
      small_export() +
      "CREATE TABLE TARGET_INFO_CUDA_STREAM (streamId INTEGER, processId INTEGER, "
      "contextId INTEGER, priority INTEGER, flag INTEGER);"
      "INSERT INTO TARGET_INFO_CUDA_STREAM VALUES (7, 100, 1, 4294967291, 1);"
      "CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, "
      "globalTid INTEGER);"
      "INSERT INTO ThreadNames VALUES (9, 20, " +
      std::to_string(global_tid(100, 101)) + ");");
  EXPECT_EQ(trace.streams[0].priority, -5);
  EXPECT_EQ(trace.streams[0].kind, StreamKind::kBlocking);
  EXPECT_EQ(trace.threads[0].name, "main thread");
}

TEST(NsysImport, columns_and_tables_may_be_absent) {
  const RankTrace trace = only_rank(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (START INTEGER, end INTEGER, "
      "deviceId INTEGER, streamId INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 7);");
  EXPECT_EQ(trace.names[trace.device_ops[0].name], "unnamed");
  EXPECT_EQ(trace.counters.count("nsys_names_missing"), 1U);
  EXPECT_EQ(trace.counters.count("nsys_launch_shapes_missing"), 1U);
  EXPECT_EQ(trace.counters.count("nsys_process_not_recorded"), 1U);
  EXPECT_EQ(trace.counters.count("nsys_session_start_unknown"), 1U);
}

TEST(NsysImport, names_are_found_without_a_key) {
  const RankTrace trace = only_rank(
      "CREATE TABLE StringIds (id INTEGER, value TEXT);"
      "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel');" +
      kKernelTable + kernel(1020, 1120, 5));
  EXPECT_EQ(trace.names[trace.device_ops[0].name], "gemm");
}

TEST(NsysImport, gzip_is_read_by_content) {
  const Export file(small_export());
  const std::filesystem::path packed = file.path().string() + ".gz";
  const std::string bytes = file.bytes();
  gzFile out = gzopen(packed.c_str(), "wb");
  ASSERT_EQ(gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size())),
            static_cast<int>(bytes.size()));
  gzclose(out);
  EXPECT_TRUE(looks_like_sqlite(packed));
  const auto job = must(import_nsys_file(packed));
  EXPECT_EQ(job.ranks[0].device_ops.size(), 1U);
  const auto refused = error_of(nsys::Database::open(packed, 4096));
  EXPECT_NE(refused.message.find("gunzip"), std::string::npos);
  std::filesystem::remove(packed);
}

TEST(NsysImport, a_file_in_write_ahead_mode_is_read_and_left_alone) {
  const Export file("PRAGMA journal_mode=WAL;" + small_export());
  const std::string before = file.bytes();
  EXPECT_EQ(must(import_nsys_file(file.path())).ranks[0].device_ops.size(), 1U);
  EXPECT_EQ(file.bytes(), before);
  EXPECT_FALSE(std::filesystem::exists(file.path().string() + "-shm"));
  must(import_nsys_bytes(before, "wal"));
}

}  // namespace
}  // namespace bubblesim::traces
