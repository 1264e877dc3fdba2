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

std::vector<Row> kineto_rows() {
  std::ifstream in(kData / "INDEX.tsv");
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> header = split(line);
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = split(line);
    Row row;
    for (std::size_t i = 0; i < header.size() && i < cells.size(); ++i) row[header[i]] = cells[i];
    if (row["kind"] == "kineto") rows.push_back(row);
  }
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
    streams.insert(op.stream.value);
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
    const auto trace = import_kineto_file(kData / row["path"]);
    if (row["kernels"] == "0") {
      ASSERT_FALSE(trace.has_value());
      EXPECT_NE(trace.error().message.find("no device activity"), std::string::npos);
      continue;
    }
    ASSERT_TRUE(trace.has_value()) << trace.error().text();
    const Figures got = figures_of(*trace);
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
    expect_cell(std::to_string(trace->rank), "rank");
    expect_cell(std::to_string(trace->world_size), "world");
    expect_cell(trace->device.name, "gpu");
    EXPECT_EQ(trace->counters.count("kineto_damaged_events_dropped"), 0U);
  }
}

}  // namespace
}  // namespace bubblesim::traces
