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
using RunCommand = AtShortWorkplace;
using Validate = AtShortWorkplace;

const std::string kExample = "run configs/runs/example.json ";
// The sample job with the sample service, short.
const std::string kQuick =
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

TEST_F(RunCommand, PrintsATableWithARowForEachPolicy) {
  const std::string table = succeed(place, kExample).out;
  EXPECT_THAT(table, HasSubstr("example: NVIDIA A100-SXM4-40GB, 4 ranks, seed 1"));
  for (const char* policy : {"\nexclusive ", "\ntime_slicing ", "\nmps "}) {
    EXPECT_THAT(table, HasSubstr(policy));
  }
}

TEST_F(RunCommand, CsvHasTheDocumentedColumnsAndARowForEachPolicyAndFiller) {
  const auto rows = csv_of(succeed(place, kExample + "--csv").out);
  ASSERT_EQ(rows.size(), 1U + 4U);
  EXPECT_EQ(rows.front(), documented_columns(place));
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows.front().size());
}

TEST_F(RunCommand, JsonHasAnEntryForEachPolicy) {
  const Json json = json_of(place, kExample + "--json");
  ASSERT_EQ(json["policies"].size(), 4U);
  EXPECT_EQ(json["policies"][0]["policy"], "exclusive");
  EXPECT_EQ(json["policies"][0]["training"]["normalised_fraction"], 1.0);
  EXPECT_EQ(json["policies"][2]["fillers"][0]["name"], "encoder-online");
}

TEST_F(RunCommand, PolicyOptionReplacesTheConfigsPolicies) {
  const Json json = json_of(place, kExample + "--policy mps,exclusive --json");
  ASSERT_EQ(json["policies"].size(), 2U);
  EXPECT_EQ(json["policies"][0]["policy"], "mps");
  EXPECT_EQ(json["policies"][1]["policy"], "exclusive");
}

TEST_F(RunCommand, TwiceAndOnAnyNumberOfThreadsGivesTheSameBytes) {
  const Outcome first = succeed(place, kExample + "--out first --threads 1");
  const Outcome again = succeed(place, kExample + "--out again --threads 4");
  EXPECT_EQ(first.out.substr(0, first.out.find("next: ")),
            again.out.substr(0, again.out.find("next: ")));
  for (const char* file : {"/table.txt", "/results.json", "/results.csv", "/timeline.json"}) {
    EXPECT_FALSE(place.read(std::string("first") + file).empty()) << file;
    EXPECT_TRUE(place.read(std::string("first") + file) ==
                place.read(std::string("again") + file))
        << file;
  }
}

TEST_F(RunCommand, FilesInOutSayWhatStandardOutputSays) {
  const std::string table = succeed(place, kExample + "--out results --notices").out;
  EXPECT_EQ(place.read("results/table.txt") + "next: bubblesim view results\n", table);
  EXPECT_EQ(place.read("results/results.csv"), succeed(place, kExample + "--csv").out);
  EXPECT_EQ(place.read("results/results.json"), succeed(place, kExample + "--json").out);
}

TEST_F(RunCommand, PrintsAtMostFiveLinesBelowTheTables) {
  const std::string few = succeed(place, kQuick).out;
  const std::string all = succeed(place, kQuick + "--notices").out;
  EXPECT_THAT(few, HasSubstr("not admitted: exclusive: inference on 4 of 4 GPUs (the GPU belongs"));
  const std::string after = few.substr(few.rfind("\n\n") + 2);
  EXPECT_LE(lines_of(after).size(), 5U) << after;
  EXPECT_THAT(few, testing::EndsWith("\nnext: bubblesim " + kQuick + "--out out/run\n"));
  EXPECT_THAT(few, testing::Not(HasSubstr("notice:")));
  EXPECT_THAT(all, HasSubstr("notice: run_memory_unknown: "));
  EXPECT_GT(all.size(), few.size());
}

TEST_F(RunCommand, WhatToTypeNextIsQuotedForAShell) {
  const std::string typed = "run configs/runs/example.json --policy ' mps' ";
  EXPECT_THAT(succeed(place, typed).out,
              testing::EndsWith("\nnext: bubblesim " + typed + "--out out/run\n"));
}

TEST_F(RunCommand, WideAddsColumnsToTheTableAndToItsFile) {
  const std::string narrow = succeed(place, kExample).out;
  EXPECT_THAT(narrow, HasSubstr("  train kept  filler gained  requests/s "));
  EXPECT_THAT(narrow, testing::Not(HasSubstr("memory GB")));
  const std::string wide = succeed(place, kExample + "--wide --out results").out;
  EXPECT_THAT(wide, HasSubstr("recovered %  memory GB\n"));
  EXPECT_THAT(place.read("results/table.txt"), HasSubstr("recovered %  memory GB\n"));
}

TEST_F(RunCommand, WithoutAConfigTheDefaultIsSixPoliciesAndTheirBound) {
  std::string arguments = kQuick;
  arguments.erase(arguments.find("--policy exclusive,mps "), 23);
  const Json reports = json_of(place, arguments + "--mode offline --json");
  std::vector<std::string> names;
  for (const Json& policy : reports["policies"]) names.push_back(policy["policy"]);
  EXPECT_THAT(names, testing::ElementsAre("exclusive", "time_slicing", "mps", "tgs", "specinf",
                                          "pipefill", "ideal"));
  EXPECT_THAT(reports["policies"][4].value("reconstruction", ""), HasSubstr("not public"));
}

TEST_F(RunCommand, PolicyAllIsEveryPolicyThatThereIs) {
  const std::size_t known = json_of(place, "policies --json").size();
  const auto rows = csv_of(
      succeed(place, "run traces/samples/training traces/samples/inference.json.gz --policy all "
                     "--mode online --duration 300ms --warmup 0s --csv")
          .out);
  EXPECT_EQ(rows.size(), 1U + known);
}

TEST_F(RunCommand, APolicyIsNamedWithItsParameters) {
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

TEST_F(RunCommand, PathsAndOptionsGiveTheSameBytes) {
  std::string options = kQuick;
  options.replace(options.find("traces/samples/training "), 24,
                  "--training traces/samples/training --filler ");
  EXPECT_EQ(succeed(place, options + "--csv").out, succeed(place, kQuick + "--csv").out);
}

TEST_F(RunCommand, TimelineLoadsAndItsSlicesNest) {
  for (const char* policy : {"exclusive", "time_slicing", "mps", "tgs", "specinf", "pipefill"}) {
    SCOPED_TRACE(policy);
    succeed(place, kExample + "--timeline t.json --timeline-window 300ms --policy " + policy);
    expect_slices_nest(parse_json(place.read("t.json")));
  }
}

TEST_F(RunCommand, RecordingATimelineChangesNoResult) {
  const std::string plain = succeed(place, kExample + "--csv").out;
  EXPECT_EQ(succeed(place, kExample + "--csv --timeline t.json").out, plain);
}

TEST_F(RunCommand, UsageOverTimeHasTheDocumentedColumnsAndChangesNoResult) {
  const std::string plain = succeed(place, kExample + "--csv").out;
  EXPECT_EQ(succeed(place, kExample + "--csv --usage u.csv").out, plain);
  const auto rows = csv_of(place.read("u.csv"));
  EXPECT_EQ(rows.front(), documented_columns(place, "## Usage over time"));
  EXPECT_EQ(rows[1][4], "0.000000");
  EXPECT_EQ(rows[1][5], "100.000000");
}

TEST_F(RunCommand, OutHasUsageOverTimeIfAnIntervalIsGiven) {
  succeed(place, kExample + "--out results --usage-interval 500ms");
  const auto rows = csv_of(place.read("results/usage.csv"));
  ASSERT_GT(rows.size(), 2U);
  EXPECT_EQ(rows[1][5], "300.000000");  // the warm-up's last interval ends with it
  EXPECT_EQ(rows[2][5], "800.000000");
}

TEST_F(RunCommand, AnIntervalOfUsageThatCannotBeIsAFault) {
  for (const auto& [option, fault] : std::vector<std::pair<const char*, const char*>>{
           {"--usage-interval 1s", "expected --usage FILE or --out DIR"},
           {"--usage u.csv --usage-interval 0s", "expected more than 0s"},
           {"--usage u.csv --usage-interval soon", "--usage-interval"},
           {"--usage u.csv --usage-interval 1ns", "or more: "}}) {
    expect_fault(place, kExample + option, HasSubstr(fault));
  }
}

TEST_F(RunCommand, AJobAndAServiceAloneRunOfflineAndOnlineUnlessAModeIsSaid) {
  const auto both = csv_of(succeed(place, kQuick + "--csv").out);
  ASSERT_EQ(both.size(), 1U + 2U * 2U);
  EXPECT_EQ(both[1][0], "offline");
  EXPECT_EQ(both[3][0], "online");
  const auto online = csv_of(succeed(place, kQuick + "--mode online --csv").out);
  ASSERT_EQ(online.size(), 1U + 2U);
  EXPECT_EQ(online[1][0], "online");
}

TEST_F(RunCommand, AQuickRunOnAnImportedTraceGivesTheSameBytes) {
  succeed(place, "import traces/samples/training -o job.btr");
  const std::string from_json = succeed(place, kQuick + "--csv").out;
  std::string arguments = kQuick;
  arguments.replace(arguments.find("traces/samples/training"), 23, "job.btr");
  EXPECT_EQ(succeed(place, arguments + "--csv").out, from_json);
}

// bubblesim validate RUN MEASURED: errors of every figure, what is missing, and how it exits.

// A report of config "pair" whose policy "mps" has this iteration and this filler throughput.
std::string report(double iteration_ns, double requests_per_s, const std::string& policy = "mps") {
  Json filler = {{"name", "svc"}, {"requests_per_s", requests_per_s}};
  Json result = {{"policy", policy},
                 {"training", {{"iteration_mean_ns", iteration_ns}}},
                 {"fillers", Json::array({filler})}};
  Json baseline = {{"training_iteration_mean_ns", 10e6},
                   {"fillers", Json::array({{{"name", "svc"}, {"requests_per_s", 100.0}}})}};
  return Json({{"config", "pair"}, {"device", "card"}, {"baseline", baseline},
               {"policies", Json::array({result})}})
      .dump();
}

TEST_F(Validate, ComparesTwoReportsAndWritesWhatIsAskedFor) {
  place.write("run.json", report(11e6, 63));
  place.write("measured.json", report(12e6, 60));
  const Outcome done = succeed(place,  "validate run.json measured.json --csv e.csv --json e.json");
  EXPECT_THAT(done.out, HasSubstr("pair (measured 1 time;"));
  EXPECT_THAT(done.out, HasSubstr("filler_throughput  <=  5 %      met: 5.00"));
  EXPECT_THAT(done.out, HasSubstr("note: MEASURED holds reports that were simulated"));
  const Json json = parse_json(place.read("e.json"));
  EXPECT_EQ(json["summary"][0]["metric"], "training_slowdown");
  EXPECT_NEAR(json["summary"][0]["mean_absolute_error"].get<double>(), 10, 1e-9);
  EXPECT_EQ(csv_of(place.read("e.csv")).size(), 1U + json["cells"].size());
}

TEST_F(Validate, FoldersAreJudgedAtOnceWithRepetitionsAndRoles) {
  ASSERT_EQ(place.shell("mkdir -p s/a m/a").code, 0);
  place.write("s/a/results.json", report(11e6, 63));
  place.write("m/a/results-1.json", report(12e6, 60));
  place.write("m/a/results-2.json", report(13e6, 61));
  const Outcome all = succeed(place, "validate s m --summary");
  EXPECT_THAT(all.out, HasSubstr("judge training_slowdown"));
  EXPECT_THAT(all.out, testing::Not(HasSubstr("measured 2 times")));
  place.write("roles.csv", "config,policy,role\npair,*,fit\n");
  const Outcome fit = place.bubblesim("validate s m --role roles.csv");
  EXPECT_THAT(fit.out, HasSubstr("measured 2 times"));
  EXPECT_THAT(fit.out, testing::Not(HasSubstr("judge training_slowdown")));
  EXPECT_EQ(place.bubblesim("validate s m --fit pair").out, fit.out);
}

TEST_F(Validate, WhatWasMeasuredAndNotSimulatedIsNamedAndFails) {
  place.write("run.json", report(11e6, 63, "mps"));
  place.write("measured.json", report(11e6, 63, "tgs"));
  const Outcome done = place.bubblesim("validate run.json measured.json");
  EXPECT_EQ(done.code, 1);
  EXPECT_THAT(done.out, HasSubstr("FAILED: not simulated:\n    pair/tgs"));
  EXPECT_THAT(done.out, HasSubstr("not measured:\n    pair/mps"));
}

TEST_F(Validate, ARunAgreesWithItself) {
  ASSERT_EQ(place.bubblesim("run configs/runs/example.json --out out1").code, 0);
  const Outcome done = succeed(place, "validate out1 out1 --json e.json");
  const Json summaries = parse_json(place.read("e.json"))["summary"];
  ASSERT_FALSE(summaries.empty());
  for (const Json& summary : summaries) {
    EXPECT_EQ(summary["mean_absolute_error"], 0.0) << summary["metric"];
  }
}

TEST_F(Validate, FaultsNameFileAndPlace) {
  place.write("run.json", report(11e6, 63));
  place.write("bad.json", R"({"config": "pair", "policies": [{"policy": 5}]})");
  expect_fault(place, "validate run.json bad.json",
               HasSubstr("bad.json: /policies/0/policy: found the number 5"));
  for (const char* line : {"validate", "validate run.json", "validate run.json nowhere.json",
                           "validate run.json run.json --fit nothing",
                           "validate run.json run.json --role nowhere.csv",
                           "validate run.json run.json --tie -1"}) {
    expect_fault(place, line, testing::Not(testing::IsEmpty()));
  }
}

TEST_F(RunCommand, TakesADeviceFileOfOnesOwn) {
  ASSERT_EQ(place.shell("cp configs/devices/a100-40gb.json mine.json").code, 0);
  const std::string base =
      "run --synth-model roberta-large --plan ddp-4 --cluster a100-40gb-4 "
      "--filler traces/samples/inference.json.gz --policy exclusive --duration 300ms "
      "--warmup 50ms --mode offline --json";
  const Outcome named = place.bubblesim(base);
  EXPECT_EQ(succeed(place, base + " --device ./mine.json").out, named.out);
  const Outcome config =
      place.bubblesim("run configs/runs/example.json --device h100 --policy exclusive --json");
  EXPECT_EQ(parse_json(config.out)["device"], "NVIDIA H100 80GB HBM3");
}

/// What bubblesim.steps writes of an engine's trace: a prompt of 300 tokens in 80 ms, and one
/// sequence that decodes behind 300 tokens in 20 ms.
void write_steps(const Workplace& place) {
  place.write("steps.json", R"({"format": "bubblesim.steps/1", "gpu": "", "source": "engine.json",
    "steps": [
      {"prompts": {"sequences": 1, "tokens": 300, "keys": 300, "squares": 90000, "products": 90000},
       "singles": {"sequences": 0, "tokens": 0, "keys": 0, "squares": 0, "products": 0},
       "kernels_us": 80000},
      {"prompts": {"sequences": 0, "tokens": 0, "keys": 0, "squares": 0, "products": 0},
       "singles": {"sequences": 1, "tokens": 1, "keys": 301, "squares": 1, "products": 301},
       "kernels_us": 20000}]})");
}

TEST_F(RunCommand, AServersRecordedStepsAreItsKernelsTimes) {
  write_steps(place);
  // Training is out of order from the start on.
  Json config = parse_json(R"({
    "name": "server", "duration": "10s", "device": "a100-80gb",
    "training": {"memory": "1GB", "faults": [{"at": "1ms", "detection": "1ms", "restart": "10min"}],
                 "synth": {"model": "llama-68m", "cluster": "a100-40gb-4",
                           "plan": {"data": 1, "global_batch": 1, "micro_batch": 1,
                                    "sequence": 16}}},
    "fillers": [{"name": "chat", "mode": "online",
                 "arrivals": {"process": "poisson", "rate_per_s": 1},
                 "program": {"model": "llama3-8b", "precision": "bf16", "decode": "graph",
                             "step_host": "500us",
                             "requests": {"prompt_tokens": 300, "output_tokens": 3},
                             "engine": {"max_model_len": 4096, "max_num_seqs": 8,
                                        "kv_cache": "4GB", "steps": "steps.json"}}}],
    "policies": ["mps"]})");
  Json& filler = config["fillers"][0];
  place.write("config.json", config.dump());
  const Outcome run = place.bubblesim("run config.json --json");
  ASSERT_LE(run.code, 1) << run.err;  // 1: training does nothing
  const Json server = parse_json(run.out)["policies"][0]["fillers"][0]["server"];
  // Half of the requests meet nobody else's prompt.
  EXPECT_NEAR(server["tpot"]["p50"]["value_ns"].get<double>() / 1e6, 20.5, 0.6)
      << server["tpot"].dump();
  filler["program"]["engine"]["layers"] = "steps.json";
  place.write("config.json", config.dump());
  expect_fault(place, "run config.json", HasSubstr("expected one of them"));
}

}  // namespace
}  // namespace bubblesim::app_test
