// Text, CSV and JSON name every cell; names of any bytes do no harm.
#include "sim/validate/measured_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json.hpp"
#include "tests/unit/sim/validate/measured/sample_figures.hpp"

namespace bubblesim::validate {
namespace {

using testing::HasSubstr;
using testing::Not;

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
