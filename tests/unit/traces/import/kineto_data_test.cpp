// Every Kineto file of the data folder, against the figures that its index gives. The index was
// made by another program; skipped where the folder is absent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "traces/align.hpp"
#include "traces/import/kineto_import.hpp"

namespace bubblesim::traces {
namespace {

namespace fs = std::filesystem;

const fs::path kData = BUBBLESIM_DATA_DIR;

using Row = std::map<std::string, std::string>;

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells;
  std::stringstream in(line);
  for (std::string cell; std::getline(in, cell, '\t');) cells.push_back(cell);
  return cells;
}

std::vector<Row> all_rows() {
  std::ifstream in(kData / "INDEX.tsv");
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> header = split(line);
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = split(line);
    Row row;
    for (std::size_t i = 0; i < header.size() && i < cells.size(); ++i) row[header[i]] = cells[i];
    rows.push_back(row);
  }
  return rows;
}

std::vector<Row> kineto_rows() {
  std::vector<Row> rows = all_rows();
  std::erase_if(rows, [](Row& row) { return row["kind"] != "kineto"; });
  return rows;
}

struct Figures {
  std::size_t kernels = 0;
  std::size_t comm = 0;
  std::size_t mem = 0;
  std::size_t streams = 0;
  double span_ms = 0;
  double idle = 0;
};

Figures figures_of(const RankTrace& trace) {
  Figures out;
  std::set<std::uint32_t> streams;
  TraceTime end = trace.device_ops.front().start;
  const TraceTime start = end;
  Duration busy{};
  for (const DeviceOp& op : trace.device_ops) {
    const bool kernel = op.kind == DeviceOpKind::kKernel || op.kind == DeviceOpKind::kCollective;
    ++(kernel ? out.kernels : out.mem);
    out.comm += op.kind == DeviceOpKind::kCollective ? 1 : 0;
    if (kernel) streams.insert(op.stream.value);  // the index leaves out streams of copies alone
    if (op.end() > end) {
      busy += op.end() - std::max(end, op.start);
      end = op.end();
    }
  }
  out.streams = streams.size();
  out.span_ms = to_seconds(end - start) * 1e3;
  out.idle = end == start ? 0 : 1 - to_seconds(busy) / to_seconds(end - start);
  return out;
}

class KinetoData : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kData / "INDEX.tsv")) GTEST_SKIP() << "no data folder at " << kData;
  }
};

TEST_F(KinetoData, every_file_agrees_with_the_index) {
  for (Row& row : kineto_rows()) {
    SCOPED_TRACE(row["path"]);
    const auto process = import_kineto_process(kData / row["path"]);
    if (row["kernels"] == "0") {
      ASSERT_FALSE(process.has_value());
      EXPECT_NE(process.error().message.find("no device activity"), std::string::npos);
      continue;
    }
    ASSERT_TRUE(process.has_value()) << process.error().text();
    const RankTrace& trace = process->ranks.front();
    const Figures got = figures_of(trace);
    EXPECT_EQ(std::to_string(got.kernels), row["kernels"]);
    EXPECT_EQ(std::to_string(got.comm), row["comm"]);
    EXPECT_EQ(std::to_string(got.mem), row["mem"]);
    EXPECT_EQ(std::to_string(got.streams), row["streams"]);
    EXPECT_NEAR(got.span_ms, std::stod(row["span_ms"]), 0.0051);
    EXPECT_NEAR(got.idle, std::stod(row["idle"]), 0.000051);
    // Empty cells: the file does not say.
    const auto expect_cell = [&row](const std::string& got_text, const char* column) {
      if (!row[column].empty()) {
        EXPECT_EQ(got_text, row[column]) << column;
      }
    };
    expect_cell(std::to_string(trace.rank), "rank");
    expect_cell(std::to_string(trace.world_size), "world");
    expect_cell(trace.device.name, "gpu");
    EXPECT_EQ(trace.counters.count("kineto_damaged_events_dropped"), 0U);
  }
}

TEST_F(KinetoData, files_of_other_kinds_are_refused_with_a_reason) {
  for (Row& row : all_rows()) {
    if (row["kind"] == "kineto") continue;
    SCOPED_TRACE(row["path"]);
    const auto trace = import_kineto_process(kData / row["path"]);
    ASSERT_FALSE(trace.has_value());
    EXPECT_NE(trace.error().message.find("expected a PyTorch profiler"), std::string::npos)
        << trace.error().message;
  }
}

std::vector<fs::path> files_under(const std::string& folder) {
  std::vector<fs::path> paths;
  for (Row& row : kineto_rows()) {
    if (row["path"].starts_with(folder)) paths.push_back(kData / row["path"]);
  }
  return paths;
}

TEST_F(KinetoData, ends_of_collectives_agree_after_alignment) {
  for (const std::string folder :
       {"KellerJordan+modded-nanogpt", "ModelTC+lightllm/test/model/logs/",
        "ModelTC+lightllm/test/model/logs_sglang/",
        "pytorch+torchrec/examples/golden_training/log/resnet18",
        "pytorch+torchrec/examples/golden_training/trace/sst_long_a2a_optimizer/",
        "pytorch+torchrec/examples/golden_training/trace/sst_long_a2a_optimizer_3/",
        "pytorch+torchrec/examples/golden_training/trace/sst_long_a2a_optimizer_5_qcomm/"}) {
    SCOPED_TRACE(folder);
    auto job = import_kineto_job(files_under(folder));
    ASSERT_TRUE(job.has_value()) << job.error().text();
    EXPECT_EQ(job->ranks.size(), job->ranks.front().world_size);
    const AlignmentReport report = align_ranks(*job);
    EXPECT_LT(report.residual_median, std::chrono::microseconds(120));
    EXPECT_GT(report.matched, report.unmatched);
    for (const RankAlignment& rank : report.ranks) {
      // One host each, so one clock: offsets are what profilers' conversions differ by.
      EXPECT_LT(rank.offset, std::chrono::microseconds(100));
      EXPECT_GT(rank.offset, std::chrono::microseconds(-100));
    }
  }
}

}  // namespace
}  // namespace bubblesim::traces
