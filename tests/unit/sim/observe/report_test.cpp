#include "sim/observe/report.hpp"
#include "sim/observe/result_rows.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "sim/base/json.hpp"
#include "tests/unit/sim/observe/sample_report.hpp"

namespace bubblesim::observe {
namespace {

using testing::HasSubstr, testing::Not;

/// Cells of one CSV line without line ends in cells.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells{""};
  bool quoted = false;
  for (const char letter : line) {
    if (letter == '"') {
      quoted = !quoted;
      cells.back() += letter;
    } else if (letter == ',' && !quoted) {
      cells.emplace_back();
    } else if (letter != '\n') {
      cells.back() += letter;
    }
  }
  return cells;
}

std::string cell(const RunReport& report, std::string_view column) {
  const auto columns = result_columns();
  const auto cells = cells_of(csv_rows(report));
  EXPECT_EQ(cells.size(), columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == column) return cells.at(i);
  }
  return "no such column";
}

// The least sure of each figure, and a line of its own where one is not as sure as was asked for.
TEST(ReportTable, SaysHowSureTheLeastSureFiguresAre) {
  RunReport report = sample_report();
  PolicyResult policy = report.policies.front();
  policy.fillers.clear();
  policy.parameters.clear();
  report.policies.clear();
  const auto add = [&](const char* name, int until, double training, double rate, bool reached) {
    policy.policy = name;
    policy.simulated = std::chrono::seconds(until);
    policy.warmup = std::chrono::seconds(1);
    policy.precision = RunPrecision{0.95, {{"training_rate", "", 0.005, training, true},
                                           {"filler_rate", "chat", 0.02, rate, reached}}};
    report.policies.push_back(policy);
  };
  add("mps", 3, 0.004, 0.01, true);
  add("tgs", 31, 0.001, 0.015, true);
  add("orion", 121, 0, 0.03, false);
  const std::string few = report_table(report, Columns::kFew);
  EXPECT_THAT(few, HasSubstr("length: 2.0 to 30.0 s; training +-0.40 % (mps), chat rate +-1.50 % "
                             "(tgs)\n"
                             "length: orion: 120.0 s measured after 1.0 s; training +-0.00 %, chat "
                             "rate +-3.00 % ! (confidence 95 %)\n"));
  EXPECT_THAT(few, Not(HasSubstr("length: mps")));
  EXPECT_THAT(report_table(report, Columns::kAll), HasSubstr("length: mps: 2.0 s measured"));
}

TEST(ReportCsv, CellsHoldExactDecimals) {
  const RunReport report = sample_report();
  EXPECT_EQ(cell(report, "policy_parameters"), "filler_percentage=50;priority=training");
  EXPECT_EQ(cell(report, "simulated_s"), "2.000000000");
  EXPECT_EQ(cell(report, "training_iteration_mean_ms"), "250.000001");
  EXPECT_EQ(cell(report, "training_normalised_fraction"), "0.8");
  EXPECT_EQ(cell(report, "latency_p50_ms"), "20.000000");
  EXPECT_EQ(cell(report, "latency_p95_ms"), "30.000000");
  EXPECT_EQ(cell(report, "latency_lower_bound_from"), "p90");
  EXPECT_EQ(cell(report, "bubble_recovered_fraction"), "0.25");
  EXPECT_EQ(cell(report, "filler_gpus_admitted"), "1");
  EXPECT_EQ(cell(report, "filler_offered_per_s"), "2.5");
  EXPECT_EQ(cell(report, "overloaded"), "0");
  EXPECT_EQ(cell(report, "losses"), "sample_records_dropped");
  EXPECT_EQ(cell(report, "counters"),
            "sample_guess=3;sample_info=1;sample_records_dropped=9");  // 7 + 2
}

TEST(ReportCsv, CellsWithCommasAndQuotesAreQuoted) {
  EXPECT_EQ(cell(sample_report(), "filler"), R"("bert, ""large""")");
}

TEST(ReportCsv, PolicyWithoutFillersHasOneRowWithEmptyFillerCells) {
  RunReport report = sample_report();
  report.policies[0].fillers.clear();
  EXPECT_EQ(result_rows(report).size(), 1U);
  for (const char* of_filler : {"filler", "latency_p95_ms"}) {
    EXPECT_EQ(cell(report, of_filler), "");
    EXPECT_EQ(typed_cell(report, of_filler), Cell());
  }
  EXPECT_EQ(cell(report, "training_iterations_per_s"), "4");
}

TEST(ReportCsv, HeaderNamesEachColumnOnce) {
  const auto columns = cells_of(csv_header());
  const std::set<std::string> distinct(columns.begin(), columns.end());
  EXPECT_EQ(distinct.size(), columns.size());
  EXPECT_EQ(columns.size(), result_columns().size());
}

TEST(ResultRows, HoldTheCellsOfCsvAsValues) {
  const RunReport report = sample_report();
  ASSERT_EQ(result_rows(report).size(), 1U);
  ASSERT_EQ(result_rows(report)[0].cells.size(), result_columns().size());
  EXPECT_EQ(typed_cell(report, "policy_parameters"),
            Cell("filler_percentage=50;priority=training"));
  EXPECT_EQ(typed_cell(report, "training_iteration_mean_ms"), Cell(250.000001));
  EXPECT_EQ(typed_cell(report, "filler_gpus_admitted"), Cell(std::int64_t{1}));
  EXPECT_EQ(typed_cell(report, "latency_p50_ms"), Cell(20.0));
}

TEST(ReportJson, IsParsedBackWithExactValues) {
  const Json json = Json::parse(report_json(sample_report()));
  EXPECT_EQ(json["baseline"]["replay_error_fraction"], -0.0099);
  EXPECT_EQ(json["baseline"]["training_busy_fraction"], 0.875);
  EXPECT_EQ(json["baseline"]["training_memory_high_water_bytes"], 30'000'000'000);
  EXPECT_EQ(json["baseline"]["fillers"][0]["sm_fraction"], 0.125);
  const Json& policy = json["policies"][0];
  EXPECT_EQ(policy["training"]["ranks"][0]["iteration_times_ns"], Json({250000000, 250000001}));
  const Json& filler = policy["fillers"][0];
  EXPECT_EQ(filler["name"], "bert, \"large\"");
  EXPECT_EQ(filler["latency"]["p95"]["value_ns"], 30000000);
  EXPECT_EQ(filler["latency"]["p95"]["lower_bound"], true);
  EXPECT_EQ(filler["latency"]["samples_unfinished"], 1);
  EXPECT_EQ(filler["instances"][1]["reason"], "30 GB + 60 GB do not fit");
  EXPECT_EQ(policy["counters"][1]["count"], 7);
  EXPECT_EQ(policy["counters"][1]["severity"], "loss");
}

TEST(ReportJson, WhatWasNotMeasuredIsNull) {
  RunReport report = sample_report();
  report.policies[0].fillers[0].latency = {};
  report.policies[0].training.samples_per_s.reset();
  const Json json = Json::parse(report_json(report));
  EXPECT_TRUE(json["policies"][0]["fillers"][0]["latency"].is_null());
  EXPECT_TRUE(json["policies"][0]["training"]["samples_per_s"].is_null());
}

TEST(Report, HowAGpuWasUsedIsLeftOpenInMeasuredRuns) {
  const RunReport report = measured_report();
  const Json json = Json::parse(report_json(report));
  EXPECT_EQ(json["measured"]["driver"], "580.65.06");
  EXPECT_TRUE(json["baseline"]["training_busy_fraction"].is_null());
  EXPECT_TRUE(json["baseline"]["fillers"][0]["sm_fraction"].is_null());
  EXPECT_EQ(json["policies"][0]["host"]["decisions"], 12);
  EXPECT_TRUE(json["policies"][0]["gpus"].empty());
  EXPECT_EQ(cell(report, "gpu_busy_fraction"), "");
  EXPECT_EQ(cell(report, "bubble_recovered_fraction"), "");
  EXPECT_EQ(cell(report, "memory_high_water_bytes"), "");
}

TEST(ReportJson, BrokenUtf8InANameIsReplaced) {
  RunReport report = sample_report();
  report.config = "bad \xFF name";
  EXPECT_EQ(Json::parse(report_json(report))["config"], "bad \xEF\xBF\xBD name");
}

std::string wide_table(const RunReport& report) { return report_table(report, Columns::kAll); }

/// Without the lines above the titles.
std::string narrow_rows(const RunReport& report) {
  const std::string table = report_table(report, Columns::kFew);
  return table.substr(table.find("\npolicy ") + 1);
}

// 4 of 5 it/s, a tenth of 15 requests/s and so on: sample_report.hpp.
TEST(ReportTable, TheNarrowOneSaysWhatIsKeptAndWhatIsGained) {
  EXPECT_EQ(narrow_rows(sample_report()),
            "policy          train kept  filler gained  requests/s  p95 ms  recovered %\n"
            "mps (oracle) !       0.800          0.100       2.000    of 4         25.0\n"
            "\n"
            "fill jobs: mps: bert, \"large\": 1 of 1 finished, 0 running, 0 waiting; mean "
            "completion 1.500 s, makespan 1.500 s; deadlines: 1 met, 0 missed, 0 open\n");
}

TEST(ReportTable, TheNarrowOneHasOneLineAboveUnlessTheReplayIsOff) {
  RunReport report = sample_report();
  EXPECT_THAT(report_table(report, Columns::kFew), HasSubstr("replay error -0.99 % !\n! repeated"));
  report.baseline.replay_error = 0.0005;
  EXPECT_THAT(report_table(report, Columns::kFew),
              testing::StartsWith("example: NVIDIA H100 80GB HBM3, 1 ranks, seed 7\n\npolicy "));
}

TEST(ReportTable, TheNarrowOneNamesFillersWhereThereAreSeveral) {
  RunReport report = sample_report();
  report.policies[0].fillers[0].jobs.reset();
  report.policies[0].fillers.push_back(report.policies[0].fillers[0]);
  report.policies[0].fillers[1].name = "gpt";
  report.policies[0].fillers[1].overloaded = true;
  EXPECT_EQ(
      narrow_rows(report),
      "policy          filler         train kept  filler gained  requests/s      p95 ms  "
      "recovered %\n"
      "mps (oracle) !  bert, \"large\"       0.800          0.100       2.000        of 4  "
      "       25.0\n"
      "mps (oracle) !  gpt                 0.800          0.100       2.000  overloaded  "
      "       25.0\n");
}

TEST(ReportTable, TheWideOneHasTheNarrowOnesColumnsInItsOrder) {
  const std::string wide = wide_table(sample_report());
  std::size_t at = wide.find("\npolicy ");
  for (const char* title : {"policy", "filler", "train it/s", "train kept", "filler gained",
                            "offered/s", "requests/s", "p50 ms", "p90 ms", "p95 ms", "p99 ms",
                            "before", "done", "left", "busy %", "bubble %", "recovered %",
                            "memory GB"}) {
    at = wide.find(title, at);
    ASSERT_NE(at, std::string::npos) << title;
  }
}

TEST(ReportTable, AReconstructedPolicyHasAMarkAndAFootnote) {
  RunReport report = sample_report();
  report.policies[0].oracle = false;
  report.policies[0].counters = {};
  report.counters = {};
  EXPECT_THAT(narrow_rows(report), HasSubstr("\nmps    "));
  report.policies[0].reconstruction = "its rules are not public";
  report.policies.push_back(report.policies[0]);  // the same with other parameters
  report.policies[1].parameters[0].second = "60";
  EXPECT_THAT(narrow_rows(report), HasSubstr("\nmps filler_percentage=50 * "));
  EXPECT_THAT(report_notes({&report, 1}, Notes::kFew),
              testing::StartsWith("* a reconstruction: mps (its rules are not public)\n"));
}

/// Its 4 requests so many times.
RunReport with_requests(int times) {
  RunReport report = sample_report();
  LatencyDistribution& latency = report.policies[0].fillers[0].latency;
  const LatencyDistribution once = latency;
  for (int i = 1; i < times; ++i) latency.merge(once);
  return report;
}

TEST(ReportTable, PercentilesOfFewRequestsSayOfHowMany) {
  EXPECT_THAT(narrow_rows(with_requests(4)), HasSubstr("of 16 "));
  EXPECT_THAT(narrow_rows(with_requests(4)), Not(HasSubstr("30.000")));
  EXPECT_THAT(narrow_rows(with_requests(5)), HasSubstr(">30.000 of 20 "));
  EXPECT_THAT(narrow_rows(with_requests(24)), HasSubstr(">30.000 of 96 "));
  EXPECT_THAT(narrow_rows(with_requests(25)), HasSubstr(">30.000  "));
}

TEST(ReportTable, RowsAreAlignedAndBoundsAreMarked) {
  const std::string table = wide_table(with_requests(25));
  EXPECT_THAT(table, HasSubstr("mps (oracle)"));
  EXPECT_THAT(table, HasSubstr(">30.000"));  // p95: an unfinished request lies below
  EXPECT_THAT(table, HasSubstr(" 20.000"));  // p50 is exact
  EXPECT_THAT(table, HasSubstr("replay error -0.99 % !\n! repeated, the recorded iterations"));
  std::vector<std::size_t> widths;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("policy ") || line.starts_with("mps (")) widths.push_back(line.size());
  }
  ASSERT_EQ(widths.size(), 2U);
  EXPECT_EQ(widths[0], widths[1]);
}

TEST(ReportTable, LatenciesOfAnOverloadedFillerAreAWord) {
  RunReport report = sample_report();
  report.policies[0].fillers[0].overloaded = true;
  const std::string table = wide_table(report);
  EXPECT_THAT(table, HasSubstr(" overloaded  overloaded  overloaded  overloaded "));
  EXPECT_THAT(table, Not(HasSubstr("30.000")));
}

TEST(ReportTable, ARowThatALossConcernsIsMarked) {
  RunReport report = sample_report();
  report.policies.push_back(report.policies.front());
  report.policies[1].policy = "tgs";
  report.policies[1].counters = {};
  EXPECT_THAT(wide_table(report), HasSubstr("\nmps (oracle) !  bert"));
  EXPECT_THAT(wide_table(report), HasSubstr("\ntgs (oracle)    bert"));
  report.filler_counters[0].add(kSampleLoss, 1);
  EXPECT_THAT(wide_table(report), HasSubstr("\ntgs (oracle) !  bert"));
}

TEST(ReportTable, AFakeGpuIsCalledOne) {
  RunReport report = measured_report();
  EXPECT_THAT(wide_table(report), HasSubstr("measured on a gpu"));
  report.measured->place = "fake";
  EXPECT_THAT(wide_table(report), HasSubstr("measured on a FAKE GPU"));
  EXPECT_EQ(cell(report, "measured"), "fake");
}

std::string notes_of(const std::vector<RunReport>& reports, Notes notes = Notes::kAll) {
  return report_notes(reports, notes);
}

TEST(ReportNotes, CountersOfNoticeAndWorseAreListedTheWorstFirst) {
  EXPECT_EQ(notes_of({sample_report()}),
            "! loss: sample_records_dropped: all policies 2, mps 7: dropped\n"
            "not admitted: mps: bert, \"large\" on 1 of 2 GPUs (30 GB + 60 GB do not fit)\n"
            "notice: sample_guess: bert, \"large\" 3: guessed\n");
}

TEST(ReportNotes, PoliciesThatAnInterruptLeftOutComeFirst) {
  RunReport report = sample_report();
  report.interrupted = {"tgs", "ideal"};
  EXPECT_THAT(notes_of({report}, Notes::kFew),
              testing::StartsWith("interrupted: not run to the end: tgs, ideal\n! loss: "));
}

TEST(Report, ControlCharactersOfNamesReachNoTerminal) {
  RunReport report = sample_report();
  report.config = "night\x1B[31m";
  report.policies[0].fillers[0].name = "a\nb";
  report.policies[0].counters.add("of a policy's\r", {Severity::kLoss, "\x1B[2J", 1});
  const std::string text = wide_table(report) + notes_of({report});
  const auto ends_no_line = [](unsigned char c) { return c < 32 && c != '\n'; };
  EXPECT_TRUE(std::ranges::none_of(text, ends_no_line)) << text;
  EXPECT_THAT(text, testing::AllOf(HasSubstr("night\\x1b[31m: "), HasSubstr("a\\x0ab on 1 of 2"),
                                   HasSubstr("of a policy's\\x0d: mps 1: \\x1b[2J\n")));
}

TEST(ReportNotes, NoticesAreLeftOutOfFewAndCounted) {
  EXPECT_EQ(notes_of({sample_report()}, Notes::kFew),
            "! loss: sample_records_dropped: all policies 2, mps 7: dropped\n"
            "not admitted: mps: bert, \"large\" on 1 of 2 GPUs (30 GB + 60 GB do not fit)\n"
            "1 more with --notices\n");
}

// What launches pay is said once for policies that pay alike.
TEST(ReportNotes, GatesThatCostSomethingAreToldInWords) {
  RunReport report = sample_report();
  report.policies.resize(1);
  report.policies[0].counters = {};
  for (const auto& [name, training] : {std::pair("tgs", 500), {"reef", 500}, {"orion", 1100}}) {
    PolicyResult& gated = report.policies.emplace_back(report.policies[0]);
    gated.policy = name;
    gated.counters.add("policy_gate_ns", {Severity::kInfo, "", 1100});
    gated.counters.add("policy_gate_training_ns",
                       {Severity::kInfo, "", static_cast<std::uint64_t>(training)});
  }
  EXPECT_THAT(notes_of({report}, Notes::kFew),
              HasSubstr("\ngate: fillers' launches 1.1 us later, training's 0.5 us (tgs, reef); "
                        "fillers' launches 1.1 us later, training's 1.1 us (orion)\n"
                        "not admitted: "));
}

// Six losses and a refusal: four, and a line that says that three (with the notice: four) are left.
TEST(ReportNotes, FewAreFiveLinesWhateverIsWrong) {
  RunReport report = sample_report();
  for (const char* name : {"b", "c", "d", "e", "f"}) {
    report.counters.add(name, {Severity::kLoss, "lost", 1});
  }
  const std::string few = notes_of({report}, Notes::kFew);
  EXPECT_EQ(std::count(few.begin(), few.end(), '\n'), 5);
  EXPECT_THAT(few, testing::EndsWith("\n4 more with --notices\n"));
}

TEST(ReportNotes, WhatIsEqualInAllReportsIsSaidOnce) {
  RunReport online = sample_report();
  online.config = "online";
  online.policies[0].fillers[0].overloaded = true;
  online.policies[0].counters.add(kSampleLoss, 1);
  EXPECT_EQ(notes_of({sample_report(), online}),
            "! loss: sample_records_dropped: example: all policies 2, mps 7; online: all policies "
            "2, mps 8: dropped\n"
            "overloaded: requests waiting at the start and at the end: online: mps 1 to 1: "
            "latencies would grow with the run\n"
            "not admitted: mps: bert, \"large\" on 1 of 2 GPUs (30 GB + 60 GB do not fit)\n"
            "notice: sample_guess: bert, \"large\" 3: guessed\n");
}

TEST(Report, SameReportGivesSameBytes) {
  EXPECT_EQ(report_json(sample_report()), report_json(sample_report()));
  EXPECT_EQ(csv_rows(sample_report()), csv_rows(sample_report()));
}

TEST(ReportTable, NamesakesShowTheParametersInWhichTheyDiffer) {
  RunReport report = sample_report();
  report.policies.resize(1);
  report.policies[0].policy = "xsched";
  report.policies[0].parameters = {{"batch", "8"}, {"level", "1"}};
  report.policies.push_back(report.policies[0]);
  EXPECT_THAT(wide_table(report), testing::Not(testing::HasSubstr("level=")));  // equal twice
  report.policies[1].parameters[1].second = "3";
  EXPECT_THAT(wide_table(report), testing::HasSubstr("\nxsched level=1 (oracle)"));
  EXPECT_THAT(wide_table(report), testing::HasSubstr("\nxsched level=3 (oracle)"));
  EXPECT_THAT(wide_table(report), testing::Not(testing::HasSubstr("batch=")));
}

// 0.1449 J over 4 requests; an iteration: (600 - 100) J in 2 s, at 4 a second.
TEST(Report, EnergiesStandInJsonAndKeepThreeDigitsInTheTable) {
  RunReport report = metered_report();
  report.policies[0].fillers[0].energy_j = 0.1449;
  EXPECT_THAT(report_table(report, Columns::kAll), HasSubstr("  0.0362\n"));
  report.policies[0].fillers[0].energy_j = 4938;
  EXPECT_THAT(report_table(report, Columns::kAll), HasSubstr("  1234\n"));
  const Json json = Json::parse(report_json(report));
  EXPECT_EQ(json["policies"][0]["training"]["iteration_energy_j"], 62.5);
}

TEST(Report, WhatAPowerLimitCostsTheJobAloneIsSaidBelowTheTable) {
  const RunReport report = metered_report();
  EXPECT_THAT(report_table(report, Columns::kFew),
              HasSubstr("\npower limit: alone, training keeps 0.800 of its 6.250 it/s at 290.0 W "
                        "a GPU instead of 350.0 W\n"));
  EXPECT_EQ(cell(report, "power_limit_kept_fraction"), "0.8");
  EXPECT_EQ(cell(report, "power_unlimited_alone_w"), "350");
  EXPECT_EQ(cell(sample_report(), "power_limit_kept_fraction"), "");
}

TEST(Report, WhatWasNotAsAskedIsSaidWithItsPolicies) {
  RunReport report = metered_report();
  report.policies.push_back(report.policies.front());
  report.policies.back().policy = "tgs";
  report.policies.push_back(report.policies.front());
  report.policies.back().policy = "ideal";
  report.policies.back().notices = {"another"};
  EXPECT_THAT(report_notes({&report, 1}, Notes::kAll),
              HasSubstr("not as asked: another (ideal); the cap of 290 W was not kept (mps, tgs)"));
}

}  // namespace
}  // namespace bubblesim::observe
