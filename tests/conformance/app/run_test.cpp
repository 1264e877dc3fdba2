// bubblesim run: a table, JSON or CSV on standard output, files in --out, the same bytes each time.
#include <gmock/gmock.h>

#include <algorithm>
#include <iterator>

#include "tests/conformance/app/chrome_file.hpp"
#include "tests/conformance/app/command.hpp"
#include "tests/unit/sim/observe/documented_names.hpp"

namespace bubblesim::app_test {
namespace {

using testing::AllOf, testing::HasSubstr;

constexpr const char* kExample = "run configs/runs/example.json ";
// The sample job with the sample service, short.
constexpr const char* kQuick =
    "run traces/samples/training traces/samples/inference.json.gz "
    "--policy exclusive,mps --duration 600ms --warmup 200ms ";

// The columns that OUTPUTS.md documents under a heading, in its order.
std::vector<std::string> documented_columns(const Workplace& place,
                                            const std::string& heading = "## CSV") {
  std::vector<std::string> names;
  bool there = false;
  for (const std::string& line : lines_of(place.read("sim/observe/OUTPUTS.md"))) {
    if (line.starts_with("## ")) there = line == heading;
    if (!there || !line.starts_with("| `")) continue;
    std::ranges::copy(observe::documented_names(line.substr(3, line.find('`', 3) - 3)),
                      std::back_inserter(names));
  }
  return names;
}

TEST(Run, PrintsATableWithARowForEachPolicy) {
  const ShortWorkplace place;
  const std::string table = succeed(place, kExample).out;
  EXPECT_THAT(table, HasSubstr("example: NVIDIA A100-SXM4-40GB, 4 ranks, seed 1"));
  for (const char* policy : {"\nexclusive ", "\ntime_slicing ", "\nmps "}) {
    EXPECT_THAT(table, HasSubstr(policy));
  }
}

TEST(Run, CsvHasTheDocumentedColumnsAndARowForEachPolicyAndFiller) {
  const ShortWorkplace place;
  const auto rows = csv_of(succeed(place, std::string(kExample) + "--csv").out);
  ASSERT_EQ(rows.size(), 1U + 4U);
  EXPECT_EQ(rows.front(), documented_columns(place));
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows.front().size());
}

TEST(Run, JsonHasAnEntryForEachPolicy) {
  const ShortWorkplace place;
  const Json json = parse_json(succeed(place, std::string(kExample) + "--json").out);
  ASSERT_EQ(json["policies"].size(), 4U);
  EXPECT_EQ(json["policies"][0]["policy"], "exclusive");
  EXPECT_EQ(json["policies"][0]["training"]["normalised_fraction"], 1.0);
  EXPECT_EQ(json["policies"][2]["fillers"][0]["name"], "encoder-online");
}

TEST(Run, PolicyOptionReplacesTheConfigsPolicies) {
  const ShortWorkplace place;
  const Json json =
      parse_json(succeed(place, std::string(kExample) + "--policy mps,exclusive --json").out);
  ASSERT_EQ(json["policies"].size(), 2U);
  EXPECT_EQ(json["policies"][0]["policy"], "mps");
  EXPECT_EQ(json["policies"][1]["policy"], "exclusive");
}

TEST(Run, TwiceAndOnAnyNumberOfThreadsGivesTheSameBytes) {
  const ShortWorkplace place;
  const Outcome first = succeed(place, std::string(kExample) + "--out first --threads 1");
  const Outcome again = succeed(place, std::string(kExample) + "--out again --threads 4");
  EXPECT_EQ(first.out.substr(0, first.out.find("next: ")),
            again.out.substr(0, again.out.find("next: ")));
  for (const char* file : {"/table.txt", "/results.json", "/results.csv", "/timeline.json"}) {
    EXPECT_FALSE(place.read(std::string("first") + file).empty()) << file;
    EXPECT_TRUE(place.read(std::string("first") + file) ==
                place.read(std::string("again") + file))
        << file;
  }
}

TEST(Run, FilesInOutSayWhatStandardOutputSays) {
  const ShortWorkplace place;
  const std::string table = succeed(place, std::string(kExample) + "--out results --notices").out;
  EXPECT_EQ(place.read("results/table.txt") + "next: bubblesim view results\n", table);
  EXPECT_EQ(place.read("results/results.csv"), succeed(place, std::string(kExample) + "--csv").out);
  EXPECT_EQ(place.read("results/results.json"),
            succeed(place, std::string(kExample) + "--json").out);
}

TEST(Run, PrintsAtMostFiveLinesBelowTheTables) {
  const Workplace place;
  const std::string few = succeed(place, kQuick).out;
  const std::string all = succeed(place, std::string(kQuick) + "--notices").out;
  EXPECT_THAT(few, HasSubstr("not admitted: exclusive: inference on 4 of 4 GPUs (the GPU belongs"));
  const std::string after = few.substr(few.rfind("\n\n") + 2);
  EXPECT_LE(lines_of(after).size(), 5U) << after;
  EXPECT_THAT(few,
              testing::EndsWith("\nnext: bubblesim " + std::string(kQuick) + "--out out/run\n"));
  EXPECT_THAT(few, testing::Not(HasSubstr("notice:")));
  EXPECT_THAT(all, HasSubstr("notice: run_memory_unknown: "));
  EXPECT_GT(all.size(), few.size());
}

TEST(Run, WhatToTypeNextIsQuotedForAShell) {
  const ShortWorkplace place;
  const std::string typed = "run configs/runs/example.json --policy ' mps' ";
  EXPECT_THAT(succeed(place, typed).out,
              testing::EndsWith("\nnext: bubblesim " + typed + "--out out/run\n"));
}

TEST(Run, WideAddsColumnsToTheTableAndToItsFile) {
  const ShortWorkplace place;
  const std::string narrow = succeed(place, kExample).out;
  EXPECT_THAT(narrow, HasSubstr("  train kept  filler gained  requests/s "));
  EXPECT_THAT(narrow, testing::Not(HasSubstr("memory GB")));
  const std::string wide = succeed(place, std::string(kExample) + "--wide --out results").out;
  EXPECT_THAT(wide, HasSubstr("recovered %  memory GB\n"));
  EXPECT_THAT(place.read("results/table.txt"), HasSubstr("recovered %  memory GB\n"));
}

TEST(Run, WithoutAConfigTheDefaultIsSixPoliciesAndTheirBound) {
  const Workplace place;
  std::string arguments = kQuick;
  arguments.erase(arguments.find("--policy exclusive,mps "), 23);
  const Json reports = parse_json(succeed(place, arguments + "--mode offline --json").out);
  std::vector<std::string> names;
  for (const Json& policy : reports["policies"]) names.push_back(policy["policy"]);
  EXPECT_THAT(names, testing::ElementsAre("exclusive", "time_slicing", "mps", "tgs", "specinf",
                                          "pipefill", "ideal"));
  EXPECT_THAT(reports["policies"][4].value("reconstruction", ""), HasSubstr("not public"));
}

TEST(Run, PolicyAllIsEveryPolicyThatThereIs) {
  const Workplace place;
  const std::size_t known = parse_json(succeed(place, "policies --json").out).size();
  const auto rows = csv_of(
      succeed(place, "run traces/samples/training traces/samples/inference.json.gz --policy all "
                     "--mode online --duration 300ms --warmup 0s --csv")
          .out);
  EXPECT_EQ(rows.size(), 1U + known);
}

TEST(Run, APolicyIsNamedWithItsParameters) {
  const Workplace place;
  const auto rows = csv_of(
      succeed(place, "run traces/samples/training traces/samples/inference.json.gz --mode online "
                     "--duration 300ms --warmup 0s --csv --policy "
                     "mps,xsched:collectives=idle:threshold=9,xsched")
          .out);
  ASSERT_EQ(rows.size(), 4U);
  const auto& head = rows[0];
  const auto column = static_cast<std::size_t>(
      std::find(head.begin(), head.end(), "policy_parameters") - head.begin());
  ASSERT_LT(column, head.size());
  EXPECT_THAT(rows[2][column], AllOf(HasSubstr("collectives=idle"), HasSubstr("threshold=9")));
  EXPECT_THAT(rows[3][column], AllOf(HasSubstr("collectives=work"), HasSubstr("threshold=16")));
}

TEST(Run, PathsAndOptionsGiveTheSameBytes) {
  const Workplace place;
  std::string options = kQuick;
  options.replace(options.find("traces/samples/training "), 24,
                  "--training traces/samples/training --filler ");
  EXPECT_EQ(succeed(place, options + "--csv").out,
            succeed(place, std::string(kQuick) + "--csv").out);
}

TEST(Run, TimelineLoadsAndItsSlicesNest) {
  const ShortWorkplace place;
  for (const char* policy : {"exclusive", "time_slicing", "mps", "tgs", "specinf", "pipefill"}) {
    SCOPED_TRACE(policy);
    succeed(place, std::string(kExample) + "--timeline t.json --timeline-window 300ms --policy " +
                       policy);
    expect_slices_nest(parse_json(place.read("t.json")));
  }
}

TEST(Run, RecordingATimelineChangesNoResult) {
  const ShortWorkplace place;
  const std::string plain = succeed(place, std::string(kExample) + "--csv").out;
  EXPECT_EQ(succeed(place, std::string(kExample) + "--csv --timeline t.json").out, plain);
}

TEST(Run, UsageOverTimeHasTheDocumentedColumnsAndChangesNoResult) {
  const ShortWorkplace place;
  const std::string plain = succeed(place, std::string(kExample) + "--csv").out;
  EXPECT_EQ(succeed(place, std::string(kExample) + "--csv --usage u.csv").out, plain);
  const auto rows = csv_of(place.read("u.csv"));
  EXPECT_EQ(rows.front(), documented_columns(place, "## Usage over time"));
  EXPECT_EQ(rows[1][4], "0.000000");
  EXPECT_EQ(rows[1][5], "100.000000");
}

TEST(Run, OutHasUsageOverTimeIfAnIntervalIsGiven) {
  const ShortWorkplace place;
  succeed(place, std::string(kExample) + "--out results --usage-interval 500ms");
  const auto rows = csv_of(place.read("results/usage.csv"));
  ASSERT_GT(rows.size(), 2U);
  EXPECT_EQ(rows[1][5], "300.000000");  // the warm-up's last interval ends with it
  EXPECT_EQ(rows[2][5], "800.000000");
}

TEST(Run, AnIntervalOfUsageThatCannotBeIsAFault) {
  const ShortWorkplace place;
  for (const auto& [option, fault] : std::vector<std::pair<const char*, const char*>>{
           {"--usage-interval 1s", "expected --usage FILE or --out DIR"},
           {"--usage u.csv --usage-interval 0s", "expected more than 0s"},
           {"--usage u.csv --usage-interval soon", "--usage-interval"},
           {"--usage u.csv --usage-interval 1ns", "or more: "}}) {
    const Outcome outcome = place.bubblesim(std::string(kExample) + option);
    EXPECT_EQ(outcome.code, 2) << option;
    EXPECT_THAT(outcome.err, HasSubstr(fault)) << option;
  }
}

TEST(Run, AJobAndAServiceAloneRunOfflineAndOnline) {
  const Workplace place;
  const auto rows = csv_of(succeed(place, std::string(kQuick) + "--csv").out);
  ASSERT_EQ(rows.size(), 1U + 2U * 2U);
  EXPECT_EQ(rows[1][0], "offline");
  EXPECT_EQ(rows[3][0], "online");
}

TEST(Run, ModeLimitsAQuickRun) {
  const Workplace place;
  const auto rows = csv_of(succeed(place, std::string(kQuick) + "--mode online --csv").out);
  ASSERT_EQ(rows.size(), 1U + 2U);
  EXPECT_EQ(rows[1][0], "online");
}

TEST(Run, AQuickRunOnAnImportedTraceGivesTheSameBytes) {
  const Workplace place;
  succeed(place, "import traces/samples/training -o job.btr");
  const std::string from_json = succeed(place, std::string(kQuick) + "--csv").out;
  std::string arguments = kQuick;
  arguments.replace(arguments.find("traces/samples/training"), 23, "job.btr");
  EXPECT_EQ(succeed(place, arguments + "--csv").out, from_json);
}

}  // namespace
}  // namespace bubblesim::app_test
