// What must be true of every generated sample, whatever its size.
#include "tests/samples/samples.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <ostream>
#include <tuple>

namespace bubblesim::traces {

/// GoogleTest's name of a case.
void PrintTo(const SampleOptions& options, std::ostream* out) {
  *out << options.ranks << " ranks " << options.stages << " stages "
       << options.micro_batches << " micro-batches";
}

namespace {

using std::chrono::milliseconds;

class SampleTraining : public ::testing::TestWithParam<SampleOptions> {};

TEST_P(SampleTraining, OperationsStartAfterTheirLaunchStreamAndEvents) {
  for (const RankTrace& trace : make_sample_training(GetParam()).ranks) {
    std::map<StreamId, TraceTime> free;
    for (const DeviceOp& op : trace.device_ops) {
      const HostCall& launch = trace.host_calls[op.launch];
      EXPECT_EQ(launch.correlation, op.correlation);
      EXPECT_GE(op.start, launch.end());
      EXPECT_GE(op.start, free[op.stream]);
      free[op.stream] = op.end();
    }
    for (const Edge& edge : trace.edges)
      EXPECT_GE(trace.device_ops[edge.after.index()].start,
                trace.device_ops[edge.before.index()].end());
  }
}

TEST_P(SampleTraining, HostCallsAndOperationsAreInOrderOfStart) {
  for (const RankTrace& trace : make_sample_training(GetParam()).ranks) {
    EXPECT_TRUE(std::is_sorted(trace.host_calls.begin(), trace.host_calls.end(),
                               [](const auto& a, const auto& b) { return a.start < b.start; }));
    EXPECT_TRUE(std::is_sorted(trace.device_ops.begin(), trace.device_ops.end(),
                               [](const auto& a, const auto& b) { return a.start < b.start; }));
  }
}

TEST_P(SampleTraining, EveryCollectiveHasAllItsMembersAndTheyEndTogether) {
  std::map<std::pair<std::string, std::uint64_t>, std::vector<TraceTime>> ends;
  std::map<std::pair<std::string, std::uint64_t>, std::uint32_t> sizes;
  for (const RankTrace& trace : make_sample_training(GetParam()).ranks) {
    for (const DeviceOp& op : trace.device_ops) {
      if (op.collective == kNone) continue;
      const Collective& what = trace.collectives[op.collective];
      const auto key = std::pair{trace.names[what.group], what.sequence};
      ends[key].push_back(op.end());
      sizes[key] = what.group_size;
      EXPECT_TRUE(std::count(what.peers.begin(), what.peers.end(), trace.rank) == 1);
    }
  }
  for (const auto& [key, times] : ends) {
    EXPECT_EQ(times.size(), sizes[key]) << key.first << ' ' << key.second;
    EXPECT_EQ(*std::min_element(times.begin(), times.end()),
              *std::max_element(times.begin(), times.end()));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, SampleTraining,
    ::testing::Values(SampleOptions{}, SampleOptions{1, 1, 1, 1, 1, 3},
                      SampleOptions{2, 1, 2, 2, 2, 4}, SampleOptions{4, 4, 6, 2, 4, 5},
                      SampleOptions{6, 3, 2, 1, 3, 6}));

TEST(SampleTrainingJob, AnIterationTakesAbout120MsAndTheHostRunsAhead) {
  const JobTrace job = make_sample_training(SampleOptions{});
  ASSERT_EQ(job.ranks.size(), 4u);
  for (const RankTrace& trace : job.ranks) {
    EXPECT_EQ(trace.device.name, "NVIDIA A100-SXM4-40GB");
    for (const Marker& marker : trace.markers) {
      if (marker.kind != MarkerKind::kIteration) continue;
      EXPECT_GT(marker.duration, milliseconds{100});
      EXPECT_LT(marker.duration, milliseconds{140});
    }
    std::vector<Duration> ahead;
    for (const DeviceOp& op : trace.device_ops)
      ahead.push_back(op.start - trace.host_calls[op.launch].end());
    std::nth_element(ahead.begin(), ahead.begin() + ahead.size() / 2, ahead.end());
    EXPECT_GT(ahead[ahead.size() / 2], milliseconds{20});
  }
}

TEST(SampleTrainingJob, SeedsChangeTimesAndNothingElse) {
  SampleOptions options;
  const RankTrace rank = make_sample_training(options).ranks[0];
  options.seed = 99;
  const RankTrace other = make_sample_training(options).ranks[0];
  EXPECT_EQ(rank.device_ops.size(), other.device_ops.size());
  EXPECT_EQ(rank.edges.size(), other.edges.size());
  EXPECT_NE(rank.device_ops.back().end(), other.device_ops.back().end());
}

TEST(SampleTrainingJob, FaultsOfOptionsAreAllReported) {
  EXPECT_TRUE(check_options(SampleOptions{}).empty());
  SampleOptions options;
  options.ranks = 5;
  options.iterations = 0;
  const Errors faults = check_options(options);
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].text(), "iterations: found 0, expected at least 1");
  EXPECT_EQ(faults[1].text(), "ranks: found 5, expected a multiple of the 2 stages");
}

TEST(SampleInference, EightPassesOf120ShortKernelsInAbout3MsEach) {
  const JobTrace job = make_sample_inference(SampleServiceOptions{});
  ASSERT_EQ(job.ranks.size(), 1u);
  const RankTrace& trace = job.ranks[0];
  EXPECT_EQ(std::count_if(trace.device_ops.begin(), trace.device_ops.end(),
                          [](const auto& op) { return op.kind == DeviceOpKind::kKernel; }),
            8 * 120);
  ASSERT_EQ(trace.markers.size(), 8u);
  for (const Marker& marker : trace.markers) {
    EXPECT_GT(marker.duration, std::chrono::microseconds{2500});
    EXPECT_LT(marker.duration, std::chrono::microseconds{3500});
  }
}

}  // namespace
}  // namespace bubblesim::traces
