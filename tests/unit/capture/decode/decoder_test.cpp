// What each kind of record becomes. Every case runs twice: with a walker of the test's, and with
// the walker of the real libcupti where one of CUDA 13.0 is installed; it needs no GPU.
#include <gmock/gmock.h>

#include <optional>

#include "capture/record/decode/activity_decoder.hpp"
#include "tests/unit/capture/decode/record_buffer.hpp"

#if defined(__SANITIZE_ADDRESS__)
// A thread of libcupti may end while the check for leaks looks at it; the check then ends the
// process by a signal.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "detect_leaks=0";
}
#endif

namespace bubblesim::capture {
namespace {

using testing::IsEmpty, testing::SizeIs;
using traces::CopyDirection, traces::DeviceOpKind, traces::HostCallKind;

constexpr std::uint32_t kLaunchKernel = 211;  ///< cudaLaunchKernel
constexpr std::uint32_t kGetDevice = 17;      ///< of the runtime, not listed

TraceTime at(std::int64_t ns) { return TraceTime{Duration{ns}}; }

cupti::KernelRecord kernel(std::uint64_t start, std::uint64_t end, const char* name) {
  cupti::KernelRecord record{};
  record.kind = cupti::kKindConcurrentKernel;
  record.start = start;
  record.end = end;
  record.context = 1;
  record.stream = 7;
  record.registers_per_thread = 64;
  for (const std::uint32_t i : {0U, 1U, 2U}) record.grid[i] = 10 + i, record.block[i] = 32 + i;
  record.static_shared_memory = 1000;
  record.dynamic_shared_memory = 24;
  record.correlation = 42;
  record.name = name;
  return record;
}

cupti::ApiRecord call(std::uint32_t kind, std::uint32_t id) {
  return {.kind = kind, .id = id, .start = 100, .end = 130, .process = 5, .thread = 77,
          .correlation = 42, .return_value = 0};
}

cupti::SynchronizationRecord wait_for(std::uint64_t event_sync, std::uint32_t event) {
  return {.kind = cupti::kKindSynchronization, .type = cupti::kSyncStreamWaitEvent, .start = 200,
          .end = 201, .correlation = 8, .context = 1, .stream = 13, .event = event,
          .event_sync = event_sync, .return_value = 0, .pad = 0};
}

cupti::CudaEventRecord event_record(std::uint64_t event_sync, std::uint32_t event) {
  cupti::CudaEventRecord record{};
  record.kind = cupti::kKindCudaEvent;
  record.correlation = 6;
  record.context = 1;
  record.stream = 7;
  record.event = event;
  record.event_sync = event_sync;
  return record;
}

class Decoding : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!GetParam()) {
      api = walker();
      return;
    }
    const auto real = find_cupti("");
    if (!real) GTEST_SKIP() << real.error().text();
    if (real->version / 100 != 1300) GTEST_SKIP() << "this libcupti is not of CUDA 13.0";
    api = *real;
  }
  RecordedBatch& decode() {
    if (!decoder) decoder.emplace(api, tables);
    decoder->decode(buffer.data(), buffer.bytes(), batch);
    buffer.clear();
    return batch;
  }
  std::uint64_t count(std::string_view name) { return decoder->counters().count(name); }
  /// The names that the tables have handed out since the last call.
  std::vector<std::string> names() {
    std::vector<std::string> texts;
    for (const auto& name : tables.take_new().names) texts.push_back(name.text);
    return texts;
  }

  CuptiApi api;
  RecordTables tables;
  RecordBuffer buffer;
  RecordedBatch batch;
  std::optional<ActivityDecoder> decoder;
};
INSTANTIATE_TEST_SUITE_P(With, Decoding, testing::Values(false, true),
                         [](const auto& which) { return which.param ? "Cupti" : "OwnWalker"; });

TEST_P(Decoding, AKernelHasItsShapeItsStreamAndAReadableName) {
  buffer.add(kernel(1000, 1500, "_Z5scalePfi"));
  const auto& ops = decode().ops;
  ASSERT_THAT(ops, SizeIs(1));
  EXPECT_EQ(ops[0].start, at(1000));
  EXPECT_EQ(ops[0].duration, Duration{500});
  EXPECT_EQ(ops[0].correlation, 42U);
  EXPECT_EQ(ops[0].kind, DeviceOpKind::kKernel);
  EXPECT_EQ(ops[0].launch, traces::kNone);
  const RecordTables::NewEntries fresh = tables.take_new();
  ASSERT_THAT(fresh.shapes, SizeIs(1));
  EXPECT_EQ(fresh.shapes[0], (traces::LaunchShape{{10, 11, 12}, {32, 33, 34}, 64, 1024}));
  EXPECT_EQ(fresh.names[0].text, "scale(float*, int)");
  ASSERT_THAT(fresh.streams, SizeIs(1));
  EXPECT_EQ(fresh.streams[0].system_id, 7U);
}

TEST_P(Decoding, KernelsOfAGraphShareTheCorrelationOfItsLaunch) {
  buffer.add(call(cupti::kKindRuntime, 311));  // cudaGraphLaunch
  buffer.add(kernel(1000, 1100, "first"));
  buffer.add(kernel(1200, 1300, "second"));
  decode();
  ASSERT_THAT(batch.calls, SizeIs(1));
  EXPECT_EQ(batch.calls[0].kind, HostCallKind::kLaunchGraph);
  ASSERT_THAT(batch.ops, SizeIs(2));
  EXPECT_EQ(batch.ops[0].correlation, batch.calls[0].correlation);
  EXPECT_EQ(batch.ops[1].correlation, batch.calls[0].correlation);
}

// Stopped at 1000. Launched before: ends at 1200, and one that begins at 1300; launched after: its
// kernel comes before its call, as buffers of device and host do.
TEST_P(Decoding, WhatIsCalledAfterTheStopIsLeftOutAndWhatWasCalledBeforeIsNot) {
  const auto launch = [](std::uint64_t start, std::uint32_t correlation) {
    cupti::ApiRecord record = call(cupti::kKindRuntime, kLaunchKernel);
    record.start = start;
    record.end = start + 10;
    record.correlation = correlation;
    return record;
  };
  const auto ran = [](std::uint64_t start, std::uint32_t correlation) {
    cupti::KernelRecord record = kernel(start, start + 100, "k");
    record.correlation = correlation;
    return record;
  };
  decode();
  decoder->stop_at(at(1000));
  buffer.add(ran(1100, 41));
  buffer.add(ran(1300, 42));
  buffer.add(ran(1500, 43));
  decode();
  buffer.add(launch(900, 41));
  buffer.add(launch(990, 42));
  buffer.add(launch(1400, 43));
  decode();
  EXPECT_THAT(batch.ops, IsEmpty());
  decoder->finish(batch);
  ASSERT_THAT(batch.calls, SizeIs(2));
  ASSERT_THAT(batch.ops, SizeIs(2));
  EXPECT_EQ(batch.ops[0].start, at(1100));
  EXPECT_EQ(batch.ops[1].start, at(1300));
  EXPECT_EQ(count("capture_records_after_stop"), 1U);
}

TEST_P(Decoding, AKernelWithoutNameIsKeptAndCounted) {
  buffer.add(kernel(1000, 1500, nullptr));
  EXPECT_THAT(decode().ops, SizeIs(1));
  EXPECT_THAT(names(), testing::ElementsAre("(unnamed)"));
  EXPECT_EQ(count("cupti_kernels_unnamed"), 1U);
}

TEST_P(Decoding, WithoutTimesARecordIsDroppedAndCounted) {
  buffer.add(kernel(0, 0, "a"));
  buffer.add(kernel(1000, 0, "a"));
  buffer.add(kernel(1000, ~std::uint64_t{0}, "a"));
  auto silent = call(cupti::kKindRuntime, kLaunchKernel);
  silent.end = 0;
  buffer.add(silent);
  decode();
  EXPECT_THAT(batch.ops, IsEmpty());
  EXPECT_THAT(batch.calls, IsEmpty());
  EXPECT_EQ(count("cupti_records_without_time_dropped"), 4U);
}

TEST_P(Decoding, AnEndBeforeTheStartIsADurationOfZero) {
  buffer.add(kernel(1000, 990, "a"));
  buffer.add(kernel(1000, 1000, "a"));
  const auto& ops = decode().ops;
  ASSERT_THAT(ops, SizeIs(2));
  EXPECT_EQ(ops[0].duration, Duration{0});
  EXPECT_EQ(ops[0].start, at(1000));
  EXPECT_EQ(ops[1].duration, Duration{0});
  EXPECT_EQ(count("cupti_negative_durations_clamped"), 1U);
}

TEST_P(Decoding, ACopyHasItsDirectionAndBytes) {
  buffer.add(cupti::CopyRecord{.kind = cupti::kKindMemcpy, .copy_kind = cupti::kCopyHostToDevice,
                               .source_kind = cupti::kMemoryPinned,
                               .target_kind = cupti::kMemoryDevice, .flags = 1, .bytes = 4096,
                               .start = 10, .end = 20, .device = 0, .context = 1, .stream = 7,
                               .correlation = 3});
  buffer.add(cupti::CopyRecord{.kind = cupti::kKindMemcpy, .copy_kind = 200, .source_kind = 99,
                               .target_kind = 3, .flags = 0, .bytes = 1, .start = 10, .end = 20,
                               .device = 0, .context = 1, .stream = 7, .correlation = 4});
  const auto& ops = decode().ops;
  ASSERT_THAT(ops, SizeIs(2));
  EXPECT_EQ(ops[0].kind, DeviceOpKind::kCopy);
  EXPECT_EQ(ops[0].direction, CopyDirection::kHostToDevice);
  EXPECT_EQ(ops[0].bytes, 4096U);
  EXPECT_EQ(ops[0].correlation, 3U);
  EXPECT_EQ(ops[1].direction, CopyDirection::kNone);
  EXPECT_EQ(count("cupti_copies_of_unknown_direction"), 1U);
  EXPECT_THAT(names(), testing::ElementsAre("Memcpy HtoD (Pinned -> Device)",
                                            "Memcpy Unknown (Unknown -> Device)"));
}

TEST_P(Decoding, ACopyBetweenDevicesIsPeerToPeer) {
  buffer.add(cupti::PeerCopyRecord{
      .kind = cupti::kKindMemcpyPeer, .copy_kind = cupti::kCopyPeerToPeer,
      .source_kind = cupti::kMemoryDevice, .target_kind = cupti::kMemoryDevice, .flags = 1,
      .bytes = 64, .start = 10, .end = 20, .device = 2, .context = 3, .stream = 7,
      .source_device = 2, .source_context = 3, .target_device = 1, .target_context = 1,
      .correlation = 9});
  const auto& ops = decode().ops;
  ASSERT_THAT(ops, SizeIs(1));
  EXPECT_EQ(ops[0].direction, CopyDirection::kPeerToPeer);
  EXPECT_EQ(ops[0].correlation, 9U);
  EXPECT_EQ(tables.take_new().streams[0].device, 2U);
}

TEST_P(Decoding, AMemsetHasItsBytes) {
  buffer.add(cupti::MemsetRecord{.kind = cupti::kKindMemset, .value = 0, .bytes = 512, .start = 10,
                                 .end = 15, .device = 0, .context = 1, .stream = 7,
                                 .correlation = 5, .flags = 0,
                                 .memory_kind = cupti::kMemoryDevice});
  const auto& ops = decode().ops;
  ASSERT_THAT(ops, SizeIs(1));
  EXPECT_EQ(ops[0].kind, DeviceOpKind::kMemset);
  EXPECT_EQ(ops[0].bytes, 512U);
  EXPECT_THAT(names(), testing::ElementsAre("Memset (Device)"));
}

TEST_P(Decoding, ACallHasItsKindThreadAndName) {
  buffer.add(call(cupti::kKindRuntime, kLaunchKernel));
  buffer.add(call(cupti::kKindDriver, 652));  // cuLaunchKernelEx
  const auto& calls = decode().calls;
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(calls[0].kind, HostCallKind::kLaunchKernel);
  EXPECT_EQ(calls[0].start, at(100));
  EXPECT_EQ(calls[0].duration, Duration{30});
  EXPECT_EQ(calls[0].correlation, 42U);
  EXPECT_EQ(calls[0].thread, calls[1].thread);
  const RecordTables::NewEntries fresh = tables.take_new();
  ASSERT_THAT(fresh.threads, SizeIs(1));
  EXPECT_EQ(fresh.threads[0].system_id, 77U);
  ASSERT_THAT(fresh.names, SizeIs(2));
  EXPECT_EQ(fresh.names[0].text, "cudaLaunchKernel");
  EXPECT_EQ(fresh.names[1].text, "cuLaunchKernelEx");
}

TEST_P(Decoding, UnlistedAndFailedCallsAreCounted) {
  buffer.add(call(cupti::kKindRuntime, kGetDevice));
  buffer.add(call(cupti::kKindDriver, 4'000'000'000U));
  auto failed = call(cupti::kKindRuntime, kLaunchKernel);
  failed.return_value = 700;
  buffer.add(failed);
  const auto& calls = decode().calls;
  ASSERT_THAT(calls, SizeIs(3));
  EXPECT_EQ(calls[0].kind, HostCallKind::kOther);
  EXPECT_THAT(names(), testing::ElementsAre("(cuda runtime call 17)",
                                            "(cuda driver call 4000000000)", "cudaLaunchKernel"));
  EXPECT_EQ(count("cupti_unlisted_calls"), 2U);
  EXPECT_EQ(count("cupti_failed_calls"), 1U);
}

TEST_P(Decoding, AWaitAndTheRecordOfItsEventHaveTheSameNumber) {
  buffer.add(event_record(31, 5));
  buffer.add(wait_for(31, 5));
  const auto& syncs = decode().syncs;
  ASSERT_THAT(syncs, SizeIs(2));
  EXPECT_EQ(syncs[0].kind, HostCallKind::kStreamWaitEvent);
  EXPECT_EQ(syncs[0].at, at(200));
  EXPECT_EQ(syncs[0].correlation, 8U);
  EXPECT_EQ(syncs[0].event, 31U);
  EXPECT_EQ(syncs[1].kind, HostCallKind::kEventRecord) << "records of events come last";
  EXPECT_EQ(syncs[1].correlation, 6U);
  EXPECT_EQ(syncs[1].event, 31U);
  EXPECT_NE(syncs[0].stream, syncs[1].stream);
}

TEST_P(Decoding, WithoutTheNumberOfARecordingTheEventsOwnIsUsedApart) {
  buffer.add(wait_for(0, 31));
  buffer.add(wait_for(cupti::kNotApplicable, 31));
  buffer.add(wait_for(0, cupti::kNotApplicable));
  const auto& syncs = decode().syncs;
  ASSERT_THAT(syncs, SizeIs(3));
  EXPECT_EQ(syncs[0].event, kEventOnly | 31);
  EXPECT_EQ(syncs[1].event, kEventOnly | 31);
  EXPECT_EQ(syncs[2].event, 0U);
}

TEST_P(Decoding, SynchronisationsNameWhatTheyWaitFor) {
  auto record = wait_for(31, 5);
  record.type = cupti::kSyncStream;
  buffer.add(record);
  record.type = cupti::kSyncContext;
  buffer.add(record);
  record.type = cupti::kSyncEvent;
  buffer.add(record);
  record.type = 9;
  buffer.add(record);
  const auto& syncs = decode().syncs;
  ASSERT_THAT(syncs, SizeIs(3));
  EXPECT_EQ(syncs[0].kind, HostCallKind::kStreamSync);
  EXPECT_EQ(syncs[0].stream, 0U);
  EXPECT_EQ(syncs[0].event, 0U);
  EXPECT_EQ(syncs[1].kind, HostCallKind::kDeviceSync);
  EXPECT_EQ(syncs[1].stream, traces::kNone);
  EXPECT_EQ(syncs[2].kind, HostCallKind::kEventSync);
  EXPECT_EQ(syncs[2].event, 31U);
  EXPECT_EQ(count("cupti_synchronisations_of_unknown_type"), 1U);
}

TEST_P(Decoding, AContextTellsTheDeviceOfAStreamThatNamesNone) {
  buffer.add(cupti::ContextRecord{.kind = cupti::kKindContext, .context = 1, .device = 3,
                                  .api = 1, .null_stream = 7});
  buffer.add(wait_for(31, 5));
  decode();
  EXPECT_EQ(tables.take_new().streams[0].device, 3U);
  EXPECT_EQ(count("cupti_streams_of_unknown_device"), 0U);
  auto elsewhere = wait_for(31, 5);
  elsewhere.context = 2;
  buffer.add(elsewhere);
  decode();
  EXPECT_EQ(tables.take_new().streams[0].device, 0U);
  EXPECT_EQ(count("cupti_streams_of_unknown_device"), 1U);
}

TEST_P(Decoding, AStreamsPriorityIsKnownBeforeItsFirstUse) {
  const cupti::StreamRecord record{.kind = cupti::kKindStream, .context = 1, .stream = 13,
                                   .priority = static_cast<std::uint32_t>(-5), .flag = 1,
                                   .correlation = 0};
  buffer.add(record);
  decode();
  const std::vector<traces::Stream> streams = tables.take_new().streams;
  EXPECT_EQ(streams[0].priority, -5);
  EXPECT_EQ(streams[0].kind, traces::StreamKind::kBlocking);
  buffer.add(record);
  decode();
  EXPECT_EQ(count("cupti_stream_priorities_late"), 1U) << "the stream is in the file already";
}

TEST_P(Decoding, AFullLaunchQueueIsAStallOfItsThread) {
  cupti::OverheadRecord record{.kind = cupti::kKindOverhead,
                               .overhead_kind = cupti::kOverheadCommandBufferFull,
                               .object_kind = cupti::kObjectThread, .process = 5, .thread = 77,
                               .pad = 0, .start = 50, .end = 90};
  buffer.add(record);
  record.overhead_kind = cupti::kOverheadBufferFlush;
  buffer.add(record);
  record.overhead_kind = cupti::kOverheadFunctionLoading;
  buffer.add(record);
  record.object_kind = cupti::kObjectProcess;
  buffer.add(record);
  const auto& stalls = decode().stalls;
  ASSERT_THAT(stalls, SizeIs(3));
  EXPECT_EQ(stalls[0].kind, traces::StallKind::kQueueFull);
  EXPECT_EQ(stalls[0].start, at(50));
  EXPECT_EQ(stalls[0].duration, Duration{40});
  EXPECT_EQ(stalls[1].kind, traces::StallKind::kProfiler);
  EXPECT_EQ(stalls[2].kind, traces::StallKind::kModuleLoad);
  EXPECT_EQ(tables.take_new().threads[0].system_id, 77U);
  EXPECT_EQ(count("cupti_stalls_without_thread"), 1U);
  EXPECT_EQ(count("cupti_stalls_without_thread_ns"), 40U);
}

TEST_P(Decoding, AllocationsBecomeARunningTotal) {
  cupti::MemoryRecord record{};
  record.kind = cupti::kKindMemory2;
  record.operation = cupti::kMemoryAllocation;
  record.memory_kind = cupti::kMemoryDevice;
  record.address = 0x1000;
  record.bytes = 100;
  record.timestamp = 10;
  buffer.add(record);
  record.address = 0x2000;
  record.bytes = 50;
  record.timestamp = 20;
  buffer.add(record);
  record.memory_kind = cupti::kMemoryPinned;  // of the host: not on the device
  buffer.add(record);
  record.memory_kind = cupti::kMemoryDevice;
  record.operation = cupti::kMemoryRelease;
  record.address = 0x1000;
  record.timestamp = 30;
  buffer.add(record);
  record.address = 0x9000;
  buffer.add(record);
  const auto& memory = decode().memory;
  ASSERT_THAT(memory, SizeIs(3));
  EXPECT_EQ(memory[0].allocated_bytes, 100U);
  EXPECT_EQ(memory[1].allocated_bytes, 150U);
  EXPECT_EQ(memory[2].allocated_bytes, 50U);
  EXPECT_EQ(memory[2].at, at(30));
  EXPECT_EQ(count("cupti_releases_of_earlier_memory"), 1U);
}

TEST_P(Decoding, AWholeGraphIsOneOperation) {
  buffer.add(cupti::GraphRecord{.kind = cupti::kKindGraphTrace, .correlation = 42, .start = 10,
                                .end = 500, .device = 0, .graph = 6, .context = 1, .stream = 7});
  const auto& ops = decode().ops;
  ASSERT_THAT(ops, SizeIs(1));
  EXPECT_EQ(ops[0].duration, Duration{490});
  EXPECT_EQ(ops[0].correlation, 42U);
  EXPECT_THAT(names(), testing::ElementsAre("(graph 6)"));
}

TEST_P(Decoding, TheDeviceIsThatOfMostKernels) {
  cupti::DeviceRecord record{};
  record.kind = cupti::kKindDevice;
  record.name = "first";
  record.memory_bytes = 1000;
  record.multiprocessors = 132;
  record.compute_major = 9;
  buffer.add(record);
  record.id = 1;
  record.name = nullptr;
  record.multiprocessors = 108;
  buffer.add(record);
  decode();
  EXPECT_EQ(decoder->device().name, "first") << "before any kernel: the first";
  EXPECT_EQ(decoder->device().memory_bytes, 1000U);
  EXPECT_EQ(decoder->device().compute_major, 9U);
  auto elsewhere = kernel(1000, 1100, "a");
  elsewhere.device = 1;
  elsewhere.context = 2;
  buffer.add(elsewhere);
  decode();
  EXPECT_EQ(decoder->device().sm_count, 108U);
  EXPECT_EQ(decoder->device().name, "");
}

TEST_P(Decoding, UnknownKindsArePassedOver) {
  cupti::OverheadRecord marker{};
  marker.kind = kUnknownKind;
  buffer.add(marker);
  buffer.add(kernel(1000, 1500, "a"));
  EXPECT_THAT(decode().ops, SizeIs(1));
  EXPECT_EQ(count("cupti_unknown_records_skipped"), 1U);
}

TEST_P(Decoding, ACutRecordIsLeftOut) {
  buffer.add(kernel(1000, 1500, "a"));
  buffer.add(kernel(2000, 2500, "b"));
  decoder.emplace(api, tables);
  decoder->decode(buffer.data(), buffer.bytes() - 8, batch);
  EXPECT_THAT(batch.ops, SizeIs(1));
}

TEST(DecodingOlderCupti, ShorterRecordsOfEventsAreNotReadBeyondTheirEnd) {
  const CuptiApi api = walker(kVersion12);
  RecordTables tables;
  RecordedBatch batch;
  ActivityDecoder decoder(api, tables);
  RecordBuffer buffer(kVersion12);
  buffer.add(event_record(31, 5));
  buffer.add(wait_for(31, 5));
  decoder.decode(buffer.data(), buffer.bytes(), batch);
  ASSERT_THAT(batch.syncs, SizeIs(2));
  EXPECT_EQ(batch.syncs[0].event, kEventOnly | 5);
  EXPECT_EQ(batch.syncs[1].event, kEventOnly | 5);
}

}  // namespace
}  // namespace bubblesim::capture
