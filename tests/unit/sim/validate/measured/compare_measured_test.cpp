// Errors of cells, and what is not judged, by hand.
#include <gmock/gmock.h>

#include "sim/base/json.hpp"
#include "sim/validate/compare_measured.hpp"
#include "sim/validate/measured_summary.hpp"
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
  EXPECT_NEAR(find_cell(less, "c/tgs/svc", MeasuredMetric::kFillerThroughput)->error(), -100, 1e-9);
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

// Summaries and orders, by hand.

MeasuredCell cell(const std::string& policy, MeasuredMetric metric, double measured,
                  double simulated) {
  MeasuredCell out;
  out.config = "c";
  out.policy = policy;
  out.filler = metric == MeasuredMetric::kIteration ? "" : "svc";
  out.metric = metric;
  out.measured = out.measured_low = out.measured_high = measured;
  out.simulated = simulated;
  out.repetitions = 1;
  return out;
}

MeasuredCell rate(const std::string& policy, double measured, double simulated) {
  return cell(policy, MeasuredMetric::kFillerThroughput, measured, simulated);
}

TEST(MeasuredSummary, HasBiasMeanPercentilesAndTheWorstCell) {
  // +10, -2, +4, -8 %: mean |e| 6, bias 1, sorted 2 4 8 10: p50 is the 2nd, p90 the 4th.
  const auto all = summarise_measured({rate("mps", 100, 110), rate("mps", 100, 98),
                                       rate("tgs", 100, 104), rate("tgs", 100, 92)});
  ASSERT_EQ(all.size(), 3U) << "all, mps, tgs";
  EXPECT_EQ(all[0].policy, "");
  EXPECT_EQ(all[0].rows, 4U);
  EXPECT_NEAR(all[0].mean_absolute, 6, 1e-9);
  EXPECT_NEAR(all[0].bias, 1, 1e-9);
  EXPECT_NEAR(all[0].p50, 4, 1e-9);
  EXPECT_NEAR(all[0].p90, 10, 1e-9);
  EXPECT_NEAR(all[0].worst, 10, 1e-9);
  EXPECT_EQ(all[0].worst_label, "c/mps/svc");
  EXPECT_EQ(all[2].policy, "tgs");
  EXPECT_NEAR(all[2].worst, -8, 1e-9);
}

TEST(MeasuredSummary, AnAimBoundsTheMeanOverAllPolicies) {
  const auto close = summarise_measured({rate("mps", 100, 104)});
  ASSERT_TRUE(close[0].aim);
  EXPECT_DOUBLE_EQ(close[0].aim->bound, 5);
  EXPECT_TRUE(close[0].met());
  EXPECT_FALSE(summarise_measured({rate("mps", 100, 106)})[0].met());
  EXPECT_FALSE(close[1].aim) << "not of one policy";
  EXPECT_DOUBLE_EQ(measured_aim(MeasuredMetric::kSlowdown)->bound, 2);
  EXPECT_DOUBLE_EQ(measured_aim(MeasuredMetric::kP95)->bound, 10);
}

TEST(MeasuredSummary, CellsThatAreNotPredictedDoNotCount) {
  MeasuredCell stated = rate("mps", 100, 110);
  stated.outcome = RowOutcome::kStated;
  EXPECT_TRUE(summarise_measured({stated}).empty());
  EXPECT_TRUE(order_measured({stated, stated}, 0).empty());
}

TEST(MeasuredOrder, MostRequestsComeFirst) {
  // Measured a 30, b 20, c 10; simulated b 30, a 20, c 10: of ab, ac, bc one is wrong.
  const auto orders = order_measured({rate("a", 30, 20), rate("b", 20, 30), rate("c", 10, 10)},
                                     0.01);
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].compared, 3U);
  EXPECT_EQ(orders[0].wrong, 1U);
  EXPECT_NEAR(orders[0].kendall(), 1. / 3, 1e-9);  // (2 - 1) / 3
  EXPECT_EQ(orders[0].measured, "a > b > c");
  EXPECT_EQ(orders[0].simulated, "b > a > c");
}

TEST(MeasuredOrder, TheShortestIterationComesFirst) {
  const auto orders = order_measured({cell("a", MeasuredMetric::kIteration, 12, 12),
                                      cell("b", MeasuredMetric::kIteration, 10, 10)}, 0.01);
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].measured, "b > a");
  EXPECT_EQ(orders[0].wrong, 0U);
}

TEST(MeasuredOrder, WhatMeasurementsDoNotTellApartIsNotCompared) {
  // a and b: ranges 19 to 21 and 20.5 to 22 meet. b and c: 1 % of 21 apart. a and c: 20, 21.2.
  MeasuredCell a = rate("a", 20, 1);
  a.measured_low = 19;
  a.measured_high = 21;
  MeasuredCell b = rate("b", 21, 2);
  b.measured_low = 20.5;
  b.measured_high = 22;
  const auto orders = order_measured({a, b, rate("c", 21.2, 3)}, 0.01);
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].ties, 2U);
  EXPECT_EQ(orders[0].compared, 1U);
  EXPECT_EQ(orders[0].wrong, 0U);
  EXPECT_EQ(orders[0].measured, "c = b = a");
}

TEST(MeasuredOrder, EqualSimulatedFiguresDoNotOrderWhatDiffers) {
  const auto orders = order_measured({rate("a", 30, 20), rate("b", 20, 20)}, 0.01);
  EXPECT_EQ(orders[0].wrong, 1U);
  EXPECT_DOUBLE_EQ(orders[0].kendall(), -1);
}

// Text, CSV and JSON name every cell; names of any bytes do no harm.

using testing::HasSubstr, testing::Not;

std::vector<MeasuredCell> sample(const std::string& config = "c") {
  const std::vector<ReportGroup> left = {
      group("", {figures(config, {policy("mps", 11, 63, 4), policy("tgs", 10.5, 20)})})};
  const std::vector<ReportGroup> right = {
      group("", {figures(config, {policy("mps", 12, 60, 5), policy("odd", 10, 1)})})};
  return compare_measured(match_reports(left, right), {});
}

// What a fake GPU gives is the simulator's own: that it agrees proves nothing.
TEST(MeasuredText, NoAimIsMetByAFakeGpu) {
  const std::vector<ReportGroup> left = {group("", {figures("c", {policy("mps", 11, 63, 4)})})};
  std::vector<ReportGroup> right = {group("", {figures("c", {policy("mps", 11, 63, 4)})})};
  const auto real = compare_measured(match_reports(left, right), {});
  EXPECT_THAT(measured_summary_text(summarise_measured(real)), HasSubstr(" met: 0.00"));
  right[0].repetitions[0].measured = "fake, 2026-11-22T10:00:00Z";
  const auto matched = match_reports(left, right);
  const auto fake = summarise_measured(compare_measured(matched, {}));
  EXPECT_THAT(measured_summary_text(fake), Not(HasSubstr(" met:")));
  EXPECT_THAT(measured_summary_text(fake), HasSubstr("NOT JUDGED (a fake GPU measures nothing)"));
  EXPECT_THAT(measured_sides_text(matched), HasSubstr("note: MEASURED holds reports of a fake"));
  for (const MeasuredSummary& summary : fake) EXPECT_TRUE(!summary.aim || !summary.met());
}

TEST(MeasuredText, SaysMeasuredSimulatedAndErrorOfEachFigure) {
  const std::string text = measured_cells_text(sample());
  EXPECT_THAT(text, HasSubstr("c (measured 1 time;"));
  EXPECT_THAT(text, HasSubstr("      20        10  -10.00")) << "slowdown, in points";
  EXPECT_THAT(text, HasSubstr("      60        63   +5.00%")) << "requests a second";
  EXPECT_THAT(text, HasSubstr("       5         4  -20.00%")) << "p95";
}

TEST(MeasuredText, WhatIsNotJudgedIsNamedWithItsReason) {
  const std::string text = measured_missing_text(sample());
  EXPECT_THAT(text, HasSubstr("FAILED: not simulated:\n    c/odd\n"));
  EXPECT_THAT(text, HasSubstr("not measured:\n    c/tgs\n"));
  auto cells = sample();
  for (MeasuredCell& cell : cells) {
    cell.outcome = RowOutcome::kStated;
    cell.note = "why";
  }
  EXPECT_THAT(measured_missing_text(cells),
              HasSubstr("    c/mps: training_slowdown, training_iteration\n    c/mps/svc: "))
      << "a line a policy and filler";
}

TEST(MeasuredText, AimsStandBesideWhatWasReached) {
  const std::string text = measured_summary_text(summarise_measured(sample()));
  EXPECT_THAT(text, HasSubstr("training_slowdown  <=  2 points MISSED: 10.00   beside: "));
  EXPECT_THAT(text, HasSubstr("filler_throughput  <=  5 %      met: 5.00   beside: Parallax"));
}

TEST(MeasuredText, RepetitionsThatDifferByMoreThanTheErrorAreMarked) {
  MeasuredCell cell;
  cell.config = "c";
  cell.policy = "mps";
  cell.metric = MeasuredMetric::kIteration;
  cell.measured = 10;
  cell.measured_low = 9;
  cell.measured_high = 11;
  cell.repetitions = 3;
  cell.simulated = 10.5;
  EXPECT_THAT(measured_cells_text({cell}), HasSubstr("10~"));
  EXPECT_THAT(measured_cells_text({cell}), HasSubstr("; ~: measurements differ by more than"));
  cell.simulated = 15;
  EXPECT_THAT(measured_cells_text({cell}), Not(HasSubstr("~")));
}

TEST(MeasuredText, CsvAndJsonHoldEveryCell) {
  const auto cells = sample();
  const std::string csv = measured_csv(cells);
  EXPECT_EQ(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')), cells.size() + 1);
  EXPECT_THAT(csv, HasSubstr("judge,c,mps,svc,filler_throughput,1/s,predicted,60,60,60,1,63,5"));
  EXPECT_THAT(csv, HasSubstr("judge,c,odd,,,,failed,,,,,,,,not simulated\n"));
  const Json json = Json::parse(
      measured_json(cells, summarise_measured(cells), order_measured(cells, 0.01)));
  EXPECT_EQ(json["cells"].size(), cells.size());
  EXPECT_EQ(json["summary"][0]["metric"], "training_slowdown");
  EXPECT_EQ(json["summary"][0]["aim"]["met"], false);
}

TEST(MeasuredText, NamesOfAnyBytesAreShownSafely) {
  const auto cells = sample("<b>\xff\",\n&");
  EXPECT_TRUE(Json::accept(
      measured_json(cells, summarise_measured(cells), order_measured(cells, 0.01))));
  EXPECT_THAT(measured_csv(cells), HasSubstr("\"<b>\xff\"\",\n&\""));
}

}  // namespace
}  // namespace bubblesim::validate
