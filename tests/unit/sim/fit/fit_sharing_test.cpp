// Which rows a fit sees, and what it makes small, by hand.
#include "sim/fit/fit_sharing.hpp"

#include <gtest/gtest.h>

namespace bubblesim::fit {
namespace {

using validate::JudgedPair;
using validate::Role;
using validate::SharingMetric;
using validate::SharingRow;

JudgedPair off_by(double p95) {
  JudgedPair out;
  out.row.measured.fill(1);
  out.simulated.fill(1);
  out.simulated[static_cast<std::size_t>(SharingMetric::kP95)] += p95;
  return out;
}

TEST(FitSharing, AFitSeesFitRowsOfTheFittedSystemsOnly) {
  SharingRow fit;
  fit.role = Role::kFit;
  fit.system = "mps";
  SharingRow other = fit;
  other.system = "tgs";
  SharingRow judge = fit;
  judge.role = Role::kJudge;
  EXPECT_EQ(fit_rows({fit, other, judge}).size(), 1u);
}

TEST(FitSharing, ALossIsTheMeanOfFourErrors) {
  // p95 is off by 0.4, the other three by nothing.
  EXPECT_NEAR(sharing_loss({off_by(0.4)}), 0.1, 1e-12);
}

}  // namespace
}  // namespace bubblesim::fit
