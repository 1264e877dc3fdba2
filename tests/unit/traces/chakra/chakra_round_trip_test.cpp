// Export and import again: what a Chakra file keeps of a trace.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fault.hpp"
#include "tests/unit/traces/import/invariants.hpp"
#include "traces/export/chakra_export.hpp"
#include "traces/import/chakra/chakra_attributes.hpp"
#include "traces/import/chakra/chakra_import.hpp"
#include "traces/import/kineto_import.hpp"
#include "traces/record_names.hpp"

namespace bubblesim::traces {
namespace {

/// A job of traces/samples, from its files.
JobTrace sample(const std::vector<std::string>& files) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& file : files) {
    paths.push_back(std::filesystem::path(BUBBLESIM_SOURCE_DIR) / "traces/samples" / file);
  }
  return must(import_kineto_job(paths));
}
JobTrace training() {
  return sample({"training/rank0.json.gz", "training/rank1.json.gz", "training/rank2.json.gz",
                 "training/rank3.json.gz"});
}
JobTrace inference() { return sample({"inference.json.gz"}); }

using EdgeKey = std::tuple<std::uint32_t, std::uint32_t, bool>;

/// Edges within a stream are implied by its order.
std::set<EdgeKey> edges_across_streams(const RankTrace& trace) {
  std::set<EdgeKey> out;
  for (const Edge& edge : trace.edges) {
    const DeviceOp& before = trace.device_ops[edge.before.index()];
    const DeviceOp& after = trace.device_ops[edge.after.index()];
    if (before.stream == after.stream) continue;
    out.insert({edge.before.value, edge.after.value, edge.inferred});
  }
  return out;
}

void expect_same_collective(const RankTrace& trace, const DeviceOp& op, const RankTrace& again,
                            const DeviceOp& copy) {
  ASSERT_EQ(op.collective == kNone, copy.collective == kNone);
  if (op.collective == kNone) return;
  const Collective& have = again.collectives[copy.collective];
  const Collective& want = trace.collectives[op.collective];
  EXPECT_EQ(have.kind, want.kind);
  EXPECT_EQ(have.bytes, want.bytes);
  EXPECT_EQ(again.names[have.group], trace.names[want.group]);
  EXPECT_EQ(have.group_size, want.group_size);
  EXPECT_EQ(have.peers, want.peers);
  EXPECT_EQ(have.place, want.place);
  EXPECT_EQ(have.sequence, want.sequence);
  EXPECT_EQ(have.sequence_recorded, want.sequence_recorded);
}

void expect_same_ops(const RankTrace& trace, const RankTrace& again) {
  ASSERT_EQ(again.device_ops.size(), trace.device_ops.size());
  for (std::size_t i = 0; i < trace.device_ops.size(); ++i) {
    const DeviceOp& want = trace.device_ops[i];
    const DeviceOp& have = again.device_ops[i];
    EXPECT_EQ(have.start, want.start);
    EXPECT_EQ(have.duration, want.duration);
    EXPECT_EQ(have.correlation, want.correlation);
    EXPECT_EQ(again.names[have.name], trace.names[want.name]);
    EXPECT_EQ(have.stream, want.stream);
    EXPECT_EQ(have.kind, want.kind);
    EXPECT_EQ(have.direction, want.direction);
    EXPECT_EQ(have.bytes, want.bytes);
    EXPECT_EQ(have.launch, want.launch);
    if (want.kind == DeviceOpKind::kKernel || want.kind == DeviceOpKind::kCollective) {
      EXPECT_EQ(again.shapes[have.shape], trace.shapes[want.shape]);
    }
    expect_same_collective(trace, want, again, have);
  }
}

void expect_same_host(const RankTrace& trace, const RankTrace& again) {
  ASSERT_EQ(again.host_calls.size(), trace.host_calls.size());
  for (std::size_t i = 0; i < trace.host_calls.size(); ++i) {
    const HostCall& want = trace.host_calls[i];
    const HostCall& have = again.host_calls[i];
    EXPECT_EQ(have.start, want.start);
    EXPECT_EQ(have.duration, want.duration);
    EXPECT_EQ(have.correlation, want.correlation);
    EXPECT_EQ(again.names[have.name], trace.names[want.name]);
    EXPECT_EQ(have.thread, want.thread);
    EXPECT_EQ(have.kind, want.kind);
    EXPECT_EQ(have.stream, want.stream);
    EXPECT_EQ(have.event, want.event);
  }
  ASSERT_EQ(again.markers.size(), trace.markers.size());
  std::multiset<std::pair<std::int64_t, std::int64_t>> want;
  std::multiset<std::pair<std::int64_t, std::int64_t>> have;
  for (const Marker& marker : trace.markers) want.insert({to_ns(marker.start), marker.number});
  for (const Marker& marker : again.markers) have.insert({to_ns(marker.start), marker.number});
  EXPECT_EQ(have, want);
}

void expect_same(const RankTrace& trace, const RankTrace& again) {
  EXPECT_EQ(broken_promise(again), "");
  EXPECT_EQ(again.rank, trace.rank);
  EXPECT_EQ(again.world_size, trace.world_size);
  EXPECT_EQ(again.device.name, trace.device.name);
  EXPECT_EQ(again.device.sm_count, trace.device.sm_count);
  EXPECT_EQ(again.device.memory_bytes, trace.device.memory_bytes);
  ASSERT_EQ(again.streams.size(), trace.streams.size());
  for (std::size_t i = 0; i < trace.streams.size(); ++i) {
    EXPECT_EQ(again.streams[i].system_id, trace.streams[i].system_id);
    EXPECT_EQ(again.streams[i].priority, trace.streams[i].priority);
    EXPECT_EQ(again.streams[i].device, trace.streams[i].device);
  }
  expect_same_ops(trace, again);
  expect_same_host(trace, again);
  EXPECT_EQ(edges_across_streams(again), edges_across_streams(trace));
}

// Files of kAttributesVersion 1 hold these words. Others need another version.
TEST(ChakraRoundTrip, TheWordsOfRecordsAreThoseOfTheFormat) {
  const auto joined = [](const auto& words) {
    std::string text;
    for (const std::string_view word : words) text += std::string(word) + " ";
    return text;
  };
  EXPECT_EQ(chakra::kAttributesVersion, 1U);
  EXPECT_EQ(joined(kDeviceOpKindNames), "kernel copy memset collective ");
  EXPECT_EQ(joined(kCollectiveKindNames),
            "unknown all_reduce all_gather reduce_scatter broadcast reduce all_to_all send recv "
            "send_recv barrier ");
  EXPECT_EQ(joined(kMarkerKindNames), "iteration phase micro_batch user ");
  EXPECT_EQ(joined(kStallKindNames), "queue_full profiler module_load other ");
}

TEST(ChakraRoundTrip, ATrainingJobComesBackToTheNanosecond) {
  const JobTrace job = training();
  const std::string prefix = ::testing::TempDir() + "round_trip";
  const auto stats = export_chakra(job, prefix);
  ASSERT_TRUE(stats) << stats.error().text();
  ASSERT_EQ(stats->files.size(), job.ranks.size());
  EXPECT_EQ(stats->files[1], prefix + ".1.et");
  const std::vector<std::filesystem::path> paths(stats->files.begin(), stats->files.end());
  const auto again = import_chakra(paths);
  ASSERT_TRUE(again) << again.error().text();
  ASSERT_EQ(again->ranks.size(), job.ranks.size());
  for (std::size_t i = 0; i < job.ranks.size(); ++i) expect_same(job.ranks[i], again->ranks[i]);
}

TEST(ChakraRoundTrip, OddTimesStallsEventsAndPrioritiesComeBack) {
  RankTrace trace = inference().ranks.front();
  trace.streams[0].priority = -5;
  trace.streams[0].device = 3;
  trace.host_calls[0].event = 99;
  trace.host_calls[0].start -= Duration{1'234'567'890'123};  // before zero, perhaps
  trace.stalls = {{trace.host_calls[1].start, Duration{7}, ThreadId{0}, StallKind::kModuleLoad}};
  const auto again = import_chakra_bytes(chakra_bytes(trace), "job.0.et");
  ASSERT_TRUE(again) << again.error().text();
  expect_same(trace, *again);
  ASSERT_EQ(again->stalls.size(), 1U);
  EXPECT_EQ(again->stalls[0].kind, StallKind::kModuleLoad);
  EXPECT_EQ(again->stalls[0].duration, Duration{7});
}

TEST(ChakraRoundTrip, NoLengthOfTheMetadataIsTakenForText) {
  RankTrace trace = inference().ranks.front();
  trace.device.name.clear();
  for (int i = 0; i < 200; ++i) {  // the first byte of the file is a brace, or white space, in turn
    EXPECT_TRUE(looks_like_chakra_bytes(chakra_bytes(trace).substr(0, 4096)));
    trace.device.name += 'x';
  }
}

TEST(ChakraRoundTrip, TheSameTraceGivesTheSameBytes) {
  const RankTrace trace = inference().ranks.front();
  EXPECT_EQ(chakra_bytes(trace), chakra_bytes(trace));
}

TEST(ChakraExport, WaitsStreamsAndLaunchesAreDependencies) {
  RankTrace trace;
  trace.names.intern("");
  trace.threads = {{1, "main"}};
  trace.streams = {{7}};
  trace.shapes.intern(LaunchShape{});
  for (std::int64_t i = 0; i < 3; ++i) {
    HostCall call;
    call.start = TraceTime{Duration{100 * i}};
    call.duration = Duration{i == 2 ? 1000 : 50};
    call.kind = i == 2 ? HostCallKind::kStreamSync : HostCallKind::kLaunchKernel;
    call.correlation = static_cast<std::uint64_t>(i + 1);
    call.stream = 0;
    trace.host_calls.push_back(call);
  }
  for (std::uint32_t i = 0; i < 2; ++i) {
    DeviceOp op;
    op.start = TraceTime{Duration{300 + 200 * i}};
    op.duration = Duration{100};
    op.launch = i;
    op.correlation = i + 1;
    trace.device_ops.push_back(op);
  }
  const auto stats = export_chakra({{trace}}, ::testing::TempDir() + "three_calls");
  ASSERT_TRUE(stats) << stats.error().text();
  // Calls: two after the one before them, and the wait after the second kernel. Kernels: two
  // launches, and the second one after the first.
  EXPECT_EQ(stats->dependencies, 2U + 1U + 2U + 1U);
  EXPECT_EQ(stats->nodes, 5U);
}

TEST(ChakraExport, AFolderThatIsMissingIsAFault) {
  EXPECT_FALSE(export_chakra(inference(), "no/such/folder/job"));
}

}  // namespace
}  // namespace bubblesim::traces
