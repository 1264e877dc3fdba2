// The file of a recording: what was appended is read back, also when the recorder was killed.
#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "capture/record/store/trace_store.hpp"
#include "traces/format/trace_reader.hpp"

namespace bubblesim::capture {
namespace {

using testing::IsEmpty, testing::SizeIs;

class Storing : public testing::Test {
 protected:
  Storing() {
    const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
    path = (std::filesystem::temp_directory_path() /
            (std::string("bubblesim_store_") + info->name() + ".btr")).string();
  }
  ~Storing() override { std::remove(path.c_str()); }
  std::unique_ptr<TraceStore> create() {
    auto store = TraceStore::create(path, RankId{3});
    EXPECT_TRUE(store) << store.error().text();
    return store ? std::make_unique<TraceStore>(std::move(*store)) : nullptr;
  }
  traces::RankTrace read() {
    auto outcome = traces::format::read_job(path);
    EXPECT_TRUE(outcome);
    if (!outcome || outcome->job.ranks.empty()) return {};
    counters = outcome->counters;
    return outcome->job.ranks.front();
  }
  static RecordedBatch kernels(RecordTables& tables, std::size_t count) {
    RecordedBatch batch;
    for (std::size_t i = 0; i < count; ++i) {
      const TraceTime start{Duration{static_cast<std::int64_t>(1000 + i * 10)}};
      batch.calls.push_back({.start = start, .duration = Duration{3}, .correlation = i + 1,
                             .name = tables.name("cudaLaunchKernel"),
                             .thread = tables.thread(77)});
      batch.ops.push_back({.start = start, .duration = Duration{5}, .correlation = i + 1,
                           .name = tables.name("gemm"), .stream = tables.stream(0, 1, 7),
                           .shape = tables.shape({{static_cast<std::uint32_t>(i % 5 + 1), 1, 1}})});
    }
    return batch;
  }

  std::string path;
  CounterSet counters;
};

TEST_F(Storing, WhatWasAppendedIsReadBack) {
  const auto store = create();
  traces::format::RankDescription description{.world_size = 4, .device = {}, .provenance = {}};
  description.device.sm_count = 132;
  ASSERT_TRUE(store->describe(description));
  RecordedBatch batch = kernels(store->tables(), 10);
  batch.syncs.push_back({.at = TraceTime{Duration{7}}, .correlation = 2, .event = 9});
  batch.markers.push_back({.name = store->tables().name("step 1")});
  batch.memory.push_back({.allocated_bytes = 64, .reserved_bytes = 64});
  batch.stalls.push_back({.duration = Duration{4}, .kind = traces::StallKind::kQueueFull});
  batch.clocks.push_back({.realtime_ns = 5, .monotonic_ns = 6});
  ASSERT_TRUE(store->append(batch));
  EXPECT_THAT(batch.ops, IsEmpty());
  CounterSet counted;
  counted.add({"lost_things", Severity::kLoss, "things"}, 2);
  ASSERT_TRUE(store->finish(counted));
  EXPECT_EQ(store->bytes_written(), std::filesystem::file_size(path));
  const traces::RankTrace trace = read();
  EXPECT_TRUE(counters.empty());
  EXPECT_EQ(trace.rank, 3U);
  EXPECT_EQ(trace.world_size, 4U);
  EXPECT_EQ(trace.device.sm_count, 132U);
  EXPECT_THAT(trace.host_calls, SizeIs(10));
  ASSERT_THAT(trace.device_ops, SizeIs(10));
  EXPECT_EQ(trace.names[trace.device_ops[9].name], "gemm");
  EXPECT_EQ(trace.shapes[trace.device_ops[9].shape].grid[0], 5U);
  EXPECT_EQ(trace.streams[0].system_id, 7U);
  EXPECT_EQ(trace.threads[0].system_id, 77U);
  EXPECT_EQ(trace.syncs[0].event, 9U);
  EXPECT_EQ(trace.names[trace.markers[0].name], "step 1");
  EXPECT_EQ(trace.memory[0].allocated_bytes, 64U);
  EXPECT_EQ(trace.stalls[0].kind, traces::StallKind::kQueueFull);
  EXPECT_EQ(trace.clocks[0].monotonic_ns, 6);
  EXPECT_EQ(trace.counters.count("lost_things"), 2U);
}

TEST_F(Storing, NotesOfLaterBatchesPointAtTheirOwnCollectives) {
  const auto store = create();
  for (const std::uint64_t bytes : {100U, 200U, 300U}) {
    RecordedBatch batch;
    batch.collectives.emplace_back().bytes = bytes;
    batch.collectives.back().group = store->tables().name("world");
    batch.notes.push_back({.thread = store->tables().thread(1), .collective = 0});
    batch.notes.push_back({.thread = store->tables().thread(1)});
    ASSERT_TRUE(store->append(batch));
  }
  ASSERT_TRUE(store->finish({}));
  const traces::RankTrace trace = read();
  ASSERT_THAT(trace.notes, SizeIs(6));
  EXPECT_EQ(trace.collectives[trace.notes[4].collective].bytes, 300U);
  EXPECT_EQ(trace.collectives[trace.notes[2].collective].bytes, 200U);
  EXPECT_EQ(trace.notes[5].collective, traces::kNone);
}

TEST_F(Storing, AKilledRecorderLeavesEveryWholeChunk) {
  auto store = create();
  RecordedBatch batch = kernels(store->tables(), 10'000);
  ASSERT_TRUE(store->append(batch));
  store.reset();  // without finish, as after SIGKILL
  const traces::RankTrace trace = read();
  EXPECT_EQ(trace.device_ops.size(), 8192U) << "two chunks of 4096";
  EXPECT_EQ(trace.names[trace.device_ops[8191].name], "gemm");
  EXPECT_FALSE(counters.empty());
}

TEST_F(Storing, AFlushBoundsTheLoss) {
  auto store = create();
  RecordedBatch batch = kernels(store->tables(), 10);
  ASSERT_TRUE(store->append(batch));
  ASSERT_TRUE(store->flush());
  EXPECT_EQ(store->bytes_written(), std::filesystem::file_size(path));
  store.reset();
  EXPECT_THAT(read().device_ops, SizeIs(10));
}

TEST_F(Storing, AFolderThatIsNotThereIsAnError) {
  const auto store = TraceStore::create("/nowhere/at/all.btr", RankId{0});
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().text(), testing::HasSubstr("/nowhere/at/all.btr"));
}

TEST_F(Storing, AFullDiskIsAnErrorAndTheBatchIsGone) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  auto store = TraceStore::create("/dev/full", RankId{0});
  if (!store) return;  // the header is written at once
  RecordedBatch batch = kernels(store->tables(), 10);
  const bool written = store->append(batch).has_value() && store->flush().has_value();
  EXPECT_FALSE(written);
  EXPECT_THAT(batch.ops, IsEmpty());
}

}  // namespace
}  // namespace bubblesim::capture
