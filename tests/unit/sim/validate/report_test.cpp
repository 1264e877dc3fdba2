// Summaries of judged rows, and how they are written.
#include "sim/validate/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/validate/report_text.hpp"

namespace bubblesim::validate {
namespace {

using testing::HasSubstr;

ReportRow row(const std::string& table, RowRole role, double measured, double simulated) {
  ReportRow out;
  out.table = table;
  out.role = role;
  out.label = "of " + std::to_string(static_cast<int>(measured));
  out.unit = "s";
  out.measured = measured;
  out.simulated = simulated;
  return out;
}

ReportRow other(RowOutcome outcome, const std::string& note) {
  ReportRow out = row("t", RowRole::kJudge, 1, 1);
  out.outcome = outcome;
  out.note = note;
  return out;
}

// Errors of +10 % and -4 %: mean 7 %, bias 3 %, half of them within 5 %.
TEST(Report, SummaryHasMeanBiasWorstAndShare) {
  const auto all =
      summarise({row("t", RowRole::kJudge, 100, 110), row("t", RowRole::kJudge, 50, 48),
                 other(RowOutcome::kStated, "a"), other(RowOutcome::kFailed, "b")});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].rows, 2U);
  EXPECT_EQ(all[0].stated, 1U);
  EXPECT_EQ(all[0].failed, 1U);
  EXPECT_NEAR(all[0].mean_absolute, 0.07, 1e-12);
  EXPECT_NEAR(all[0].bias, 0.03, 1e-12);
  EXPECT_NEAR(all[0].worst, 0.10, 1e-12);
  EXPECT_EQ(all[0].worst_label, "of 100");
  EXPECT_NEAR(all[0].within_5_percent, 0.5, 1e-12);
  EXPECT_FALSE(all[0].aim);
}

TEST(Report, TablesOfBothRolesHaveASummaryOfAll) {
  const auto all = summarise({row("t", RowRole::kJudge, 1, 1), row("t", RowRole::kFit, 1, 2),
                              row("u", RowRole::kFit, 1, 1)});
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].role, "fit");
  EXPECT_EQ(all[1].role, "judge");
  EXPECT_EQ(all[2].role, "all");
  EXPECT_EQ(all[2].rows, 2U);
  EXPECT_EQ(all[3].table, "u");
}

TEST(Report, AnAimIsOfTheMeanOrOfEachRow) {
  const auto mean = summarise({row("all_reduce", RowRole::kFit, 100, 108),
                               row("all_reduce", RowRole::kFit, 100, 100)});
  EXPECT_TRUE(mean[0].met);
  const auto each = summarise({row("published_training_runs", RowRole::kFit, 100, 108),
                               row("published_training_runs", RowRole::kFit, 100, 100)});
  EXPECT_FALSE(each[0].met);
}

TEST(Report, TextNamesVerdicts) {
  const std::vector<ReportRow> rows{row("all_reduce", RowRole::kFit, 100, 120),
                                    other(RowOutcome::kStated, "no measurement")};
  EXPECT_THAT(summary_text(summarise(rows)), HasSubstr("mean <= 5 %: missed"));
}

}  // namespace
}  // namespace bubblesim::validate
