// NCCL's part is played through the structs that it would find: calls, launches, reports, in its
// order (ncclGroupEnd launches a kernel and then reports what was in it).
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "capture/record/nccl/nccl_calls.hpp"
#include "capture/record/nccl/profiler_plugin.hpp"
#include "tests/unit/capture/nccl/host_double.hpp"

namespace bubblesim::capture {
namespace {

using namespace nccl_abi;
using traces::CollectiveKind;

constexpr std::uint64_t kHash = 0xABCD;
const char* const kGroupName = "nccl:000000000000abcd";

class NcclProfiler : public ::testing::Test {
 protected:
  void SetUp() override { host_double().reset(); }
  // A thread of its own has no launch report before it.
  template <class Body>
  static void on_new_thread(Body body) {
    std::thread(body).join();
  }
};

struct V5 {
  explicit V5(int ranks, const ProfilerV5& plugin = ncclProfiler_v5) : plugin_(plugin) {
    EXPECT_EQ(plugin_.init(&context, kHash, &mask, "world", 1, ranks, 0, nullptr), kSuccess);
  }
  ~V5() { EXPECT_EQ(plugin_.finalize(context), kSuccess); }
  V5(const V5&) = delete;
  V5& operator=(const V5&) = delete;

  void collective(const char* function, std::size_t count, const char* type,
                  bool captured = false) {
    DescriptorV5 event{.type = kCollApi, .parent = nullptr, .rank = 0, .coll = {}};
    event.coll_api = {function, count, type, 0, nullptr, captured};
    void* handle = this;
    EXPECT_EQ(plugin_.start_event(context, &handle, &event), kSuccess);
    if (handle != nullptr) plugin_.stop_event(handle);
  }
  void* exchange_call(const char* function, std::size_t count, bool captured = false) {
    DescriptorV5 event{.type = kP2pApi, .parent = nullptr, .rank = 0, .coll = {}};
    event.p2p_api = {function, count, "ncclInt8", nullptr, captured};
    void* handle = this;
    EXPECT_EQ(plugin_.start_event(context, &handle, &event), kSuccess);
    if (handle != nullptr) plugin_.stop_event(handle);
    return handle;
  }
  void* begin_launch() {
    DescriptorV5 event{.type = kGroup, .parent = nullptr, .rank = 0, .coll = {}};
    void* handle = nullptr;
    plugin_.start_event(context, &handle, &event);
    return handle;
  }
  void in_launch(const char* function, std::size_t count, int peer, void* call) {
    DescriptorV5 event{.type = kP2p, .parent = call, .rank = 0, .coll = {}};
    event.p2p = {function, nullptr, "ncclInt8", count, peer, 2};
    void* handle = this;
    plugin_.start_event(context, &handle, &event);
    EXPECT_EQ(handle, nullptr);
  }
  void end_launch(void* handle) { plugin_.stop_event(handle); }
  /// A call of 8 bytes, and a launch of nothing else.
  void exchange(const char* function, int peer) {
    void* call = exchange_call(function, 8);
    void* launch = begin_launch();
    in_launch(function, 8, peer, call);
    end_launch(launch);
  }

  void* context = nullptr;
  int mask = 0;

 private:
  const ProfilerV5& plugin_;
};

struct V4 {
  explicit V4(int ranks) {
    EXPECT_EQ(ncclProfiler_v4.init(&context, &mask, nullptr, kHash, 1, ranks, 0, nullptr),
              kSuccess);
  }
  ~V4() { EXPECT_EQ(ncclProfiler_v4.finalize(context), kSuccess); }
  V4(const V4&) = delete;
  V4& operator=(const V4&) = delete;

  void* start(DescriptorV4 event) {
    void* handle = this;
    EXPECT_EQ(ncclProfiler_v4.start_event(context, &handle, &event), kSuccess);
    return handle;
  }
  // What NCCL says right after a launch of one collective.
  void report(const char* function, std::size_t count, const char* type, std::uint64_t sequence) {
    void* launch = start({.type = kGroup, .parent = nullptr, .rank = 0, .coll = {}});
    ASSERT_NE(launch, nullptr);  // NCCL 2.27 says nothing of a launch without a handle
    DescriptorV4 event{.type = kColl, .parent = launch, .rank = 0, .coll = {}};
    event.coll.sequence = sequence;
    event.coll.function = function;
    event.coll.count = count;
    event.coll.datatype = type;
    EXPECT_EQ(start(event), nullptr);
    ncclProfiler_v4.stop_event(launch);
  }

  void* context = nullptr;
  int mask = 0;
};

TEST_F(NcclProfiler, AsksOnlyForCallsAndSendsOfLaunches) {
  EXPECT_EQ(V5(8).mask, 512 + 1024 + 4);
  EXPECT_EQ(V4(8).mask, 2 + 4);
}

// Each launch has a thread of its own, which no report came before: the communicator's counts.
TEST_F(NcclProfiler, V4LaunchesOfCommunicatorsThatDoNotBlockAreTimedByTheCommunicator) {
  V4 nccl(8);
  for (std::uint64_t i = 0; i < 3; ++i) {
    host_double().now_ns = 5'000 + 1'000 * static_cast<std::int64_t>(i);
    on_new_thread([&] { nccl.report("AllReduce", 100, "ncclFloat32", i); });
  }
  const std::vector<HostEvent> events = host_double().take();
  ASSERT_EQ(events.size(), 2U);  // the first launch has none before it
  const auto& last = std::get<CollectiveEvent>(events[1]);
  EXPECT_EQ(last.sequence, 2U);
  EXPECT_GE(to_ns(last.start - TraceTime{}), 6'000);
  EXPECT_LT(to_ns(last.start - TraceTime{}), 7'000);
}

TEST_F(NcclProfiler, V5CollectivesAreTimedBeforeTheirLaunch) {
  V5 nccl(8);
  host_double().now_ns = 5'000;
  nccl.collective("ReduceScatter", 100, "ncclFloat32");
  const auto events = host_double().take_all<CollectiveEvent>(1);
  EXPECT_EQ(to_ns(events[0].start), 5'000);
  EXPECT_EQ(to_ns(events[0].duration), 0);
  EXPECT_EQ(events[0].kind, CollectiveKind::kReduceScatter);
  EXPECT_EQ(events[0].bytes, 100U * 4 * 8);
  EXPECT_EQ(events[0].group, kGroupName);
  EXPECT_EQ(events[0].group_size, 8U);
  EXPECT_TRUE(events[0].peers.empty());
  EXPECT_EQ(events[0].source, traces::CollectiveSource::kNcclProfiler);
  EXPECT_EQ(events[0].thread, host_thread_id());
}

TEST_F(NcclProfiler, V6IsV5WithMoreEventTypes) {
  V5 nccl(4, ncclProfiler_v6);
  nccl.collective("AllGather", 10, "ncclBfloat16");
  const auto events = host_double().take_all<CollectiveEvent>(1);
  EXPECT_EQ(events[0].bytes, 20U);
}

TEST_F(NcclProfiler, CollectivesSayThePlaceOfTheirRank) {
  V5 nccl(4);
  nccl.collective("AllReduce", 8, "ncclInt8");
  const auto events = host_double().take_all<CollectiveEvent>(1);
  EXPECT_EQ(events[0].place, 1U);  // rank 0
  EXPECT_EQ(events[0].group_size, 4U);
}

TEST_F(NcclProfiler, CollectivesAreNumberedFromTheCommunicatorsBirth) {
  V5 nccl(2);
  host_double().recording = false;
  nccl.collective("AllReduce", 1, "ncclInt8");
  nccl.collective("AllGather", 1, "ncclInt8");
  EXPECT_TRUE(host_double().take().empty());
  host_double().recording = true;
  nccl.collective("AllReduce", 1, "ncclInt8", true);  // into a graph: counted, not recorded
  nccl.collective("AllReduce", 1, "ncclInt8");
  const auto events = host_double().take_all<CollectiveEvent>(1);
  EXPECT_EQ(events[0].sequence, 3U);
  EXPECT_TRUE(events[0].sequence_recorded);
}

// Nothing says the peers of what is captured: no group, so that it is matched by its kernel.
TEST_F(NcclProfiler, SendsOfAGraphAreOfTheNextKernelThatIsCaptured) {
  on_new_thread([] {  // on which nothing else awaits a kernel
    V5 nccl(8);
    EXPECT_EQ(nccl.exchange_call("Send", 30, true), nullptr);
    EXPECT_EQ(nccl.exchange_call("Recv", 7, true), nullptr);
    EXPECT_TRUE(host_double().take().empty());
    tell_graph_node(31, 0);
  });
  const auto events = host_double().take_all<CollectiveEvent>(2);
  for (const CollectiveEvent& event : events) {
    EXPECT_EQ(event.kind, CollectiveKind::kSendRecv);
    EXPECT_EQ(event.graph_node, 31U);
    EXPECT_EQ(event.group, "");
  }
  EXPECT_EQ(events[0].bytes + events[1].bytes, 30U);
}

TEST_F(NcclProfiler, TheCommunicatorOfMostRanksLeadsWhileItLives) {
  V5 small(4);
  small.collective("AllReduce", 1, "ncclInt8");
  {
    V5 large(8), equal(8);
    for (V5* const nccl : {&small, &large}) nccl->collective("AllReduce", 1, "ncclInt8");
  }
  V5 next(2);
  next.collective("AllReduce", 1, "ncclInt8");
  std::vector<bool> leads;
  for (const auto& event : host_double().take_all<CollectiveEvent>()) leads.push_back(event.leads);
  EXPECT_EQ(leads, (std::vector<bool>{true, false, true, true}));
}

TEST_F(NcclProfiler, SendsAndReceivesOfALaunchAreOneEvent) {
  V5 nccl(2);
  host_double().now_ns = 100;
  void* send = nccl.exchange_call("Send", 30);   // at 100
  void* receive = nccl.exchange_call("Recv", 7);
  host_double().now_ns = 900;
  void* launch = nccl.begin_launch();
  nccl.in_launch("Recv", 7, 1, receive);
  nccl.in_launch("Send", 30, 1, send);
  EXPECT_TRUE(host_double().take().empty());
  nccl.end_launch(launch);
  const auto events = host_double().take_all<CollectiveEvent>(1);
  EXPECT_EQ(events[0].kind, CollectiveKind::kSendRecv);
  EXPECT_EQ(to_ns(events[0].start), 100);
  EXPECT_EQ(events[0].bytes, 30U);
  EXPECT_EQ(events[0].sequence, 0U);
  EXPECT_TRUE(events[0].sequence_recorded);
}

TEST_F(NcclProfiler, TwoRanksMeetUnderOneKindAndNumber) {
  for (const char* side : {"Send", "Recv"}) {
    V5 nccl(2);
    host_double().recording = false;
    nccl.exchange(side, 1);
    host_double().recording = true;
    nccl.exchange(side, 1);
    const auto events = host_double().take_all<CollectiveEvent>(1);
    EXPECT_EQ(events[0].kind, CollectiveKind::kSendRecv);
    EXPECT_EQ(events[0].sequence, 1U);
    EXPECT_EQ(events[0].bytes, 8U);
  }
}

// Rank 0's second send to rank 3; one to rank 2 counts apart. Counted while nothing records, too.
TEST_F(NcclProfiler, ALoneSendNamesItsPeerAndCountsThoseToIt) {
  V5 nccl(4);
  host_double().recording = false;
  nccl.exchange("Send", 3);
  host_double().recording = true;
  nccl.exchange("Send", 2);
  nccl.exchange("Send", 3);
  const auto events = host_double().take_all<CollectiveEvent>(2);
  EXPECT_EQ(events[1].kind, CollectiveKind::kSend);
  EXPECT_EQ(events[1].peers, std::vector<std::uint32_t>{3});
  EXPECT_EQ(events[1].place, 1U);  // rank 0
  EXPECT_TRUE(events[1].sequence_recorded);
  EXPECT_EQ(events[0].sequence, 0U);
  EXPECT_EQ(events[1].sequence, 1U);
}

// Of a launch with several peers, none has a number: their other ends may be in launches of others.
TEST_F(NcclProfiler, ABatchNamesItsPeersButHasNoNumber) {
  V5 nccl(8);
  void* call = nccl.exchange_call("Send", 8);
  void* launch = nccl.begin_launch();
  for (const int peer : {5, 0, 2, 5}) nccl.in_launch(peer == 2 ? "Recv" : "Send", 8, peer, call);
  nccl.end_launch(launch);
  const auto events = host_double().take_all<CollectiveEvent>(1);
  EXPECT_EQ(events[0].kind, CollectiveKind::kSendRecv);
  EXPECT_EQ(events[0].peers, (std::vector<std::uint32_t>{5, 2}));  // without itself
  EXPECT_FALSE(events[0].sequence_recorded);
}

// Far more than a launch's report holds, and peers that do not exist: named or not, nothing breaks.
TEST_F(NcclProfiler, PeersBeyondWhatAReportHoldsAreNotNamed) {
  V5 nccl(100);
  void* call = nccl.exchange_call("Send", 8);
  for (const int first : {1, -7}) {
    void* launch = nccl.begin_launch();
    for (int peer = first; peer < first + 60; ++peer) nccl.in_launch("Send", 8, peer, call);
    nccl.end_launch(launch);
    const auto events = host_double().take_all<CollectiveEvent>(1);
    EXPECT_TRUE(events[0].peers.empty());
  }
}

TEST_F(NcclProfiler, SendsToAllAndReceivesFromAllAreAnAllToAll) {
  V5 nccl(4);
  std::vector<void*> calls;
  for (int peer = 0; peer < 4; ++peer) {
    calls.push_back(nccl.exchange_call("Send", 10));
    calls.push_back(nccl.exchange_call("Recv", 10));
  }
  void* launch = nccl.begin_launch();
  for (int peer = 0; peer < 4; ++peer) {
    nccl.in_launch("Send", 10, peer, calls[0]);
    nccl.in_launch("Recv", 10, peer, calls[1]);
  }
  nccl.end_launch(launch);
  const auto events = host_double().take_all<CollectiveEvent>(1);
  EXPECT_EQ(events[0].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(events[0].bytes, 40U);
}

TEST_F(NcclProfiler, ExchangesOfGraphsAndOfTheTimeBeforeAreNotRecorded) {
  V5 nccl(2);
  host_double().recording = false;
  EXPECT_EQ(nccl.exchange_call("Send", 8), nullptr);
  host_double().recording = true;
  EXPECT_EQ(nccl.exchange_call("Send", 8, true), nullptr);
  void* launch = nccl.begin_launch();
  nccl.in_launch("Send", 8, 1, nullptr);
  nccl.end_launch(launch);
  EXPECT_TRUE(host_double().take().empty());
}

TEST_F(NcclProfiler, V4CollectivesTakeTheTimeOfTheReportBefore) {
  on_new_thread([] {
    V4 nccl(4);
    host_double().now_ns = 1'000;
    nccl.report("AllReduce", 5, "ncclFloat32", 40);  // none before it: left out; ends at 1001
    EXPECT_TRUE(host_double().take().empty());
    host_double().now_ns = 9'000;                    // its kernel was launched in between
    nccl.report("ReduceScatter", 5, "ncclFloat32", 41);
    const auto events = host_double().take_all<CollectiveEvent>(1);
    EXPECT_EQ(to_ns(events[0].start), 1'001);
    EXPECT_EQ(events[0].bytes, 5U * 4 * 4);
    EXPECT_EQ(events[0].sequence, 41U);
    EXPECT_TRUE(events[0].sequence_recorded);
    EXPECT_EQ(events[0].group, kGroupName);
  });
}

TEST_F(NcclProfiler, V4ForgetsAReportOfLongAgo) {
  on_new_thread([] {
    V4 nccl(4);
    nccl.report("AllReduce", 5, "ncclFloat32", 0);
    host_double().now_ns = 60'000'000'000;
    nccl.report("AllReduce", 5, "ncclFloat32", 1);
    const auto events = host_double().take_all<CollectiveEvent>(1);
    EXPECT_EQ(to_ns(events[0].start), 50'000'000'000);  // ten seconds before
  });
}

TEST_F(NcclProfiler, V4SendsAreOneEventALaunch) {
  on_new_thread([] {
    V4 nccl(2);
    host_double().now_ns = 1'000;
    nccl.report("AllReduce", 1, "ncclInt8", 0);
    void* launch = nccl.start({.type = kGroup, .parent = nullptr, .rank = 0, .coll = {}});
    DescriptorV4 event{.type = kP2p, .parent = launch, .rank = 0, .coll = {}};
    event.p2p = {"Recv", nullptr, "ncclFloat16", 6, 1, 1};
    EXPECT_EQ(nccl.start(event), nullptr);
    ncclProfiler_v4.stop_event(launch);
    const auto events = host_double().take_all<CollectiveEvent>(1);
    EXPECT_EQ(to_ns(events[0].start), 1'001);
    EXPECT_EQ(events[0].bytes, 12U);
  });
}

TEST_F(NcclProfiler, OddEventsAndNullsAreSuccessAndNothing) {
  V5 nccl(4);
  void* handle = nullptr;
  DescriptorV5 event{.type = 0, .parent = nullptr, .rank = -1, .coll = {}};
  std::memset(&event.coll, 0xFF, sizeof event.coll);  // NCCL leaves what it does not use as it is
  for (const std::uint64_t type : {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{64},
                                   std::uint64_t{256}, std::uint64_t{1} << 12U,
                                   ~std::uint64_t{0}}) {
    event.type = type;
    handle = this;
    EXPECT_EQ(ncclProfiler_v5.start_event(nccl.context, &handle, &event), kSuccess);
    EXPECT_EQ(handle, nullptr) << type;
  }
  EXPECT_EQ(ncclProfiler_v5.start_event(nullptr, &handle, &event), kSuccess);
  EXPECT_EQ(ncclProfiler_v5.start_event(nccl.context, nullptr, &event), kSuccess);
  EXPECT_EQ(ncclProfiler_v5.start_event(nccl.context, &handle, nullptr), kSuccess);
  EXPECT_EQ(ncclProfiler_v4.start_event(nullptr, nullptr, nullptr), kSuccess);
  EXPECT_EQ(ncclProfiler_v5.stop_event(nullptr), kSuccess);
  EXPECT_EQ(ncclProfiler_v5.record_event_state(nullptr, 99, nullptr), kSuccess);
  EXPECT_EQ(ncclProfiler_v5.finalize(nullptr), kSuccess);
  EXPECT_EQ(ncclProfiler_v5.init(nullptr, 0, nullptr, nullptr, 0, 0, 0, nullptr), kSuccess);
  EXPECT_EQ(ncclProfiler_v4.init(nullptr, nullptr, nullptr, 0, 0, 0, 0, nullptr), kSuccess);
  EXPECT_TRUE(host_double().take().empty());
}

TEST_F(NcclProfiler, NullAndUnknownNamesAreNoCollectives) {
  V5 nccl(4);
  nccl.collective(nullptr, 4, "ncclInt8");
  nccl.collective("WaitSignal", 4, "ncclInt8");
  EXPECT_TRUE(host_double().take().empty());
  nccl.collective("AllReduce", 4, nullptr);
  nccl.collective("AllReduce", std::numeric_limits<std::size_t>::max(), "ncclInt64");
  const auto events = host_double().take_all<CollectiveEvent>(2);
  EXPECT_EQ(events[0].bytes, 0U);
  EXPECT_EQ(events[1].bytes, 0U);
}

TEST_F(NcclProfiler, ANegativeNumberOfRanksIsNotRecorded) {
  V5 nccl(-3);
  nccl.collective("ReduceScatter", 4, "ncclInt8");
  const auto events = host_double().take_all<CollectiveEvent>(1);
  EXPECT_EQ(events[0].group_size, 0U);
  EXPECT_EQ(events[0].bytes, 0U);
}

TEST_F(NcclProfiler, AStopWithoutAStartIsNothing) {
  V5 nccl(2);
  void* launch = nccl.begin_launch();
  nccl.end_launch(launch);
  nccl.end_launch(launch);
  nccl.in_launch("Send", 8, 1, reinterpret_cast<void*>(std::intptr_t{5}));  // outside of any
  nccl.end_launch(launch);
  EXPECT_TRUE(host_double().take().empty());
}

TEST_F(NcclProfiler, ThreadsCallAtTheSameTime) {
  V5 nccl(2);
  constexpr int kThreads = 4, kCalls = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kCalls; ++i) {
        nccl.collective("AllReduce", 4, "ncclInt8");
        nccl.exchange("Send", 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(host_double().take().size(), std::size_t{2} * kThreads * kCalls);
}

TEST(NcclCalls, AreKnownByTheProfilersNameAndByTheFunctions) {
  EXPECT_EQ(nccl_call("AllReduce")->kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(nccl_call("ncclAllReduce")->kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(nccl_call("ncclBcast")->kind, CollectiveKind::kBroadcast);
  EXPECT_EQ(nccl_call("Reduce")->kind, CollectiveKind::kReduce);
  EXPECT_EQ(nccl_call("ReduceScatter")->kind, CollectiveKind::kReduceScatter);
}

TEST(NcclCalls, GatherIsACollectiveWithoutAKindOfOurs) {
  ASSERT_TRUE(nccl_call("Gather"));
  EXPECT_EQ(nccl_call("Gather")->kind, CollectiveKind::kUnknown);
}

TEST(NcclCalls, WhatMovesNothingIsNone) {
  EXPECT_FALSE(nccl_call("ncclGroupEnd"));
  EXPECT_FALSE(nccl_call("WaitSignal"));
  EXPECT_FALSE(nccl_call(""));
  EXPECT_FALSE(nccl_call("nccl"));
  EXPECT_FALSE(nccl_call(nullptr));
}

TEST(NcclTypes, HaveTheSizesOfNccl) {
  EXPECT_EQ(nccl_type_bytes("ncclInt8"), 1U);
  EXPECT_EQ(nccl_type_bytes("ncclFloat8e4m3"), 1U);
  EXPECT_EQ(nccl_type_bytes("ncclBfloat16"), 2U);
  EXPECT_EQ(nccl_type_bytes("ncclFloat32"), 4U);
  EXPECT_EQ(nccl_type_bytes("ncclUint64"), 8U);
  EXPECT_EQ(nccl_type_bytes("Unknown"), 0U);
  EXPECT_EQ(nccl_type_bytes(nullptr), 0U);
}

TEST(NcclBytes, AreTheRanksWholeInput) {
  const auto input = [](const char* name, std::uint64_t message, std::uint32_t ranks) {
    return nccl_input_bytes(*nccl_call(name), message, ranks);
  };
  EXPECT_EQ(input("AllGather", 100, 8), 100U);      // the send count is this rank's part
  EXPECT_EQ(input("ReduceScatter", 100, 8), 800U);  // the receive count is one part of eight
  EXPECT_EQ(input("AlltoAll", 100, 8), 800U);
  EXPECT_EQ(input("AllReduce", 100, 8), 100U);
  EXPECT_EQ(input("ReduceScatter", 100, 0), 0U);    // ranks not known: bytes not recorded
  EXPECT_EQ(input("ReduceScatter", std::numeric_limits<std::uint64_t>::max(), 2), 0U);
}

TEST(NcclGroups, AreNamedByTheirHash) {
  EXPECT_EQ(nccl_group_name(0), "nccl:0000000000000000");
  EXPECT_EQ(nccl_group_name(0xFEDCBA9876543210ULL), "nccl:fedcba9876543210");
}

}  // namespace
}  // namespace bubblesim::capture
