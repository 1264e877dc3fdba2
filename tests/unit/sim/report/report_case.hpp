// A store for one test, and runs in it with figures that the test chooses.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "sim/report/report_page.hpp"
#include "tests/unit/sim/store/sample_record.hpp"

namespace bubblesim::report {

class ReportCase : public testing::Test {
 protected:
  ReportCase() {
    std::string pattern = (std::filesystem::temp_directory_path() / "report_test_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    store_ = std::move(
        *store::open_store((folder_ / "results.db").string(), store::StoreAccess::kWrite));
  }
  ~ReportCase() override { std::filesystem::remove_all(folder_); }

  /// A run of one policy at a load and a seed, with its p95 latency and kept training throughput.
  store::RunRecord run(std::uint64_t number, const std::string& policy, const std::string& load,
                std::uint64_t seed, double p95, double kept) {
    store::RunRecord record = store::sample_record(number);
    record.rows.erase(record.rows.begin());
    record.latencies.clear();
    record.rows[0].policy = 0;
    record.run.seed = seed;
    record.run.settings = {{"/policies/0", '"' + policy + '"'}, {"/load", load}};
    record.run.config = R"({"load":)" + load + R"(,"policies":[")" + policy + R"("]})";
    set_cell(record, 0, "policy", policy);
    set_cell(record, 0, "oracle", std::int64_t{policy == "ideal" ? 1 : 0});
    set_cell(record, 0, "latency_p95_ms", p95);
    set_cell(record, 0, "training_normalised_fraction", kept);
    set_cell(record, 0, "losses", std::string());
    return record;
  }
  void add(const store::RunRecord& record) { ASSERT_TRUE(store_->add({&record, 1})); }
  [[nodiscard]] ReportData report(const ReportOptions& options = {}) {
    auto data = collect_report(*store_, options);
    EXPECT_TRUE(data) << data.error().text();
    return data ? *std::move(data) : ReportData{};
  }

  std::filesystem::path folder_;
  std::unique_ptr<store::ResultsStore> store_;
};

inline const ReportValue& figure(const ReportPoint& point, std::string_view column) {
  return point.figures[metric_place(column)];
}

}  // namespace bubblesim::report
