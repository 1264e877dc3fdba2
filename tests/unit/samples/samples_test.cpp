// The stored samples are what the generator makes, and a sample that was written as the profiler
// writes and read by the importer is the same trace.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "tests/fault.hpp"
#include "tests/samples/samples.hpp"
#include "traces/import/kineto_import.hpp"
#include "traces/meeting_key.hpp"

namespace bubblesim::traces {
namespace {

using EdgeTimes = std::set<std::pair<std::uint64_t, std::uint64_t>>;

/// Edges by the correlations of their ends, which survive reordering.
EdgeTimes edges_of(const RankTrace& trace) {
  EdgeTimes edges;
  for (const Edge& edge : trace.edges)
    edges.emplace(trace.device_ops[edge.before.index()].correlation,
                  trace.device_ops[edge.after.index()].correlation);
  return edges;
}

void expect_same_collective(const RankTrace& made, const DeviceOp& a, const RankTrace& read,
                            const DeviceOp& b) {
  ASSERT_EQ(a.collective == kNone, b.collective == kNone);
  if (a.collective == kNone) return;
  const Collective& x = made.collectives[a.collective];
  const Collective& y = read.collectives[b.collective];
  EXPECT_EQ(x.kind, y.kind);
  EXPECT_EQ(x.bytes, y.bytes);
  EXPECT_EQ(made.names[x.group], read.names[y.group]);
  EXPECT_EQ(x.group_size, y.group_size);
  EXPECT_EQ(partners(made, x), partners(read, y));
  if (is_point_to_point(x.kind)) return;  // whose numbers in files are not believed
  EXPECT_EQ(x.peers, y.peers);
  EXPECT_EQ(x.sequence, y.sequence);
  EXPECT_TRUE(y.sequence_recorded);
}

void expect_same(const RankTrace& made, const RankTrace& read) {
  EXPECT_EQ(made.rank, read.rank);
  EXPECT_EQ(made.world_size, read.world_size);
  EXPECT_EQ(made.device.name, read.device.name);
  EXPECT_EQ(made.device.sm_count, read.device.sm_count);
  ASSERT_EQ(made.host_calls.size(), read.host_calls.size());
  for (std::size_t i = 0; i < made.host_calls.size(); ++i) {
    EXPECT_EQ(made.host_calls[i].start, read.host_calls[i].start);
    EXPECT_EQ(made.host_calls[i].duration, read.host_calls[i].duration);
    EXPECT_EQ(made.host_calls[i].kind, read.host_calls[i].kind);
  }
  ASSERT_EQ(made.device_ops.size(), read.device_ops.size());
  for (std::size_t i = 0; i < made.device_ops.size(); ++i) {
    const DeviceOp& a = made.device_ops[i];
    const DeviceOp& b = read.device_ops[i];
    EXPECT_EQ(a.start, b.start);
    EXPECT_EQ(a.duration, b.duration);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.launch, b.launch);
    EXPECT_EQ(made.names[a.name], read.names[b.name]);
    if (a.kind != DeviceOpKind::kCopy)
      EXPECT_EQ(made.shapes[a.shape], read.shapes[b.shape]);
    else EXPECT_EQ(std::tie(a.direction, a.bytes), std::tie(b.direction, b.bytes));
    expect_same_collective(made, a, read, b);
  }
  EXPECT_EQ(edges_of(made), edges_of(read));
  EXPECT_EQ(made.memory.size(), read.memory.size());
}

std::int64_t iterations(const RankTrace& trace) {
  return std::count_if(trace.markers.begin(), trace.markers.end(),
                       [](const Marker& m) { return m.kind == MarkerKind::kIteration; });
}

TEST(SampleRoundTrip, TrainingSurvivesTheProfilersFormat) {
  for (const RankTrace& made : make_sample_training(SampleOptions{}).ranks) {
    const auto read = must(import_kineto_text(write_kineto_json(made), "sample.json"));
    expect_same(made, read);
    EXPECT_EQ(iterations(read), 4);
    EXPECT_FALSE(read.counters.has_error());
  }
}

TEST(SampleRoundTrip, InferenceSurvivesTheProfilersFormat) {
  const RankTrace made = make_sample_inference(SampleServiceOptions{}).ranks[0];
  const auto read = must(import_kineto_text(write_kineto_json(made), "sample.json"));
  expect_same(made, read);
  EXPECT_EQ(iterations(read), 8);
}

TEST(SampleRoundTrip, TheStoredJobIsReadAsFourRanksWithoutLoss) {
  const std::filesystem::path folder =
      std::filesystem::path(BUBBLESIM_SOURCE_DIR) / "traces" / "samples" / "training";
  const auto job = must(import_kineto_job(std::vector<std::filesystem::path>{
      folder / "rank0.json.gz", folder / "rank1.json.gz", folder / "rank2.json.gz",
      folder / "rank3.json.gz"}));
  ASSERT_EQ(job.ranks.size(), 4u);
  for (const RankTrace& trace : job.ranks)
    for (const auto& [name, entry] : trace.counters)
      EXPECT_LT(entry.severity, Severity::kLoss) << name << ": " << entry.count;
}

std::string gunzip(const std::filesystem::path& path) {
  std::string out;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return out;
  char buffer[1 << 16];
  for (int n = gzread(file, buffer, sizeof buffer); n > 0; n = gzread(file, buffer, sizeof buffer))
    out.append(buffer, static_cast<std::size_t>(n));
  gzclose(file);
  return out;
}

// Compared before compression, so that another release of zlib does not fail the test.
TEST(SampleFiles, StoredSamplesAreWhatTheGeneratorMakes) {
  const std::filesystem::path folder =
      std::filesystem::path(BUBBLESIM_SOURCE_DIR) / "traces" / "samples";
  for (const SampleFile& file : sample_files()) {
    ASSERT_TRUE(std::filesystem::exists(folder / file.path)) << file.path;
    EXPECT_TRUE(gunzip(folder / file.path) == file.json)
        << file.path << " differs; traces/samples/README.md says how to write it anew";
  }
}

}  // namespace
}  // namespace bubblesim::traces
