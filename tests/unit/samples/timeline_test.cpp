// The player by hand-sized scripts. Costs of calls are jittered, so the tests hold relations, and
// exact numbers only where the script fixes them.
#include "tests/samples/timeline.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace bubblesim::traces {
namespace {

using std::chrono::microseconds;

SampleKernel kernel(Duration duration) { return {"kernel", LaunchShape{}, duration}; }

Collective pair_transfer(RankScript& script, CollectiveKind kind) {
  Collective what;
  what.kind = kind;
  what.group = script.name("pair");
  what.group_size = 2;
  what.peers = {0, 1};
  what.sequence = 1;
  what.sequence_recorded = true;
  return what;
}

TEST(Timeline, AStreamRunsItsKernelsOneAfterTheOther) {
  RankScript script(0, 1, 1);
  const auto stream = script.add_stream(7, 0);
  script.launch(stream, kernel(microseconds{100}));
  script.launch(stream, kernel(microseconds{100}));
  std::vector<RankScript> scripts;
  scripts.push_back(std::move(script));
  const JobTrace job = play(std::move(scripts), TraceTime{});
  const auto& ops = job.ranks[0].device_ops;
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_GE(ops[1].start, ops[0].end());
  EXPECT_LT(ops[1].start, ops[0].end() + microseconds{2});
}

TEST(Timeline, AnOrderedStreamWaitsAndTheEdgeIsRecorded) {
  RankScript script(0, 1, 1);
  const auto first = script.add_stream(7, 0);
  const auto second = script.add_stream(8, 0);
  script.launch(first, kernel(microseconds{500}));
  script.order(first, second);
  script.launch(second, kernel(microseconds{10}));
  std::vector<RankScript> scripts;
  scripts.push_back(std::move(script));
  const RankTrace trace = play(std::move(scripts), TraceTime{}).ranks[0];
  ASSERT_EQ(trace.edges.size(), 1u);
  EXPECT_EQ(trace.edges[0].before.value, 0u);
  EXPECT_EQ(trace.edges[0].after.value, 1u);
  EXPECT_GE(trace.device_ops[1].start, trace.device_ops[0].end());
}

TEST(Timeline, MembersOfATransferEndTogetherOneTransferAfterTheLastStarted) {
  std::vector<RankScript> scripts;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    RankScript script(rank, 2, 1);
    const auto stream = script.add_stream(7, 0);
    if (rank == 1) script.think(microseconds{10000});
    script.collective(stream, kernel(microseconds{100}),
                      pair_transfer(script, rank == 0 ? CollectiveKind::kRecv
                                                      : CollectiveKind::kSend));
    scripts.push_back(std::move(script));
  }
  const JobTrace job = play(std::move(scripts), TraceTime{});
  const DeviceOp& early = job.ranks[0].device_ops[0];
  const DeviceOp& late = job.ranks[1].device_ops[0];
  EXPECT_EQ(late.duration, microseconds{100});
  EXPECT_EQ(early.end(), late.end());
  EXPECT_GT(early.duration, microseconds{7000});
}

TEST(Timeline, ASynchronisationReturnsAfterTheStreamIsEmpty) {
  RankScript script(0, 1, 1);
  const auto stream = script.add_stream(7, 0);
  script.launch(stream, kernel(microseconds{1000}));
  script.stream_sync(stream);
  std::vector<RankScript> scripts;
  scripts.push_back(std::move(script));
  const RankTrace trace = play(std::move(scripts), TraceTime{}).ranks[0];
  ASSERT_EQ(trace.host_calls.size(), 2u);
  EXPECT_EQ(trace.host_calls[1].kind, HostCallKind::kStreamSync);
  EXPECT_EQ(trace.host_calls[1].end(), trace.device_ops[0].end() + microseconds{3});
}

TEST(TimelineDeathTest, ATransferWithoutItsPartnerIsAProgrammerFault) {
  const auto lonely = [] {
    RankScript script(0, 2, 1);
    const auto stream = script.add_stream(7, 0);
    script.collective(stream, kernel(microseconds{1}),
                      pair_transfer(script, CollectiveKind::kSend));
    std::vector<RankScript> scripts;
    scripts.push_back(std::move(script));
    return play(std::move(scripts), TraceTime{});
  };
  EXPECT_DEATH((void)lonely(), "deadlock");
}

}  // namespace
}  // namespace bubblesim::traces
