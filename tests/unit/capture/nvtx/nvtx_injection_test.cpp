#include "capture/record/nvtx/nvtx_injection.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/unit/capture/nvtx/fake_nvtx.hpp"

namespace bubblesim::capture {
namespace {

using namespace nvtx_abi;
using traces::CollectiveKind, traces::CollectiveSource;

class Nvtx : public NvtxTest {};

TEST_F(Nvtx, IsToldTheVersionAndHasItsTablesFilled) {
  EXPECT_EQ(nvtx_.tool_version, 3U);
  for (unsigned i = 1; i <= 11; ++i) EXPECT_NE(nvtx_.core[i], nullptr) << i;
  for (const unsigned i : {12U, 13U, 14U, 15U}) EXPECT_EQ(nvtx_.core[i], nullptr) << i;
  for (const unsigned i : {1U, 2U, 3U, 4U, 5U, 10U, 11U, 12U, 13U}) {
    EXPECT_NE(nvtx_.core2[i], nullptr) << i;
  }
}

TEST_F(Nvtx, NestedRangesEndInnerFirst) {
  EXPECT_EQ(nvtx_.push_a("iteration 3"), 0);    // at 1000
  EXPECT_EQ(nvtx_.push_w(L"forward"), 1);       // at 1001
  EXPECT_EQ(nvtx_.pop(), 1);                    // at 1002
  EXPECT_EQ(nvtx_.pop(), 0);                    // at 1003
  const auto ranges = host_double().take_all<RangeEvent>(2);
  EXPECT_EQ(ranges[0].name, "forward");
  EXPECT_EQ(to_ns(ranges[0].start), 1'001);
  EXPECT_EQ(to_ns(ranges[0].duration), 1);
  EXPECT_EQ(ranges[1].name, "iteration 3");
  EXPECT_EQ(to_ns(ranges[1].start), 1'000);
  EXPECT_EQ(to_ns(ranges[1].duration), 3);
  EXPECT_EQ(ranges[1].domain, "");
  EXPECT_EQ(ranges[1].thread, host_thread_id());
}

TEST_F(Nvtx, DomainsHaveStacksOfTheirOwn) {
  void* loader = nvtx_.create("loader");
  EXPECT_EQ(nvtx_.create("loader"), loader);  // each library of a process asks for it
  nvtx_.push(loader, "batch");
  EXPECT_EQ(nvtx_.push_a("step"), 0);
  EXPECT_EQ(nvtx_.pop(loader), 0);
  nvtx_.pop();
  const auto ranges = host_double().take_all<RangeEvent>(2);
  EXPECT_EQ(ranges[0].name, "batch");
  EXPECT_EQ(ranges[0].domain, "loader");
}

TEST_F(Nvtx, RegisteredStringsNameRanges) {
  void* name = nvtx_.register_string(nullptr, "backward");
  EventAttributes given = named(nullptr);
  given.message_type = kMessageRegistered;
  given.message = name;
  nvtx_.push_ex(&given);
  nvtx_.pop();
  const auto ranges = host_double().take_all<RangeEvent>(1);
  EXPECT_EQ(ranges[0].name, "backward");
}

TEST_F(Nvtx, StartedRangesMayOverlapAndEndElsewhere) {
  const std::uint64_t first = nvtx_.start_a("load");
  const std::uint64_t second = nvtx_.start_a("copy");
  EXPECT_NE(first, second);
  std::thread([&] { nvtx_.end(first); }).join();
  nvtx_.end(second);
  nvtx_.end(second);  // twice: nothing
  const auto ranges = host_double().take_all<RangeEvent>(2);
  EXPECT_EQ(ranges[0].name, "load");
  EXPECT_EQ(ranges[0].thread, host_thread_id());  // of who started it
}

TEST_F(Nvtx, MarksAreInstants) {
  nvtx_.mark_a("checkpoint");
  const auto marks = host_double().take_all<MarkEvent>(1);
  EXPECT_EQ(marks[0].name, "checkpoint");
  EXPECT_EQ(to_ns(marks[0].at), 1'000);
}

TEST_F(Nvtx, WhatIsPushedWhileNothingRecordsIsNotKept) {
  host_double().recording = false;
  EXPECT_EQ(nvtx_.push_a("before"), kNotTracked);
  host_double().recording = true;
  nvtx_.push_a("within");
  nvtx_.pop();
  EXPECT_EQ(nvtx_.pop(), kNotTracked);  // of "before"
  const auto ranges = host_double().take_all<RangeEvent>(1);
  EXPECT_EQ(ranges[0].name, "within");
}

TEST_F(Nvtx, ARecordingThatEndsAndBeginsWithinARangeKeepsTheBalance) {
  nvtx_.push_a("outer");
  host_double().recording = false;
  nvtx_.push_a("between");
  host_double().recording = true;
  EXPECT_EQ(nvtx_.pop(), kNotTracked);  // of "between"
  EXPECT_EQ(nvtx_.pop(), 0);
  const auto ranges = host_double().take_all<RangeEvent>(1);
  EXPECT_EQ(ranges[0].name, "outer");
}

TEST_F(Nvtx, RangesOpenAtTheEndOfARecordingAreForgotten) {
  nvtx_.push_a("open");
  host_double().recording = false;
  nvtx_.pop();
  EXPECT_TRUE(host_double().take().empty());
}

TEST_F(Nvtx, DeepRangesAreLeftOutAndTheOthersKept) {
  for (int i = 0; i < 300; ++i) EXPECT_EQ(nvtx_.push_a("level"), i < 256 ? i : kNotTracked);
  for (int i = 299; i >= 0; --i) EXPECT_EQ(nvtx_.pop(), i < 256 ? i : kNotTracked);
  EXPECT_EQ(host_double().take().size(), 256U);
}

TEST_F(Nvtx, OpenRangesOfAThreadThatEndsAreForgotten) {
  std::thread([&] { nvtx_.push_a("never popped"); }).join();
  EXPECT_TRUE(host_double().take().empty());
}

TEST_F(Nvtx, ThreadsDoNotDisturbEachOther) {
  constexpr int kThreads = 4, kRanges = 1'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      void* domain = nvtx_.create(t % 2 == 0 ? "even" : "odd");
      for (int i = 0; i < kRanges; ++i) {
        nvtx_.push(domain, "outer");
        nvtx_.push(domain, "inner");
        nvtx_.end(nvtx_.start_a("started"));
        nvtx_.pop(domain);
        nvtx_.pop(domain);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(host_double().take().size(), std::size_t{3} * kThreads * kRanges);
}

TEST_F(Nvtx, AStandInsAnnouncementIsACollective) {
  void* domain = nvtx_.create("bubblesim");
  nvtx_.push(domain, "bubblesim.collective op=all_gather bytes=64 group=tp size=2 seq=5 ranks=0-1");
  nvtx_.pop(domain);
  const auto events = host_double().take_all<CollectiveEvent>(1);
  EXPECT_EQ(events[0].source, CollectiveSource::kStandIn);
  EXPECT_EQ(events[0].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(events[0].bytes, 64U);
  EXPECT_EQ(to_ns(events[0].start), 1'000);
  EXPECT_EQ(to_ns(events[0].duration), 1);
  EXPECT_EQ(events[0].thread, host_thread_id());
}

TEST_F(Nvtx, AnnouncementsMayBeLongerThanNames) {
  std::string ranks = "0";
  for (int i = 1; i < 150; ++i) ranks += "," + std::to_string(2 * i);
  const std::string text = "bubblesim.collective op=barrier ranks=" + ranks + " size=150";
  ASSERT_GT(text.size(), 500U);
  nvtx_.push_a(text.c_str());
  nvtx_.pop();
  const auto events = host_double().take_all<CollectiveEvent>(1);
  EXPECT_EQ(events[0].peers.size(), 150U);
  EXPECT_EQ(events[0].group_size, 150U);
}

struct SizedPayload {
  std::uint64_t communicator, bytes;
  std::int32_t op;
};

/// What the recorder makes of an operation of NCCL, whose schema is so many after the first.
class NcclsNvtx : public Nvtx {
 protected:
  void SetUp() override {
    Nvtx::SetUp();
    nccl_ = nvtx_.create("NCCL");
  }

  CollectiveEvent operation(const char* name, std::uint64_t schema, const SizedPayload& payload) {
    const PayloadData data{kFirstStaticSchema + schema, sizeof payload, &payload};
    const EventAttributes given = with_payload(named(name), data);
    nvtx_.push(nccl_, &given);
    nvtx_.pop(nccl_);
    const auto events = host_double().take_all<CollectiveEvent>();
    EXPECT_EQ(events.size(), 1U);
    return events.empty() ? CollectiveEvent{} : events[0];
  }

  void* nccl_ = nullptr;
};

TEST_F(NcclsNvtx, OperationsAreCollectives) {
  const CollectiveEvent event = operation("ncclAllReduce", 5, {0xBEEF, 4096, 0});
  EXPECT_EQ(event.source, CollectiveSource::kNvtx);
  EXPECT_EQ(event.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(event.bytes, 4096U);
  EXPECT_EQ(event.group, "nccl:000000000000beef");
  EXPECT_EQ(event.group_size, 0U);  // its making was not seen
  EXPECT_FALSE(event.sequence_recorded);
}

TEST_F(NcclsNvtx, CommunicatorsAreKnownFromTheirMaking) {
  SchemaEntry entries[3]{};
  entries[0].type = 18;
  entries[0].name = "NCCL communicator ID";
  entries[1].type = 5;
  entries[1].name = "No. of ranks";
  entries[1].offset = 8;
  entries[2].type = 5;
  entries[2].name = "Rank";
  SchemaAttributes schema{};
  schema.fields = kSchemaEntries | kSchemaEntryCount | kSchemaId;
  schema.entries = entries;
  schema.entry_count = 3;
  schema.schema = kFirstStaticSchema;
  EXPECT_EQ(nvtx_.register_schema(nccl_, &schema), kFirstStaticSchema);
  const struct { std::uint64_t communicator; std::int32_t ranks, rank; } made{0xCAFE, 8, 1};
  const PayloadData data{kFirstStaticSchema, sizeof made, &made};
  host_double().recording = false;  // long before anything records
  nvtx_.push(nccl_, "ncclCommInitRank");
  nvtx_.pop_payload(nccl_, &data, 1);
  host_double().recording = true;
  const CollectiveEvent scatter = operation("ncclReduceScatter", 7, {0xCAFE, 100, 0});
  EXPECT_EQ(scatter.group_size, 8U);
  EXPECT_EQ(scatter.bytes, 800U);  // eight ranks receive 100 each
  const CollectiveEvent to_rank_2 = operation("ncclSend", 9, {0xCAFE, 100, 2});
  EXPECT_EQ(to_rank_2.place, 2U);  // it is rank 1
  EXPECT_EQ(to_rank_2.peers, std::vector<std::uint32_t>{2});
}

TEST_F(Nvtx, NcclsBookkeepingIsLeftOutButForCommunicators) {
  void* nccl = nvtx_.create("NCCL");
  for (const char* name : {"ncclGroupStart", "ncclGroupEnd", "hostStreamPlanCallback",
                           "ncclCommInitRank", "ncclAllReduce"}) {
    nvtx_.push(nccl, name);
    nvtx_.pop(nccl);
  }
  const auto events = host_double().take();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::get<RangeEvent>(events[0]).name, "ncclCommInitRank");
  const auto& bare = std::get<CollectiveEvent>(events[1]);  // without a payload: by name alone
  EXPECT_EQ(bare.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(bare.bytes, 0U);
  EXPECT_EQ(bare.group, "");
}

TEST_F(Nvtx, NcclsNamesInOtherDomainsAreRanges) {
  nvtx_.push_a("ncclAllReduce");
  nvtx_.pop();
  EXPECT_EQ(host_double().take_all<RangeEvent>().size(), 1U);
}

TEST_F(Nvtx, PoppedPayloadsEndTheirRange) {
  void* other = nvtx_.create("other");
  nvtx_.push(other, "a");
  EXPECT_EQ(nvtx_.pop_payload(other, nullptr, 3), 0);
  EXPECT_EQ(host_double().take_all<RangeEvent>().size(), 1U);
}

}  // namespace
}  // namespace bubblesim::capture
