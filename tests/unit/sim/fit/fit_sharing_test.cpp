// Which rows a fit sees, and what it makes small, by hand.
#include "sim/fit/fit_sharing.hpp"

#include <gtest/gtest.h>

namespace bubblesim::fit {
namespace {

using validate::JudgedRow;
using validate::RowRole;
using validate::SharingRow;

JudgedRow off_by(const char* table, double p95) {
  JudgedRow out;
  out.row.table = table;
  out.row.figures = {{"share", validate::Quantity::kShare, 0, 0, 1, 1},
                     {"p95_ms", validate::Quantity::kPercentile, 0, 95, 1, 1 + p95},
                     {"p99_ms", validate::Quantity::kPercentile, 0, 99, 1, 9}};
  return out;
}

TEST(FitSharing, AFitSeesFitRowsOfTheFittedSystemsOnly) {
  SharingRow fit;
  fit.role = RowRole::kFit;
  fit.system = "mps";
  SharingRow other = fit;
  other.system = "tgs";
  SharingRow judge = fit;
  judge.role = RowRole::kJudge;
  EXPECT_EQ(fit_rows({fit, other, judge}).size(), 1u);
}

TEST(FitSharing, ALossIsTheMeanOverTablesOfTheMeanOfTheirFigures) {
  // p95 is off by 0.4, the share by nothing, the 99th percentile does not count: 0.2 and 0.
  EXPECT_NEAR(sharing_loss({off_by("a", 0.4)}), 0.2, 1e-12);
  EXPECT_NEAR(sharing_loss({off_by("a", 0.4), off_by("b", 0), off_by("b", 0)}), 0.1, 1e-12);
  JudgedRow stated = off_by("c", 9);
  stated.outcome = validate::RowOutcome::kStated;
  EXPECT_NEAR(sharing_loss({off_by("a", 0.4), stated}), 0.2, 1e-12);
}

}  // namespace
}  // namespace bubblesim::fit
