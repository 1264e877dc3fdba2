// Synthesised jobs against measured ones: the mean error of a table must not grow.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "sim/validate/judges.hpp"
#include "sim/validate/report_text.hpp"

namespace bubblesim::validate {
namespace {

// Mean |error| of all rows of a table that are predicted. Above what is reached by little, so
// that growth shows; the aims (aim_of()) are the report's. Of the table of one node every third
// row is taken, for time.
struct Bound {
  const char* table;
  double mean_absolute;
  std::size_t every;
};

// How GoogleTest names a case: otherwise by the bytes of the struct, pointers among them.
void PrintTo(const Bound& bound, std::ostream* out) { *out << bound.table; }

constexpr std::array<Bound, 3> kBounds{{
    {"megatron_deepspeed_a100_multi_node", 0.068, 1},
    {"megatron_deepspeed_a100_single_node", 0.075, 3},
    {"published_training_runs", 0.085, 1},
}};

constexpr std::size_t kThreads = 2;

class Parallel : public testing::TestWithParam<Bound> {};

TEST_P(Parallel, MeanErrorStaysUnderItsBound) {
  const Bound& bound = GetParam();
  const std::string path = std::string(BUBBLESIM_VALIDATION_DIR) + "/" + bound.table + ".csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no table at " << path;
  auto table = load_training_table(path, "", std::string(BUBBLESIM_SOURCE_DIR) + "/configs");
  ASSERT_TRUE(table) << table.error().front().text();
  std::vector<TrainingRow> rows;
  for (std::size_t i = 0; i < table->rows.size(); i += bound.every) {
    rows.push_back(std::move(table->rows[i]));
  }
  table->rows = std::move(rows);
  const auto summaries = summarise(judge_training(*table, kThreads, nullptr));
  std::fputs(summary_text(summaries).c_str(), stdout);
  ASSERT_FALSE(summaries.empty());
  EXPECT_EQ(summaries.back().failed, 0U);
  EXPECT_LE(summaries.back().mean_absolute, bound.mean_absolute);
}

INSTANTIATE_TEST_SUITE_P(Tables, Parallel, testing::ValuesIn(kBounds),
                         [](const auto& it) { return std::string(it.param.table); });

}  // namespace
}  // namespace bubblesim::validate
