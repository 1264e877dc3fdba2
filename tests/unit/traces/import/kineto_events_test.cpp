// One quirk of Kineto's events a test; the texts are handmade.
#include <gtest/gtest.h>

#include "tests/unit/traces/import/samples.hpp"
#include "traces/import/json_fields.hpp"

namespace bubblesim::traces {
namespace {

using sample::annotation, sample::call, sample::file, sample::kernel, sample::span;

std::int64_t ns(std::string_view text) {
  const auto time = microseconds_to_ns(text);
  EXPECT_TRUE(time.has_value()) << text;
  return time ? time->value : INT64_MIN;
}

TEST(KinetoTimes, digits_become_nanoseconds_without_floating_point) {
  EXPECT_EQ(ns("12"), 12000);
  EXPECT_EQ(ns("12.3"), 12300);
  EXPECT_EQ(ns("-1.5"), -1500);
  EXPECT_EQ(ns("1712195495519689.047"), 1712195495519689047);  // a double is 125 ns off
  EXPECT_EQ(ns("1697665461611339"), 1697665461611339000);
  EXPECT_EQ(ns("-2305843009213693.951"), -2305843009213693951);
  EXPECT_EQ(ns("6322354273271.390"), 6322354273271390);
  EXPECT_EQ(ns("1.5e3"), 1500000);
  EXPECT_EQ(ns("1712195495519689047e-3"), 1712195495519689047);
  EXPECT_EQ(ns("0.0004"), 0);
  EXPECT_EQ(ns("0.0005"), 1);
  EXPECT_EQ(ns("7.0000000000000000000000000000"), 7000);
  EXPECT_EQ(ns("0e400"), 0);
}

TEST(KinetoTimes, hostile_numbers_are_no_times) {
  for (const char* text : {"", "-", "NaN", "Infinity", "1e30", "9223372036854775807", "1.2.3",
                           "1e", "1e99999999999", "0x10", "--1", "null", "true",
                           "2305843009213693.952", "9999999999999999.999", "99999999999999999"}) {
    EXPECT_FALSE(microseconds_to_ns(text).has_value()) << text;
  }
  EXPECT_FALSE(microseconds_to_ns(std::string(1000000, '9')).has_value());
}

TEST(KinetoTimes, base_time_is_added_even_when_it_comes_last) {
  const RankTrace trace =
      imported(file({kernel("1.250")}, "", ", \"baseTimeNanoseconds\": 1759300074000000000"));
  EXPECT_EQ(to_ns(trace.device_ops[0].start), 1759300074000001250);
  EXPECT_EQ(to_ns(trace.device_ops[0].duration), 10500);
}

TEST(KinetoTimes, display_unit_does_not_change_times) {
  const RankTrace trace = imported(file({kernel("2.5")}, "\"displayTimeUnit\": \"ns\","));
  EXPECT_EQ(to_ns(trace.device_ops[0].start), 2500);
}

TEST(KinetoTimes, negative_durations_become_zero) {
  const RankTrace trace =
      imported(file({span("kernel", "k", 0, 7, "3", "-2.5", R"("stream": 7)")}));
  EXPECT_EQ(trace.device_ops[0].duration, Duration::zero());
  EXPECT_EQ(trace.counters.count("kineto_negative_durations_clamped"), 1U);
}

TEST(KinetoTimes, events_out_of_order_are_sorted_ties_in_file_order) {
  const RankTrace trace =
      imported(file({kernel("9", "1", "late"), kernel("3", "2", "first"),
                     kernel("3", "3", "then")}));
  ASSERT_EQ(trace.device_ops.size(), 3U);
  EXPECT_EQ(trace.names[trace.device_ops[0].name], "first");
  EXPECT_EQ(trace.names[trace.device_ops[1].name], "then");
  EXPECT_EQ(trace.names[trace.device_ops[2].name], "late");
  EXPECT_EQ(trace.counters.count("kineto_device_ops_out_of_order"), 1U);
}

TEST(KinetoTimes, overlap_on_one_stream_is_kept) {
  // Programmatic dependent launch: [0, 10.5] and [8, 18.5] on stream 7.
  const RankTrace trace = imported(file({kernel("100", "1"), kernel("108", "2")}));
  EXPECT_GT(trace.device_ops[0].end(), trace.device_ops[1].start);
}

TEST(KinetoEvents, old_category_names_and_string_threads_are_read) {
  // The form of 2020: upper case, "tid": "stream 7", steps as operators, a bare array.
  const RankTrace trace = imported(
      R"json([
  {"ph": "X", "cat": "Operator", "name": "ProfilerStep#2", "pid": 5, "tid": "4093687616",
   "ts": 1, "dur": 100, "args": {}},
  {"ph": "X", "cat": "Runtime", "name": "cudaMemcpyAsync", "pid": 5, "tid": "4093687616",
   "ts": 2, "dur": 3, "args": {"cbid": 41, "correlation": 65460, "external id": 862}},
  {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0,
   "tid": "stream 7", "ts": 4, "dur": 5, "args": {"device": 0, "correlation": 65460, "bytes": 64}},
  {"ph": "X", "cat": "Memset", "name": "Memset (Device)", "pid": 0, "tid": "stream 7", "ts": 10,
   "dur": 1, "args": {"device": 0, "stream": 7, "correlation": 65461, "bytes": 8}},
  {"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 9", "ts": 12, "dur": 1,
   "args": {"device": 0, "correlation": 65462, "grid": [1, 1, 1], "block": [32, 1, 1]}}
])json");
  ASSERT_EQ(trace.device_ops.size(), 3U);
  EXPECT_EQ(trace.device_ops[0].direction, CopyDirection::kHostToDevice);
  EXPECT_EQ(trace.device_ops[0].bytes, 64U);
  EXPECT_EQ(trace.device_ops[0].launch, 0U);
  EXPECT_EQ(trace.device_ops[1].kind, DeviceOpKind::kMemset);
  ASSERT_EQ(trace.streams.size(), 2U);
  EXPECT_EQ(trace.streams[1].system_id, 9U);
  EXPECT_EQ(trace.threads[0].system_id, 4093687616U);
  ASSERT_EQ(trace.markers.size(), 1U);
  EXPECT_EQ(trace.markers[0].kind, MarkerKind::kIteration);
  EXPECT_EQ(trace.markers[0].number, 2);
  EXPECT_EQ(trace.counters.count("kineto_microsecond_resolution"), 1U);
}

TEST(KinetoEvents, amd_handles_and_strings_are_read) {
  const RankTrace trace = imported(file(
      {call("1", "7", "hipLaunchKernel", R"(, "stream": "0x0", "kernel": "k")"),
       call("3", "8", "hipMemcpyWithStream", R"(, "stream": "0x0", "size": "2560", "kind": "1")"),
       span("kernel", "k", 2, 3, "5.1", "1",
            R"("device": 2, "stream": 3, "correlation": 7, "kind": "Dispatch Kernel")")}));
  EXPECT_EQ(trace.host_calls[0].kind, HostCallKind::kLaunchKernel);
  EXPECT_EQ(trace.host_calls[1].kind, HostCallKind::kCopy);
  // The launch's operation tells that handle 0x0 is stream 3: index 0 of the trace's streams.
  EXPECT_EQ(trace.host_calls[1].stream, 0U);
  EXPECT_EQ(trace.streams[0].system_id, 3U);
  EXPECT_EQ(trace.counters.count("kineto_launch_shapes_missing"), 1U);
}

// HIP's extension is given 16,384 work-items: 64 blocks of 256. Old profilers wrote shapes with the
// launch alone; a graph's launch has none.
TEST(KinetoEvents, amd_launches_tell_their_kernels_shapes) {
  const auto amd_kernel = [](const char* ts, const char* correlation, const char* more) {
    return span("kernel", "k", 2, 3, ts, "1",
                std::string(R"("device": 2, "stream": 3, "correlation": )") + correlation + more);
  };
  constexpr const char* kItems = R"(, "grid": [16384, 1, 1], "block": [256, 1, 1])";
  constexpr const char* kBlocks = R"(, "grid": [3, 2, 1], "block": [64, 1, 1])";
  const RankTrace trace = imported(file({call("1", "7", "hipExtModuleLaunchKernel", kItems),
                                         call("2", "8", "hipLaunchKernel", kBlocks),
                                         call("3", "9", "hipGraphLaunch"),
                                         amd_kernel("5", "7", kItems), amd_kernel("7", "8", ""),
                                         amd_kernel("9", "9", "")}));
  std::vector<std::uint64_t> blocks;
  for (const DeviceOp& op : trace.device_ops) blocks.push_back(trace.shapes[op.shape].blocks());
  EXPECT_EQ(blocks, (std::vector<std::uint64_t>{64, 6, 0}));
  EXPECT_EQ(trace.counters.count("kineto_launch_shapes_missing"), 1U);
}

// PyTorch draws a graph's concurrent kernels on lanes, and its own monitor names all copies alike.
TEST(KinetoEvents, the_stream_is_not_the_lane_and_a_copys_kind_is_an_argument) {
  const RankTrace trace = imported(file(
      {kernel("1", "1", "a", R"(, "original_stream": 23)"), kernel("2", "2", "b"),
       span("gpu_memcpy", "Memcpy", 0, 7, "20", "1",
            R"("device": 0, "stream": 7, "correlation": 3, "bytes": 8, "copy kind": "DtoH")")}));
  ASSERT_EQ(trace.device_ops.size(), 3U);
  EXPECT_EQ(trace.streams[trace.device_ops[0].stream.index()].system_id, 23U);
  EXPECT_EQ(trace.streams[trace.device_ops[1].stream.index()].system_id, 7U);
  EXPECT_EQ(trace.device_ops[2].direction, CopyDirection::kDeviceToHost);
}

// Users' ranges are told by name; beside the profiler's own steps theirs are no iterations.
TEST(KinetoEvents, users_ranges_mark_iterations_where_the_profiler_does_not) {
  const auto markers = [](const std::vector<std::string>& ranges) {
    std::vector<std::string> events = ranges;
    events.push_back(kernel("1"));
    std::vector<std::pair<MarkerKind, std::int64_t>> found;
    for (const Marker& marker : imported(file(events)).markers) {
      found.emplace_back(marker.kind, marker.number);
    }
    return found;
  };
  using Markers = std::vector<std::pair<MarkerKind, std::int64_t>>;
  EXPECT_EQ(markers({annotation("1", "9", "iteration 4"), annotation("2", "1", "forward"),
                     annotation("4", "1", "iteration"), annotation("6", "1", "micro-batch 1")}),
            (Markers{{MarkerKind::kIteration, 4},
                     {MarkerKind::kPhase, -1},
                     {MarkerKind::kUser, -1},
                     {MarkerKind::kMicroBatch, 1}}));
  EXPECT_EQ(markers({annotation("1", "9", "ProfilerStep#3"), annotation("2", "1", "step 3")}),
            (Markers{{MarkerKind::kIteration, 3}, {MarkerKind::kUser, -1}}));
}

TEST(KinetoEvents, launch_shapes_are_read_and_shared) {
  const RankTrace trace = imported(file({kernel("1", "1"), kernel("20", "2")}));
  EXPECT_EQ(trace.shapes.size(), 1U);
  const LaunchShape& shape = trace.shapes[trace.device_ops[0].shape];
  EXPECT_EQ(shape.blocks(), 2U);
  EXPECT_EQ(shape.threads_per_block(), 128U);
  EXPECT_EQ(shape.registers_per_thread, 32U);
  EXPECT_EQ(shape.shared_memory_bytes, 1024U);
}

TEST(KinetoEvents, only_device_memory_with_totals_is_sampled) {
  const auto memory = [](const char* args) {
    return std::string(R"({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",
      "pid": 1, "tid": 1, "ts": 4.5, "args": {)") + args + "}}";
  };
  const RankTrace trace = imported(file(
      {kernel("1"), memory(R"("Total Reserved": 200, "Total Allocated": 150, "Device Type": 1)"),
       memory(R"("Total Reserved": 0, "Total Allocated": 8, "Device Type": 0)"),
       memory(R"("Bytes": 4, "Device Type": 1)")}));
  ASSERT_EQ(trace.memory.size(), 1U);
  EXPECT_EQ(trace.memory[0].allocated_bytes, 150U);
  EXPECT_EQ(trace.memory[0].reserved_bytes, 200U);
  EXPECT_EQ(to_ns(trace.memory[0].at), 4500);
  EXPECT_EQ(trace.counters.count("kineto_memory_events_skipped"), 2U);
}

TEST(KinetoEvents, what_is_not_stored_is_counted) {
  const auto without_category = [](std::string event) {
    const std::size_t at = event.find("\"cat\"");
    return event.erase(at, event.find(',', at) + 2 - at);
  };
  expect_counted({
      {"no time", {kernel("1"), kernel("NaN"),
                   R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5,
                   "args": {}})"},
       1, 0, {{"kineto_events_without_time_dropped", 2}}},
      {"zero start and end say that there is no time",
       {kernel("5"), span("kernel", "k", 0, 7, "0", "0", R"("stream": 7)")},
       1, 0, {{"kineto_zero_timestamps_dropped", 1}}},
      {"duplicates",
       {call("1.000"), call("1.000"), kernel("5.000"), kernel("5.000"), kernel("6.000")},
       2, 1, {{"kineto_duplicate_events_dropped", 2}}},
      {"spans without a category",
       {kernel("1.5"), without_category(kernel("30.5", "2")), without_category(call("3", "3"))},
       1, 0, {{"kineto_device_ops_without_category_dropped", 1},
              {"kineto_foreign_events_skipped", 1}}},
      {"foreign kinds",
       {kernel("1"), R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2})",
        R"({"ph": "X", "cat": "python_function", "name": "f", "ts": 1, "dur": 2})",
        R"({"ph": "s", "id": 1, "ts": 1, "cat": "ac2g", "name": "ac2g"})",
        R"({"ph": "f", "id": 1, "ts": 1, "cat": "async_gpu", "name": "x", "bp": "e"})",
        R"({"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#1", "ts": 1,
        "dur": 2})",
        R"({"ph": "X", "cat": "Trace", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 0,
        "dur": 9})",
        R"({"ph": "X", "cat": "weather", "ts": 0, "dur": 9})"},
       1, 0, {{"kineto_cpu_ops_skipped", 1}, {"kineto_python_functions_skipped", 1},
              {"kineto_flows_skipped", 2}, {"kineto_gpu_annotations_skipped", 1},
              {"kineto_profiler_rows_skipped", 1}, {"kineto_foreign_events_skipped", 1}}}});
}

// The launch lasts from 1 to 5; the row from 2 to 4.5 lies in it and names no thread. That at 50
// lies in none, and the third is the profiler's own.
TEST(KinetoEvents, a_full_launch_queue_is_a_stall_of_the_thread_that_launches) {
  const auto overhead = [](std::string_view name, std::string_view ts) {
    return R"({"ph": "X", "cat": "overhead", "name": ")" + std::string(name) +
           R"(", "pid": -1, "tid": 0, "ts": )" + std::string(ts) + R"(, "dur": 2.5})";
  };
  const RankTrace trace = imported(file(
      {call("1"), kernel("20"), overhead("Command Buffer Full", "50"),
       overhead("Command Buffer Full", "2"), overhead("Activity Buffer Request", "2"),
       span("cuda_runtime", "cudaDeviceSynchronize", 100, 102, "1.5", "60",
            R"("correlation": 9)")}));
  ASSERT_EQ(trace.stalls.size(), 1U);
  EXPECT_EQ(trace.stalls[0].kind, StallKind::kQueueFull);
  EXPECT_EQ(to_ns(trace.stalls[0].start), 2000);
  EXPECT_EQ(trace.stalls[0].duration, Duration{2500});
  EXPECT_EQ(trace.stalls[0].thread, trace.host_calls[0].thread);
  EXPECT_EQ(trace.counters.count("kineto_profiler_rows_skipped"), 2U);
}

TEST(KinetoEvents, device_and_threads_are_described) {
  const RankTrace trace = imported(file(
      {call("1"), kernel("2"),
       R"({"ph": "M", "name": "thread_name", "ts": 0, "pid": 100, "tid": 101,
       "args": {"name": "main"}})"},
      R"("deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 85028372480,
         "computeMajor": 9, "computeMinor": 0, "numSms": 132}], "cupti_version": 24,)"));
  EXPECT_EQ(trace.device.name, "NVIDIA H100");
  EXPECT_EQ(trace.device.sm_count, 132U);
  EXPECT_EQ(trace.device.memory_bytes, 85028372480U);
  EXPECT_EQ(trace.threads[0].name, "main");
  EXPECT_EQ(trace.provenance.tool, "kineto schema 1, cupti 24");
}

}  // namespace
}  // namespace bubblesim::traces
