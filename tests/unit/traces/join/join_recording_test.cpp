// Recordings of a few records, written out of order, whose timeline can be told by hand.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "traces/join/join_recording.hpp"
#include "traces/names/collective_names.hpp"

namespace bubblesim::traces {
namespace {

TraceTime at(std::int64_t ns) { return TraceTime{Duration{ns}}; }

/// A rank with two threads and two streams.
class JoinRecording : public ::testing::Test {
 protected:
  JoinRecording() {
    trace.threads = {{100, "main"}, {101, "autograd"}};
    trace.streams = {{7, 0, 0}, {20, 0, 0}};
    trace.shapes.intern(LaunchShape{});  // of every kernel: one block of one thread
    trace.provenance.format = kRecordingFormat;
  }

  void call(std::int64_t start, std::int64_t end, std::uint64_t correlation, HostCallKind kind,
            std::uint32_t thread = 0) {
    trace.host_calls.push_back({.start = at(start), .duration = Duration{end - start},
                                .correlation = correlation, .name = trace.names.intern("call"),
                                .thread = ThreadId{thread}, .kind = kind});
  }
  void launch(std::int64_t start, std::int64_t end, std::uint64_t correlation,
              std::uint32_t thread = 0) {
    call(start, end, correlation, HostCallKind::kLaunchKernel, thread);
  }
  void op(std::int64_t start, std::int64_t end, std::uint64_t correlation, std::uint32_t stream,
          const std::string& name = "gemm") {
    trace.device_ops.push_back({.start = at(start), .duration = Duration{end - start},
                                .correlation = correlation, .name = trace.names.intern(name),
                                .stream = StreamId{stream}});
  }
  void note(std::int64_t start, CollectiveKind kind, std::uint64_t bytes, std::uint64_t sequence,
            CollectiveSource source = CollectiveSource::kNcclProfiler, std::uint32_t thread = 0) {
    trace.notes.push_back({at(start), Duration{}, ThreadId{thread}, source,
                           static_cast<std::uint32_t>(trace.collectives.size())});
    trace.collectives.push_back({kind, bytes, trace.names.intern("dp"), 8, {}, sequence, true});
  }
  [[nodiscard]] std::uint64_t count(std::string_view name) const {
    return trace.counters.count(name);
  }

  RankTrace trace;
};

TEST_F(JoinRecording, records_are_sorted_and_operations_find_their_launches) {
  op(500, 600, 2, 0), op(200, 300, 1, 0), launch(150, 160, 2), launch(100, 110, 1);
  join_recording(trace);
  EXPECT_EQ(trace.host_calls[0].correlation, 1U);
  EXPECT_EQ(trace.device_ops[0].correlation, 1U);
  EXPECT_EQ(trace.device_ops[0].launch, 0U);
  EXPECT_EQ(trace.device_ops[1].launch, 1U);
  EXPECT_FALSE(is_recording(trace));
  EXPECT_TRUE(trace.counters.empty());
}

TEST_F(JoinRecording, operations_and_launches_without_partner_are_counted) {
  op(200, 300, 1, 0), launch(400, 410, 2);
  join_recording(trace);
  EXPECT_EQ(trace.device_ops[0].launch, kNone);
  EXPECT_EQ(count("join_device_ops_without_launch"), 1U);
  EXPECT_EQ(count("join_launches_without_device_op"), 1U);
}

// One starts 1 ms before its launch at 5 s, another 199 us before. The second edge remains.
TEST_F(JoinRecording, an_operation_that_starts_long_before_its_launch_is_dropped) {
  const std::int64_t base = 5'000'000'000;
  for (std::int64_t i = 0; i < 3; ++i) {
    launch(base + 10 * i, base + 10 * i + 5, static_cast<std::uint64_t>(i + 1));
  }
  op(base - 1'000'000, base - 999'000, 2, 0), op(base - 199'000, base, 3, 1);
  op(base + 8, base + 100, 1, 0);
  trace.edges = {{DeviceOpId{0}, DeviceOpId{2}}, {DeviceOpId{1}, DeviceOpId{2}}};
  join_recording(trace);
  ASSERT_EQ(trace.device_ops.size(), 2U);
  EXPECT_EQ(trace.device_ops[0].correlation, 3U);
  EXPECT_EQ(trace.device_ops[1].correlation, 1U);
  ASSERT_EQ(trace.edges.size(), 1U);
  EXPECT_EQ(trace.edges[0].before.value, 0U);
  EXPECT_EQ(trace.edges[0].after.value, 1U);
  EXPECT_EQ(count("join_device_ops_before_launch_dropped"), 1U);
}

// Clocks that are a second apart: all start before their launches.
TEST_F(JoinRecording, operations_that_all_start_before_their_launches_are_kept) {
  launch(1'000'000'000, 1'000'000'005, 1), launch(1'000'000'010, 1'000'000'015, 2);
  op(100, 200, 1, 0), op(200, 300, 2, 0);
  join_recording(trace);
  EXPECT_EQ(trace.device_ops.size(), 2U);
  EXPECT_EQ(count("join_device_ops_before_launch"), 2U);
}

// The device was synchronised until 300: what ends at 1 ms, launched before, is not true. What was
// launched after it may end then.
TEST_F(JoinRecording, an_operation_that_ends_long_after_a_wait_for_it_is_dropped) {
  launch(100, 110, 1), launch(120, 130, 2);
  call(140, 300, 3, HostCallKind::kDeviceSync), launch(310, 320, 4);
  op(150, 200, 1, 0), op(200, 1'000'000, 2, 0), op(330, 1'000'000, 4, 1);
  join_recording(trace);
  ASSERT_EQ(trace.device_ops.size(), 2U);
  EXPECT_EQ(trace.device_ops[0].correlation, 1U);
  EXPECT_EQ(trace.device_ops[1].correlation, 4U);
  EXPECT_EQ(count("join_device_ops_after_wait_dropped"), 1U);
}

TEST_F(JoinRecording, the_operations_of_a_graph_share_its_launch) {
  call(100, 110, 5, HostCallKind::kLaunchGraph);
  op(200, 210, 5, 0), op(210, 220, 5, 1), op(220, 230, 5, 0);
  join_recording(trace);
  for (const DeviceOp& device_op : trace.device_ops) EXPECT_EQ(device_op.launch, 0U);
  EXPECT_EQ(count("join_device_ops_of_graphs"), 3U);
}

TEST_F(JoinRecording, the_drivers_call_within_the_runtimes_is_one_call) {
  launch(102, 108, 5);  // cuLaunchKernel
  launch(100, 110, 5);  // cudaLaunchKernel around it
  launch(102, 108, 6, 1), op(200, 210, 5, 0);
  join_recording(trace);
  ASSERT_EQ(trace.host_calls.size(), 2U);
  EXPECT_EQ(trace.host_calls[0].duration, Duration{10});
  EXPECT_EQ(count("join_nested_calls_merged"), 1U);
}

TEST_F(JoinRecording, a_streams_wait_becomes_an_edge_between_the_operations_around_it) {
  launch(100, 110, 1), call(120, 125, 2, HostCallKind::kEventRecord);
  launch(130, 135, 3);   // on stream 0 after the record: not waited for
  call(140, 145, 4, HostCallKind::kStreamWaitEvent), launch(150, 160, 5);
  op(200, 300, 1, 0), op(300, 400, 3, 0), op(310, 320, 5, 1);
  trace.syncs = {{at(145), 4, HostCallKind::kStreamWaitEvent, 1, 77},
                 {at(125), 2, HostCallKind::kEventRecord, 0, 77}};
  join_recording(trace);
  ASSERT_EQ(trace.edges.size(), 1U);
  EXPECT_EQ(trace.edges[0].before, DeviceOpId{0});
  EXPECT_EQ(trace.edges[0].after, DeviceOpId{2});
  EXPECT_EQ(trace.host_calls[3].stream, 1U);
  EXPECT_EQ(trace.host_calls[3].event, 77U);
  EXPECT_TRUE(trace.syncs.empty());
}

TEST_F(JoinRecording, an_event_that_is_recorded_again_means_its_last_record_before_the_wait) {
  launch(100, 110, 1), call(120, 125, 2, HostCallKind::kEventRecord), launch(130, 135, 3);
  call(136, 137, 4, HostCallKind::kEventRecord), call(140, 145, 5, HostCallKind::kStreamWaitEvent);
  launch(150, 160, 6), call(170, 175, 7, HostCallKind::kEventRecord);
  op(200, 300, 1, 0), op(300, 400, 3, 0), op(410, 420, 6, 1);
  trace.syncs = {{at(120), 2, HostCallKind::kEventRecord, 0, 9},
                 {at(136), 4, HostCallKind::kEventRecord, 0, 9},
                 {at(170), 7, HostCallKind::kEventRecord, 0, 9},
                 {at(140), 5, HostCallKind::kStreamWaitEvent, 1, 9}};
  join_recording(trace);
  ASSERT_EQ(trace.edges.size(), 1U);
  EXPECT_EQ(trace.edges[0].before, DeviceOpId{1});
}

// Stream 1 waits for stream 0 and records an event at once, behind the wait of an operation of
// its own or none; stream 2 waits for that: for the operation of stream 0, too.
TEST_F(JoinRecording, an_event_recorded_behind_a_wait_carries_it_on) {
  trace.streams.push_back({21, 0, 0});
  launch(100, 105, 1);     // on stream 0
  launch(110, 115, 2);     // on stream 1
  call(120, 125, 3, HostCallKind::kEventRecord);      // on stream 0
  call(130, 135, 4, HostCallKind::kStreamWaitEvent);  // of stream 1
  call(140, 145, 5, HostCallKind::kEventRecord);      // on stream 1
  call(150, 155, 6, HostCallKind::kStreamWaitEvent);  // of stream 2
  launch(160, 165, 7);     // on stream 2
  launch(170, 175, 8);     // on stream 1: it ends the wait
  call(180, 185, 9, HostCallKind::kEventRecord);      // on stream 1
  call(190, 195, 10, HostCallKind::kStreamWaitEvent); // of stream 2
  launch(200, 205, 11);    // on stream 2
  op(200, 300, 1, 0), op(210, 220, 2, 1), op(310, 320, 7, 2), op(311, 330, 8, 1);
  op(340, 350, 11, 2);
  trace.syncs = {{at(120), 3, HostCallKind::kEventRecord, 0, 77},
                 {at(130), 4, HostCallKind::kStreamWaitEvent, 1, 77},
                 {at(140), 5, HostCallKind::kEventRecord, 1, 78},
                 {at(150), 6, HostCallKind::kStreamWaitEvent, 2, 78},
                 {at(180), 9, HostCallKind::kEventRecord, 1, 79},
                 {at(190), 10, HostCallKind::kStreamWaitEvent, 2, 79}};
  join_recording(trace);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (const Edge& edge : trace.edges) edges.emplace_back(edge.before.value, edge.after.value);
  EXPECT_EQ(edges, (std::vector<std::pair<std::uint32_t, std::uint32_t>>{
                       {0, 3}, {0, 2}, {1, 2}, {3, 4}}));
}

TEST_F(JoinRecording, waits_and_syncs_whose_partner_is_outside_are_counted) {
  call(140, 145, 4, HostCallKind::kStreamWaitEvent);
  trace.syncs = {{at(145), 4, HostCallKind::kStreamWaitEvent, 1, 77},
                 {at(145), 99, HostCallKind::kStreamSync, 1, 0}};
  join_recording(trace);
  EXPECT_EQ(count("join_stream_waits_without_record"), 1U);
  EXPECT_EQ(count("join_syncs_without_call"), 1U);
}

TEST_F(JoinRecording, an_announced_collective_is_that_of_the_next_launch_of_its_thread) {
  note(90, CollectiveKind::kAllReduce, 4096, 11), launch(100, 110, 1);
  note(95, CollectiveKind::kAllGather, 512, 3, CollectiveSource::kNcclProfiler, 1);
  launch(105, 115, 2, 1), op(200, 300, 2, 0, "ncclDevKernel_AllGather_RING_LL(x)");
  op(210, 310, 1, 1, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)");
  join_recording(trace);
  ASSERT_EQ(trace.collectives.size(), 2U);
  const Collective& gather = trace.collectives[trace.device_ops[0].collective];
  EXPECT_EQ(gather.kind, CollectiveKind::kAllGather);
  EXPECT_EQ(gather.bytes, 512U);
  EXPECT_EQ(gather.sequence, 3U);
  const Collective& reduce = trace.collectives[trace.device_ops[1].collective];
  EXPECT_EQ(reduce.bytes, 4096U);
  EXPECT_TRUE(reduce.sequence_recorded);
  EXPECT_TRUE(trace.notes.empty());
  EXPECT_TRUE(trace.counters.empty());
}

TEST_F(JoinRecording, grouped_collectives_add_their_bytes) {
  note(90, CollectiveKind::kAllReduce, 100, 0), note(91, CollectiveKind::kAllReduce, 20, 1);
  launch(100, 110, 1), op(200, 300, 1, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)");
  join_recording(trace);
  EXPECT_EQ(trace.collectives.at(0).bytes, 120U);
  EXPECT_EQ(count("join_collective_notes_grouped"), 1U);
}

// Of a communicator of eight; its ranks 3 and 5.
// One ncclGroup over two communicators: 100 bytes of the first, 20 of the second.
TEST_F(JoinRecording, a_group_over_two_communicators_gives_each_kernel_its_own) {
  note(90, CollectiveKind::kAllReduce, 100, 0), note(91, CollectiveKind::kAllReduce, 20, 0);
  trace.collectives.back().group = trace.names.intern("tp");
  launch(100, 101, 1), launch(102, 103, 2);
  op(200, 300, 1, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  op(200, 300, 2, 1, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  join_recording(trace);
  ASSERT_EQ(trace.collectives.size(), 2U);
  EXPECT_EQ(trace.collectives[0].bytes, 100U);
  EXPECT_EQ(trace.names[trace.collectives[0].group], "dp");
  EXPECT_EQ(trace.collectives[1].bytes, 20U);
  EXPECT_EQ(trace.names[trace.collectives[1].group], "tp");
  EXPECT_EQ(count("join_collective_notes_grouped"), 0U);
}

TEST_F(JoinRecording, grouped_sends_and_receives_are_an_exchange) {
  for (const std::uint32_t peer : {5U, 3U, 5U}) {
    note(90 + peer, peer == 3 ? CollectiveKind::kRecv : CollectiveKind::kSend, 10, 0);
    trace.collectives.back().peers = {peer};
    trace.collectives.back().place = 1;
    trace.collectives.back().group_size = 8;
  }
  launch(100, 110, 1), op(200, 300, 1, 0, "ncclDevKernel_SendRecv(x)");
  join_recording(trace);
  EXPECT_EQ(trace.collectives.at(0).kind, CollectiveKind::kSendRecv);
  EXPECT_EQ(trace.collectives.at(0).peers, (std::vector<std::uint32_t>{3, 5}));
  EXPECT_EQ(trace.collectives.at(0).bytes, 30U);
  EXPECT_FALSE(trace.collectives.at(0).sequence_recorded);
}

TEST_F(JoinRecording, a_note_of_another_kind_than_the_kernel_is_not_put_on_it) {
  note(90, CollectiveKind::kAllGather, 100, 0), launch(100, 110, 1);
  op(200, 300, 1, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)");
  join_recording(trace);
  EXPECT_EQ(trace.collectives.at(0).kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(trace.collectives.at(0).bytes, 0U);
  EXPECT_EQ(count("join_collective_notes_unmatched"), 1U);
  EXPECT_EQ(count("join_collectives_without_note"), 1U);
}

TEST_F(JoinRecording, a_group_that_ends_in_two_kernels_gives_each_its_own) {
  note(90, CollectiveKind::kAllGather, 100, 0), note(91, CollectiveKind::kReduceScatter, 20, 1);
  launch(100, 110, 1), launch(120, 130, 2);
  op(200, 300, 1, 0, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(x)");
  op(300, 400, 2, 0, "ncclDevKernel_AllGather_RING_LL(x)");
  join_recording(trace);
  EXPECT_EQ(trace.collectives.at(0).bytes, 20U);
  EXPECT_EQ(trace.collectives.at(1).bytes, 100U);
  EXPECT_TRUE(trace.counters.empty());
}

TEST_F(JoinRecording, a_collective_without_number_leaves_those_of_other_kinds_theirs) {
  note(90, CollectiveKind::kAllReduce, 100, 40), launch(100, 110, 1);
  note(120, CollectiveKind::kSend, 8, 0);
  trace.collectives.back().sequence_recorded = false;
  launch(130, 140, 2), op(200, 300, 1, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)");
  op(300, 310, 2, 0, "ncclDevKernel_SendRecv(x)");
  join_recording(trace);
  EXPECT_EQ(trace.collectives.at(0).sequence, 40U);
  EXPECT_TRUE(trace.collectives.at(0).sequence_recorded);
  EXPECT_EQ(trace.collectives.at(1).kind, CollectiveKind::kSend);
  EXPECT_FALSE(trace.collectives.at(1).sequence_recorded);
}

TEST_F(JoinRecording, nvtx_is_not_heard_where_the_profiler_of_nccl_spoke) {
  note(89, CollectiveKind::kAllReduce, 55, 0, CollectiveSource::kNvtx);
  note(90, CollectiveKind::kAllReduce, 100, 4), launch(100, 110, 1);
  op(200, 300, 1, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)");
  join_recording(trace);
  EXPECT_EQ(trace.collectives.at(0).bytes, 100U);
  EXPECT_EQ(trace.collectives.at(0).sequence, 4U);
  EXPECT_EQ(count("join_collective_notes_grouped"), 0U);
}

// The copy at 120 fills the output of a collective that was stood in for; the one of another
// thread at the same time, and the one after the range, are the job's own.
TEST_F(JoinRecording, pytorchs_range_tells_what_send_receive_kernels_do) {
  // Around the first launch is a range of its thread; the third one's was announced.
  const auto range = [&](std::int64_t start, std::int64_t end, const std::string& name) {
    trace.markers.push_back({.start = at(start), .duration = Duration{end - start},
                             .name = trace.names.intern(name), .thread = ThreadId{0}});
  };
  range(80, 130, "nccl:all_to_all, op_id = 991144, reduce");
  range(290, 330, "nccl:all_to_all, op_id = 991145");
  launch(100, 105, 1), launch(101, 106, 2, 1), note(295, CollectiveKind::kSend, 8, 0);
  launch(300, 305, 3), op(110, 150, 1, 0, "ncclDevKernel_SendRecv(x)");
  op(160, 170, 2, 1, "ncclDevKernel_SendRecv(x)"), op(310, 350, 3, 0, "ncclDevKernel_SendRecv(x)");
  join_recording(trace);
  ASSERT_EQ(trace.collectives.size(), 3U);
  EXPECT_EQ(trace.collectives[0].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(trace.collectives[1].kind, CollectiveKind::kSendRecv);
  EXPECT_EQ(trace.collectives[2].kind, CollectiveKind::kSend);
  EXPECT_EQ(trace.counters.count("join_collective_kinds_from_ranges"), 1U);
}

TEST_F(JoinRecording, what_a_stand_in_does_for_its_outputs_is_dropped) {
  launch(100, 110, 1), call(120, 125, 2, HostCallKind::kCopy);
  call(120, 125, 3, HostCallKind::kCopy, 1), call(140, 145, 4, HostCallKind::kCopy);
  op(200, 210, 1, 0), op(210, 220, 2, 0), op(220, 230, 3, 0), op(230, 240, 4, 0);
  trace.markers = {{at(115), Duration{15},
                    trace.names.intern("bubblesim: bubblesim.fill op=all_gather bytes=64"),
                    ThreadId{0}, MarkerKind::kUser, -1}};
  join_recording(trace);
  ASSERT_EQ(trace.device_ops.size(), 3U);
  EXPECT_EQ(trace.device_ops[1].correlation, 3U);
  EXPECT_EQ(trace.host_calls.size(), 3U);
  EXPECT_EQ(count("join_stand_in_fills_dropped"), 1U);
  EXPECT_EQ(count("join_device_ops_without_launch"), 0U);
}

TEST_F(JoinRecording, kernels_on_a_second_device_are_counted) {
  trace.streams.push_back({7, 0, 1});
  op(1, 2, 0, 0), op(2, 3, 0, 0), op(3, 4, 0, 2);
  join_recording(trace);
  EXPECT_EQ(count("join_ops_on_further_devices"), 1U);
}

void expect(std::string_view name, MarkerKind kind, std::int64_t number) {
  const MarkerClass got = classify_marker(name);
  EXPECT_EQ(got.kind, kind) << name;
  EXPECT_EQ(got.number, number) << name;
}

TEST(MarkerNames, numbered_iterations_of_all_spellings_are_iterations) {
  expect("ProfilerStep#12", MarkerKind::kIteration, 12);
  expect("bubblesim.iteration 0", MarkerKind::kIteration, 0);
  expect("Iteration: 7", MarkerKind::kIteration, 7);
  expect("iter_3", MarkerKind::kIteration, 3);
  expect("step 1000", MarkerKind::kIteration, 1000);
}

TEST(MarkerNames, micro_batches_and_phases_are_told_apart) {
  expect("micro-batch 4", MarkerKind::kMicroBatch, 4);
  expect("microbatch#0", MarkerKind::kMicroBatch, 0);
  expect("Forward", MarkerKind::kPhase, -1);
  expect("phase:embedding", MarkerKind::kPhase, -1);
}

TEST(MarkerNames, what_only_begins_alike_is_the_users) {
  expect("", MarkerKind::kUser, -1);
  expect("step", MarkerKind::kUser, -1);
  expect("step 1 of many", MarkerKind::kUser, -1);
  expect("stepwise 3", MarkerKind::kUser, -1);
  expect("iteration -1", MarkerKind::kUser, -1);
  expect("iteration 99999999999999999999", MarkerKind::kUser, -1);
  expect("forwarding", MarkerKind::kUser, -1);
}

// Joined, the operation that ends first comes first, and a rank of NCCL's is taken.
TEST_F(JoinRecording, a_trace_that_is_no_recording_stays_as_it_is) {
  trace.provenance.format = kCaptureFormat;
  op(500, 600, 2, 0), op(200, 300, 1, 0), note(90, CollectiveKind::kAllReduce, 1000, 0);
  trace.collectives.back().place = 3;
  const std::vector<RankTrace> ranks = join_process(trace);
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_EQ(ranks[0].rank, 0U);
  EXPECT_EQ(ranks[0].device_ops[0].correlation, 2U);
  EXPECT_EQ(ranks[0].notes.size(), 1U);
}

// Streams 0 and 1 are of GPUs 0 and 1. The thread used GPU 0 last, and all that was launched on
// either ends within the call: its context alone says that it waits for GPU 1.
TEST_F(JoinRecording, a_synchronisation_is_of_the_gpu_of_its_context) {
  trace.streams[1].device = 1;
  trace.rank = 1, trace.world_size = 2;
  launch(100, 110, 1), launch(120, 130, 2), call(140, 300, 3, HostCallKind::kDeviceSync);
  op(150, 200, 1, 1), op(150, 290, 2, 0);
  trace.syncs.push_back({at(140), 3, HostCallKind::kDeviceSync, kNone, 0, 2});
  const std::vector<RankTrace> ranks = join_process(trace);
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].host_calls.size(), 1U);
  EXPECT_EQ(ranks[1].host_calls.size(), 2U);
  // Process 1 of 2 keeps its number; the second GPU's comes after those of both processes' first.
  EXPECT_EQ(ranks[0].rank, 1U);
  EXPECT_EQ(ranks[1].rank, 3U);
  for (const RankTrace& rank : ranks) {
    EXPECT_EQ(rank.world_size, 4U);
    EXPECT_EQ(rank.process, 2U);
  }
  EXPECT_EQ(ranks[0].counters.count("join_ranks_of_gpus_by_order"), 2U);
}

// ncclCommInitAll: one communicator of both GPUs, all announcements on one thread before the two
// kernels. Each takes its own, and the places in the communicator are the ranks.
TEST_F(JoinRecording, gpus_of_one_communicator_are_the_ranks_that_it_says) {
  trace.streams[1].device = 1;
  launch(100, 110, 1), launch(120, 130, 2);
  op(150, 200, 1, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  op(150, 200, 2, 1, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  for (const std::uint32_t place : {2U, 1U}) {
    note(90, CollectiveKind::kAllReduce, 1000 * place, 0);
    trace.collectives.back().group_size = 2;
    trace.collectives.back().place = place;
  }
  const std::vector<RankTrace> ranks = join_process(trace);
  ASSERT_EQ(ranks.size(), 2U);
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(ranks[i].rank, i);
    EXPECT_EQ(ranks[i].world_size, 2U);
    ASSERT_EQ(ranks[i].collectives.size(), 1U);
    EXPECT_EQ(ranks[i].collectives[0].bytes, 1000U * (i + 1));
  }
  EXPECT_EQ(ranks[0].counters.count("join_ranks_of_gpus_by_order"), 0U);
}

// Called at 90 and 95 on the main thread, each launched by a thread that lives for it alone.
TEST_F(JoinRecording, communicators_that_do_not_block_launch_from_other_threads) {
  trace.threads.push_back({102, "nccl"});
  note(90, CollectiveKind::kAllReduce, 1000, 7), note(95, CollectiveKind::kAllReduce, 2000, 8);
  launch(120, 130, 1, 1), launch(125, 135, 2, 2);
  op(200, 210, 1, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  op(220, 230, 2, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  trace.collectives[1].group = trace.names.intern("tp");
  join_recording(trace);
  EXPECT_EQ(trace.collectives[0].bytes, 1000U);
  EXPECT_EQ(trace.collectives[1].bytes, 2000U);
  EXPECT_EQ(count("join_collective_notes_unmatched"), 0U);
  EXPECT_EQ(count("join_collectives_of_other_threads"), 2U);
}

// Pairs 10 ms apart; between the second and the third the clock is set forward by a second. What
// began 3 ms after the second pair, 2 ms before the step, keeps its time; an operation that ends
// 4 ms later, after it, has lasted 4 ms.
TEST_F(JoinRecording, a_clock_that_was_set_forward_is_put_back) {
  constexpr std::int64_t kMs = 1'000'000;
  for (const std::int64_t ms : {0, 10, 20}) {
    trace.clocks.push_back({at((ms == 20 ? 1020 : ms) * kMs), 0, 5000 * kMs + ms * kMs});
  }
  launch(12 * kMs, 13 * kMs, 1), launch(1016 * kMs, 1017 * kMs, 2);
  op(13 * kMs, 1017 * kMs, 1, 0), op(1018 * kMs, 1019 * kMs, 2, 0);
  join_recording(trace);
  EXPECT_EQ(trace.host_calls[0].start, at(12 * kMs));
  EXPECT_EQ(trace.host_calls[1].start, at(16 * kMs));
  EXPECT_EQ(trace.device_ops[0].start, at(13 * kMs));
  EXPECT_EQ(trace.device_ops[0].duration, Duration{4 * kMs});
  EXPECT_EQ(trace.device_ops[1].start, at(18 * kMs));
  EXPECT_EQ(trace.clocks.back().at, at(20 * kMs));
  EXPECT_EQ(count("join_clock_steps_undone"), 1U);
}

// 30 ms passed, 10 of them twice.
TEST_F(JoinRecording, a_clock_that_was_set_back_is_a_loss) {
  trace.clocks = {{at(0), 0, 0}, {at(20'000'000), 0, 30'000'000}};
  launch(100, 110, 1);
  join_recording(trace);
  EXPECT_EQ(trace.host_calls[0].start, at(100));
  EXPECT_EQ(count("join_clock_set_back"), 1U);
}

}  // namespace
}  // namespace bubblesim::traces
