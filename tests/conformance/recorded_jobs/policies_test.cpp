// Under every policy, offline and online: what a row says that was served is what the filler's
// passes served.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/observe/result_rows.hpp"
#include "sim/run/run_policies.hpp"
#include "tests/conformance/recorded_jobs/generated_job.hpp"
#include "tests/conformance/recorded_jobs/recorded_cases.hpp"
#include "tests/folders.hpp"

namespace bubblesim::testing {
namespace {

using namespace std::chrono_literals;

// Under sanitizers, a run of all policies beside a larger job takes tens of seconds.
constexpr std::uintmax_t kLargestPolicyJob = 100'000;
constexpr std::uint64_t kGigabyte = 1'000'000'000;

/// The cells of one row, by column.
class RowCells {
 public:
  explicit RowCells(const observe::ResultRow& row) : row_(row) {}

  [[nodiscard]] std::string text(std::string_view column) const {
    const auto* text = std::get_if<std::string>(&cell(column));
    return text == nullptr ? std::string() : *text;
  }
  /// 0 where the cell is empty.
  [[nodiscard]] double number(std::string_view column) const {
    if (const auto* whole = std::get_if<std::int64_t>(&cell(column))) {
      return static_cast<double>(*whole);
    }
    const auto* real = std::get_if<double>(&cell(column));
    return real == nullptr ? 0 : *real;
  }

 private:
  [[nodiscard]] const observe::Cell& cell(std::string_view column) const {
    const auto columns = observe::result_columns();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].name == column) return row_.cells[i];
    }
    ADD_FAILURE() << "no column " << column;
    return row_.cells.front();
  }

  const observe::ResultRow& row_;
};

// One request is one pass: what the row says of requests is what it says of passes.
void expect_requests_are_passes(const RowCells& row) {
  const double passes = row.number("filler_passes");
  EXPECT_EQ(row.number("requests_completed"), passes);
  EXPECT_EQ(row.number("filler_requests_per_s") > 0, passes > 0);
  EXPECT_EQ(row.number("filler_normalised_fraction") > 0, passes > 0);
  if (passes > 0) {
    EXPECT_GT(row.number("filler_sm_fraction"), 0);
    EXPECT_GT(row.number("gpu_busy_fraction"), 0);
  }
}

void expect_training_rates_are_iterations(const RowCells& row) {
  const bool any = row.number("training_iterations") > 0;
  EXPECT_EQ(row.number("training_iterations_per_s") > 0, any);
  EXPECT_EQ(row.number("training_normalised_fraction") > 0, any);
}

class UnderEveryPolicy : public RecordedJobTest {
 protected:
  // Beside the job of `paths`: a service of twenty kernels of 200 us, always busy or at the load
  // that half of its passes would be, in windows of so many iterations of the job.
  void expect_rows_to_hold(const std::vector<std::string>& paths) {
    run::RunConfig config = config_of(paths);
    config.fillers.push_back(filler("offline", observe::FillerMode::kOffline));
    expect_rows_of(config);
    config.fillers.front() = filler("online", observe::FillerMode::kOnline);
    config.fillers.front().arrivals = workload::PoissonArrivals{100};
    expect_rows_of(config);
    // More than a GPU of the service's own could serve.
    config.fillers.front().arrivals = workload::PoissonArrivals{1000};
    expect_rows_of(config);
  }

  const TempFolder folder_;

 private:
  run::RunConfig config_of(const std::vector<std::string>& paths) const {
    run::RunConfig config;
    config.name = "conformance";
    config.device = "a100-80gb";
    config.duration = 700ms;
    config.warmup = 200ms;
    config.training.traces = paths;
    config.training.memory = Bytes{10 * kGigabyte};
    for (const policy::PolicySpec& spec : registry_.all()) {
      config.policies.push_back({spec.name, policy::defaults(spec)});
    }
    return config;
  }

  run::FillerConfig filler(const char* name, observe::FillerMode mode) const {
    GeneratedJob service;
    service.ranks = 1;
    service.iterations = 1;
    service.marks = false;
    service.kernels = 20;
    service.kernel = 200us;
    run::FillerConfig filler;
    filler.name = name;
    filler.mode = mode;
    filler.memory = Bytes{5 * kGigabyte};
    filler.program =
        run::TraceProgram{folder_.write("service.json", kineto_files(service).front())};
    return filler;
  }

  void expect_rows_of(const run::RunConfig& config) const {
    const auto loaded = run::load_run(config, kDeviceFolder);
    if (!loaded) GTEST_SKIP() << loaded.error().front().text();
    const auto report = run::run_policies(*loaded, registry_, {});
    ASSERT_TRUE(report) << report.error().text();
    for (const observe::ResultRow& row : observe::result_rows(*report)) {
      const RowCells cells(row);
      SCOPED_TRACE(cells.text("policy") + ", " + cells.text("filler"));
      expect_requests_are_passes(cells);
      expect_training_rates_are_iterations(cells);
    }
  }

  policy::Registry registry_ = policies::builtin_policies();
};

TEST_P(UnderEveryPolicy, rows_say_what_passes_served) { expect_rows_to_hold(GetParam().paths); }

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(UnderEveryPolicy);
INSTANTIATE_TEST_SUITE_P(data, UnderEveryPolicy, ::testing::ValuesIn(jobs_up_to(kLargestPolicyJob)),
                         case_name);

class GeneratedUnderPolicies : public UnderEveryPolicy {};

TEST_P(GeneratedUnderPolicies, rows_say_what_passes_served) {
  GeneratedJob job;
  job.pause = 3ms;
  expect_rows_to_hold(write_files(job, folder_.path()));
}

INSTANTIATE_TEST_SUITE_P(generated, GeneratedUnderPolicies,
                         ::testing::Values(validation::RecordedJob{"generated", {}}), case_name);

}  // namespace
}  // namespace bubblesim::testing
