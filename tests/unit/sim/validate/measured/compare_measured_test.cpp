// Errors of cells, and what is not judged, by hand.
#include "sim/validate/compare_measured.hpp"

#include <gtest/gtest.h>

#include "tests/unit/sim/validate/measured/sample_figures.hpp"

namespace bubblesim::validate {
namespace {

std::vector<MeasuredCell> compare(const std::vector<ReportFigures>& simulated,
                                  const std::vector<ReportFigures>& measured) {
  const std::vector<ReportGroup> left = {group("", simulated)};
  const std::vector<ReportGroup> right = {group("", measured)};
  return compare_measured(match_reports(left, right), {});
}

TEST(CompareMeasured, SharesDifferByPointsAndAllElseInPercent) {
  // Simulated 11 ms, measured 12 ms, alone 10 ms on both sides: slowdowns of 10 and 20 %.
  const auto cells = compare({figures("c", {policy("mps", 11, 63, 4)})},
                             {figures("c", {policy("mps", 12, 60, 5)})});
  const MeasuredCell& slowdown = *find_cell(cells, "c/mps", MeasuredMetric::kSlowdown);
  EXPECT_NEAR(slowdown.simulated, 10, 1e-9);
  EXPECT_NEAR(slowdown.measured, 20, 1e-9);
  EXPECT_NEAR(slowdown.error(), -10, 1e-9) << "points";
  EXPECT_NEAR(find_cell(cells, "c/mps", MeasuredMetric::kIteration)->error(), 100 * (11. / 12 - 1),
              1e-9);
  EXPECT_NEAR(find_cell(cells, "c/mps/svc", MeasuredMetric::kFillerThroughput)->error(), 5, 1e-9);
  EXPECT_NEAR(find_cell(cells, "c/mps/svc", MeasuredMetric::kFillerOfOwnGpu)->error(), 3, 1e-9);
  EXPECT_NEAR(find_cell(cells, "c/mps/svc", MeasuredMetric::kP95)->error(), -20, 1e-9);
  EXPECT_NEAR(find_cell(cells, "c/alone", MeasuredMetric::kAloneIteration)->error(), 0, 1e-9);
  EXPECT_EQ(find_cell(cells, "c/mps/svc", MeasuredMetric::kP50), nullptr) << "nobody has it";
}

TEST(CompareMeasured, EachSideHasItsOwnBaseline) {
  ReportFigures simulated = figures("c", {policy("mps", 22, 60)});
  simulated.alone_iteration_ms = 20;
  const auto cells = compare({simulated}, {figures("c", {policy("mps", 11, 60)})});
  EXPECT_NEAR(find_cell(cells, "c/mps", MeasuredMetric::kSlowdown)->error(), 0, 1e-9);
  EXPECT_NEAR(find_cell(cells, "c/alone", MeasuredMetric::kAloneIteration)->error(), 100, 1e-9);
}

TEST(CompareMeasured, RepetitionsGiveTheMedianAndTheirRange) {
  const auto cells = compare({figures("c", {policy("mps", 10, 60)})},
                             {figures("c", {policy("mps", 13, 60)}),
                              figures("c", {policy("mps", 11, 60)}),
                              figures("c", {policy("mps", 12, 60)})});
  const MeasuredCell& cell = *find_cell(cells, "c/mps", MeasuredMetric::kIteration);
  EXPECT_EQ(cell.repetitions, 3U);
  EXPECT_DOUBLE_EQ(cell.measured, 12);
  EXPECT_DOUBLE_EQ(cell.measured_low, 11);
  EXPECT_DOUBLE_EQ(cell.measured_high, 13);
}

TEST(CompareMeasured, WhatOneSideLacksIsNamed) {
  const auto cells = compare({figures("c", {policy("mps", 10, 60), policy("tgs", 10, 60)})},
                             {figures("c", {policy("mps", 10, 60), policy("other", 10, 60)})});
  RowOutcome tgs{};
  RowOutcome other{};
  for (const MeasuredCell& cell : cells) {
    if (cell.name() == "c/tgs") tgs = cell.outcome;
    if (cell.name() == "c/other") other = cell.outcome;
  }
  EXPECT_EQ(tgs, RowOutcome::kStated) << "simulated, and not measured";
  EXPECT_EQ(other, RowOutcome::kFailed) << "measured, and not simulated";
}

TEST(CompareMeasured, AWholeConfigMayBeMissing) {
  const std::vector<ReportGroup> left = {group("", {figures("a", {policy("mps", 10, 60)})})};
  const std::vector<ReportGroup> right = {group("", {figures("b", {policy("mps", 10, 60)})})};
  const auto cells = compare_measured(match_reports(left, right), {});
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].name(), "a");
  EXPECT_EQ(cells[0].outcome, RowOutcome::kStated);
  EXPECT_EQ(cells[1].name(), "b");
  EXPECT_EQ(cells[1].outcome, RowOutcome::kFailed);
}

TEST(CompareMeasured, NoFigureIsComparedWithALowerBoundOrWithNothing) {
  PolicyFigures bounded = policy("mps", 10, 60);
  bounded.fillers[0].latency[1]->lower_bound = true;
  PolicyFigures silent = policy("mps", 10, 60);
  silent.fillers[0].latency[1].reset();
  const auto p95_outcome = [&](const PolicyFigures& simulated, const PolicyFigures& measured) {
    const auto cells = compare({figures("c", {simulated})}, {figures("c", {measured})});
    return find_cell(cells, "c/mps/svc", MeasuredMetric::kP95)->outcome;
  };
  EXPECT_EQ(p95_outcome(policy("mps", 10, 60), bounded), RowOutcome::kStated);
  EXPECT_EQ(p95_outcome(bounded, policy("mps", 10, 60)), RowOutcome::kStated);
  EXPECT_EQ(p95_outcome(policy("mps", 10, 60), silent), RowOutcome::kStated);
  EXPECT_EQ(p95_outcome(silent, policy("mps", 10, 60)), RowOutcome::kFailed);
}

TEST(CompareMeasured, AFillerThatDidNotRunIsRightOnlyIfItDidOnNeitherSide) {
  const auto both = compare({figures("c", {policy("exclusive", 10, 0)})},
                            {figures("c", {policy("exclusive", 10, 0)})});
  EXPECT_EQ(find_cell(both, "c/exclusive/svc", MeasuredMetric::kFillerThroughput)->outcome,
            RowOutcome::kStated);
  const auto more = compare({figures("c", {policy("tgs", 10, 20)})},
                            {figures("c", {policy("tgs", 10, 0)})});
  EXPECT_EQ(find_cell(more, "c/tgs/svc", MeasuredMetric::kFillerThroughput)->outcome,
            RowOutcome::kFailed) << "no relative error";
  EXPECT_NEAR(find_cell(more, "c/tgs/svc", MeasuredMetric::kFillerOfOwnGpu)->error(), 20, 1e-9);
  const auto less = compare({figures("c", {policy("tgs", 10, 0)})},
                            {figures("c", {policy("tgs", 10, 20)})});
  EXPECT_NEAR(find_cell(less, "c/tgs/svc", MeasuredMetric::kFillerThroughput)->error(), -100,
              1e-9);
}

TEST(CompareMeasured, APolicyThatAdmitsNoFillerIsNotJudged) {
  PolicyFigures closed = policy("exclusive", 10, 0);
  closed.fillers[0].admitted = false;
  const auto cells = compare({figures("c", {closed})}, {figures("c", {closed})});
  EXPECT_EQ(find_cell(cells, "c/exclusive", MeasuredMetric::kSlowdown), nullptr);
  EXPECT_EQ(cells.back().name(), "c/exclusive");
  EXPECT_EQ(cells.back().outcome, RowOutcome::kStated);
  const auto open = compare({figures("c", {closed})}, {figures("c", {policy("exclusive", 9, 5)})});
  EXPECT_NE(find_cell(open, "c/exclusive", MeasuredMetric::kSlowdown), nullptr)
      << "the sides differ";
}

TEST(CompareMeasured, APolicyThatComesTwiceIsToldApartByItsParameters) {
  PolicyFigures small = policy("mps", 11, 30);
  small.parameters = "filler_percentage=30";
  PolicyFigures large = policy("mps", 12, 60);
  large.parameters = "filler_percentage=60";
  const auto cells = compare({figures("c", {small, large})}, {figures("c", {large, small})});
  for (const char* name : {"c/mps (filler_percentage=30)", "c/mps (filler_percentage=60)"}) {
    ASSERT_NE(find_cell(cells, name, MeasuredMetric::kIteration), nullptr) << name;
    EXPECT_NEAR(find_cell(cells, name, MeasuredMetric::kIteration)->error(), 0, 1e-9) << name;
  }
}

TEST(CompareMeasured, OtherParametersAreSaid) {
  PolicyFigures mps = policy("mps", 11, 30);
  mps.parameters = "filler_percentage=30";
  PolicyFigures other = mps;
  other.parameters = "filler_percentage=60";
  const auto cells = compare({figures("c", {mps})}, {figures("c", {other})});
  bool said = false;
  for (const MeasuredCell& cell : cells) said = said || cell.note.starts_with("other parameters");
  EXPECT_TRUE(said);
}

}  // namespace
}  // namespace bubblesim::validate
