// OUTPUTS.md defines every CSV column and JSON key, and nothing that is not written.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <regex>
#include <set>
#include <sstream>

#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/observe/report.hpp"
#include "sim/observe/result_rows.hpp"
#include "sim/observe/summary.hpp"
#include "tests/unit/sim/observe/documented_names.hpp"
#include "tests/unit/sim/observe/sample_report.hpp"

namespace bubblesim::observe {
namespace {

using std::chrono::milliseconds, std::chrono::seconds;

std::string section(const std::string& heading) {
  const std::string all =
      read_text_file(BUBBLESIM_SOURCE_DIR "/sim/observe/OUTPUTS.md").value();
  const std::size_t start = all.find("## " + heading + "\n");
  if (start == std::string::npos) return {};
  return all.substr(start, all.find("\n## ", start + 1) - start);
}

/// Names in the first cell of each table row: "| `name` | ...", "| `a_{b,c}` | ...".
std::set<std::string> defined(const std::string& text) {
  std::set<std::string> names;
  const std::regex row("(?:^|\n)\\| `([^`]+)` \\|");
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) {
    for (const std::string& name : documented_names((*it)[1])) names.insert(name);
  }
  return names;
}

/// Paths of all values that are not objects or lists: "policies[].training.iterations".
void collect(const Json& json, const std::string& path, std::set<std::string>& paths) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      collect(value, path.empty() ? key : path + "." + key, paths);
    }
  } else if (json.is_array()) {
    for (const Json& value : json) collect(value, path + "[]", paths);
  } else {
    paths.insert(path);
  }
}

TEST(Outputs, NamesInBracesStandForOneEach) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(documented_names("p{50,95} ms"), (Names{"p50 ms", "p95 ms"}));
  EXPECT_EQ(documented_names("{,a_}{b,c}"), (Names{"b", "c", "a_b", "a_c"}));
  EXPECT_EQ(documented_names("plain[]"), Names{"plain[]"});
}

TEST(Outputs, EveryColumnOfTheTableIsDefinedAndNoOther) {
  const std::string table = report_table(metered_report(), Columns::kAll);
  const std::size_t begin = table.find("\npolicy ") + 1;
  const std::string titles = table.substr(begin, table.find('\n', begin) - begin);
  std::set<std::string> written;
  const std::regex title("[^ ]+(?: [^ ]+)*");  // two spaces or more between them
  for (std::sregex_iterator it(titles.begin(), titles.end(), title), end; it != end; ++it) {
    written.insert(it->str());
  }
  EXPECT_EQ(defined(section("Table")), written);
}

/// The columns that a header line names.
std::set<std::string> names_in(std::string header) {
  header.pop_back();
  std::set<std::string> names;
  std::stringstream columns(header);
  for (std::string column; std::getline(columns, column, ',');) names.insert(column);
  return names;
}

/// Two requests that were served and one that waits for its first token.
ServerResult sample_server() {
  ServerResult server;
  for (const int ms : {100, 300}) server.ttft.add(std::chrono::milliseconds(ms));
  server.ttft.add_unfinished(std::chrono::milliseconds(400));
  for (const int ms : {20, 30}) server.tpot.add(std::chrono::milliseconds(ms));
  server.output_tokens_per_s = 12.5;
  server.preemptions = 3;
  server.mean_kv_fraction = 0.25;
  server.limits = ServiceLimits{std::chrono::milliseconds(200), {}, {}};
  server.within_limits = 1;
  server.goodput_per_s = 0.5;
  return server;
}

TEST(Outputs, EveryColumnOfCsvFilesIsDefinedAndNoOther) {
  EXPECT_EQ(defined(section("CSV")), names_in(csv_header()));
  EXPECT_EQ(defined(section("Usage over time")), names_in(usage_header()));
  EXPECT_EQ(defined(section("Servers")), names_in(servers_header()));
}

TEST(Outputs, ServersHaveATableOfTheirOwnAndOthersHaveNone) {
  RunReport report = sample_report();
  EXPECT_EQ(server_table(report, Columns::kFew), "");
  EXPECT_EQ(servers_rows(report), "");
  report.policies[0].fillers[0].server = sample_server();
  EXPECT_NE(report_table(report, Columns::kAll).find(server_table(report, Columns::kAll)),
            std::string::npos);
  EXPECT_NE(server_table(report, Columns::kFew).find(" of 3  of 3         of 2  of 2 "),
            std::string::npos);
  LatencyDistribution& ttft = report.policies[0].fillers[0].server->ttft;
  const LatencyDistribution once = ttft;
  for (int i = 1; i < 40; ++i) ttft.merge(once);
  const std::string table = server_table(report, Columns::kFew);
  // Nearest rank: of 100, 300 and the age 400 the median is 300, and p99 a lower bound of 400.
  EXPECT_NE(table.find("300.000  >400.000"), std::string::npos) << table;
  const std::string row = servers_rows(report);
  EXPECT_NE(row.find(",12.5,0.5,1,3,0,0,0.25,0\n"), std::string::npos) << row;
}

TEST(Outputs, ResultsHaveTheFiguresOfServersAndNothingElsewhere) {
  RunReport report = sample_report();
  for (const char* column : {"ttft_p95_ms", "tpot_mean_ms", "goodput_per_s", "kv_mean_fraction",
                             "server_preemptions", "requests_within_limits"}) {
    EXPECT_EQ(typed_cell(report, column), Cell()) << column;
  }
  report.policies[0].fillers[0].server = sample_server();
  EXPECT_EQ(typed_cell(report, "ttft_p50_ms"), Cell(300.0));
  EXPECT_EQ(typed_cell(report, "ttft_lower_bound_from"), Cell("p90"));
  EXPECT_EQ(typed_cell(report, "tpot_mean_ms"), Cell(25.0));
  EXPECT_EQ(typed_cell(report, "goodput_per_s"), Cell(0.5));
  EXPECT_EQ(typed_cell(report, "requests_within_limits"), Cell(std::int64_t{1}));
  EXPECT_EQ(typed_cell(report, "server_preemptions"), Cell(std::int64_t{3}));
}

std::set<std::string> json_keys(const RunReport& report) {
  std::set<std::string> keys;
  collect(Json::parse(report_json(report)), "", keys);
  return keys;
}

// Beside those of all runs: what runs that end by themselves have, and measured ones.
TEST(Outputs, EveryJsonKeyIsDefinedAndNoOther) {
  RunReport whole = metered_report();
  whole.interrupted = {"tgs"};
  whole.policies[0].fillers[0].server = sample_server();
  EXPECT_EQ(defined(section("JSON")), json_keys(whole));
  const auto added = [](const RunReport& report) {
    std::set<std::string> keys = json_keys(report);
    for (const std::string& key : json_keys(sample_report())) keys.erase(key);
    return keys;
  };
  RunReport known = sample_report();
  known.policies[0].precision = RunPrecision{0.95, {{"training_rate", "", 0.005, 0.001, true}}};
  EXPECT_EQ(defined(section("Runs that end by themselves")), added(known));
  EXPECT_EQ(defined(section("Measured runs")), added(measured_report()));
}

RankIterations rank_of_ms(std::uint32_t rank, const std::vector<int>& times,
                          std::size_t first_counted = 0) {
  RankIterations iterations{rank, {}, first_counted};
  for (const int time : times) iterations.times.push_back(milliseconds{time});
  return iterations;
}

// Two ranks, four iterations of 100 + 300 + 150 + 250 = 800 ms: 200 ms each, 5 a second.
TEST(SummariseTraining, RatesAreOfTheMeanIteration) {
  const auto result = summarise_training(
      {rank_of_ms(0, {100, 300}), rank_of_ms(1, {150, 250})}, {8.0, 10.0});
  EXPECT_EQ(result.iterations, 2U);
  EXPECT_EQ(result.mean_iteration, milliseconds{200});
  EXPECT_EQ(result.min_iteration, milliseconds{100});
  EXPECT_EQ(result.max_iteration, milliseconds{300});
  EXPECT_DOUBLE_EQ(result.iterations_per_s, 5);
  EXPECT_DOUBLE_EQ(*result.samples_per_s, 40);
  EXPECT_DOUBLE_EQ(*result.normalised_to_alone, 0.5);
}

TEST(SummariseTraining, IterationsOfTheWarmUpAreKeptButNotCounted) {
  const auto result = summarise_training({rank_of_ms(0, {900, 100, 100}, 1)}, {});
  EXPECT_EQ(result.iterations, 2U);
  EXPECT_EQ(result.max_iteration, milliseconds{100});
  EXPECT_EQ(result.ranks[0].times.size(), 3U);
}

TEST(SummariseTraining, CountsIterationsThatEveryRankFinished) {
  EXPECT_EQ(summarise_training({rank_of_ms(0, {1, 1, 1}), rank_of_ms(1, {1, 1})}, {}).iterations,
            2U);
}

// Passes of two iterations, 100 and 300 ms: of five finished ones, the last four are two passes.
TEST(SummariseTraining, MeansAreOverWholePasses) {
  RankIterations rank = rank_of_ms(0, {300, 100, 300, 100, 300});
  rank.per_pass = 2;
  const auto result = summarise_training({rank}, {});
  EXPECT_EQ(result.mean_iteration, milliseconds{200});
  EXPECT_EQ(result.iterations, 5U);
}

// Ten iterations of 100 ms, a checkpoint after every three. The first fault strikes after four, of
// which one is done again; the second after nine, eight of them progress: two again.
TEST(SummariseTraining, WhatIsDoneAgainAfterFaultsIsNoGoodput) {
  TrainingScale scale;
  scale.faults = {milliseconds{450}, milliseconds{950}};
  scale.checkpoint_every = 3;
  const std::vector<int> ten(10, 100);
  const auto result = summarise_training({rank_of_ms(0, ten), rank_of_ms(1, ten)}, scale);
  EXPECT_EQ(result.redone, 3U);
  EXPECT_DOUBLE_EQ(*result.goodput_per_s, 7);
  EXPECT_DOUBLE_EQ(result.iterations_per_s, 10);
  // Of the last five iterations, those after a warm-up, the second fault's alone count.
  EXPECT_EQ(summarise_training({rank_of_ms(0, ten, 5)}, scale).redone, 2U);
  EXPECT_FALSE(summarise_training({rank_of_ms(0, ten)}, {}).goodput_per_s.has_value());
}

// Ten iterations of 100 ms, then a fault at 1.03 s whose restart outlasts the run of 2 s: its time
// is lost, and with it the one of the ten that no checkpoint has.
TEST(SummariseTraining, AnOutageThatOutlastsTheRunCostsItsTime) {
  TrainingScale scale;
  scale.faults = {milliseconds{1030}};
  scale.checkpoint_every = 3;
  scale.simulated = seconds{2};
  scale.samples_per_iteration = 8;
  const RankIterations ten = rank_of_ms(0, std::vector<int>(10, 100));
  const auto result = summarise_training({ten, ten}, scale);
  EXPECT_EQ(result.mean_iteration, milliseconds{100});
  EXPECT_DOUBLE_EQ(result.iterations_per_s, 5);
  EXPECT_DOUBLE_EQ(*result.samples_per_s, 40);
  EXPECT_EQ(result.redone, 1U);
  EXPECT_DOUBLE_EQ(*result.goodput_per_s, 4.5);
  scale.faults = {milliseconds{970}};  // in an iteration that ended
  EXPECT_DOUBLE_EQ(summarise_training({ten}, scale).iterations_per_s, 10);
  EXPECT_EQ(summarise_training({rank_of_ms(0, {})}, scale).goodput_per_s, 0.0);
}

// A fault strikes at 350 ms. Where the iteration that is struck still ends, and others after it,
// they are fewer the longer the restart lasts.
TEST(SummariseTraining, GoodputNeverRisesWithALongerRestart) {
  TrainingScale scale;
  scale.faults = {milliseconds{350}};
  scale.checkpoint_every = 2;
  scale.simulated = seconds{1};
  double before = 100;
  for (int restart = 0; restart < 1000; ++restart) {
    RankIterations rank = rank_of_ms(0, {100, 100, 100});
    for (int end = 400 + restart, last = 300; end <= 1000; end += 100) {
      rank.times.push_back(milliseconds{end - last});
      last = end;
    }
    const double goodput = *summarise_training({rank}, scale).goodput_per_s;
    EXPECT_LE(goodput, before + 1e-9) << restart;
    before = goodput;
  }
  EXPECT_DOUBLE_EQ(before, 2);
}

// Less than a pass is all there is.
TEST(SummariseTraining, MeansAreOverWhatThereIsIfNoPassWasFinished) {
  RankIterations rank = rank_of_ms(0, {300, 100});
  rank.per_pass = 3;
  EXPECT_EQ(summarise_training({rank}, {}).mean_iteration, milliseconds{200});
}

// Alone the pass is 100, 100 and 400 ms. Beside a filler the first two took 120 and 130 ms: 200 of
// 250 ms are kept, whatever the mean of the whole pass is.
TEST(SummariseTraining, LessThanAPassIsComparedWithTheSameIterationsAlone) {
  RankIterations alone = rank_of_ms(0, {100, 100, 400, 100, 100, 400});
  RankIterations rank = rank_of_ms(0, {120, 130});
  alone.per_pass = rank.per_pass = 3;
  EXPECT_EQ(pass_of({alone}), (std::vector<Duration>{milliseconds{100}, milliseconds{100},
                                                     milliseconds{400}}));
  TrainingScale scale{{}, 5.0};
  scale.alone_pass = pass_of({alone});
  EXPECT_DOUBLE_EQ(*summarise_training({rank}, scale).normalised_to_alone, 0.8);
  EXPECT_EQ(ranks_within_pass({rank, alone}), 1U);
  rank.times.push_back(milliseconds{350});  // a whole pass, 600 ms of three: 5 a second
  EXPECT_DOUBLE_EQ(*summarise_training({rank}, scale).normalised_to_alone, 1);
  EXPECT_EQ(ranks_within_pass({rank}), 0U);
}

TEST(SummariseTraining, NothingFinishedIsNothingOfWhatItDoesAlone) {
  const auto result = summarise_training({rank_of_ms(0, {})}, {8.0, 10.0});
  EXPECT_EQ(result.iterations, 0U);
  EXPECT_EQ(result.iterations_per_s, 0);
  EXPECT_EQ(result.normalised_to_alone, 0.0);
  EXPECT_FALSE(summarise_training({}, {8.0, 10.0}).normalised_to_alone);  // no training at all
}

TEST(FirstAfter, IsTheFirstIterationThatEndsInsideTheWindow) {
  const std::vector<Duration> times{milliseconds{40}, milliseconds{60}, milliseconds{10}};
  EXPECT_EQ(first_after(times, Duration{}), 0U);
  EXPECT_EQ(first_after(times, milliseconds{100}), 2U);  // the second ends at 100, not after it
  EXPECT_EQ(first_after(times, milliseconds{110}), 3U);
}

// 30 + 10 requests in 2 s: 20 a second, over two GPUs that could do 25 a second each.
TEST(SummariseFiller, NormalisesToAsManyGpusAsItWasGiven) {
  FillerResult filler;
  filler.instances = {{GpuId{0}, true, "", 15, 30, Bytes{100}},
                      {GpuId{1}, true, "", 5, 10, Bytes{50}}};
  summarise_filler(filler, seconds{2}, 25);
  EXPECT_EQ(filler.passes, 20U);
  EXPECT_EQ(filler.requests_completed, 40U);
  EXPECT_EQ(filler.memory, Bytes{150});
  EXPECT_DOUBLE_EQ(filler.requests_per_s, 20);
  EXPECT_DOUBLE_EQ(*filler.normalised_to_own_gpu, 0.4);
}

FillerResult with_backlog(std::uint64_t before, std::uint64_t arrived, std::uint64_t unfinished) {
  FillerResult filler;
  filler.mode = FillerMode::kOnline;
  filler.requests_before = before;
  filler.requests_arrived = arrived;
  filler.requests_completed = before + arrived - unfinished;
  filler.requests_unfinished = unfinished;
  return filler;
}

// 100 arrivals: three deviations are 30, and a batch of 4 may be on its way.
TEST(IsOverloaded, IsABacklogThatGrowsByMoreThanChanceAndABatch) {
  EXPECT_FALSE(is_overloaded(with_backlog(10, 100, 44), {4, seconds{1}}, seconds{60}));
  EXPECT_TRUE(is_overloaded(with_backlog(10, 100, 45), {4, seconds{1}}, seconds{60}));
  EXPECT_FALSE(is_overloaded(with_backlog(500, 100, 450), {4, seconds{59}}, seconds{60}));
}

TEST(IsOverloaded, IsAFillerThatServesNothingForHalfOfTheWindow) {
  EXPECT_TRUE(is_overloaded(with_backlog(0, 1, 1), {1, seconds{30}}, seconds{60}));
  EXPECT_FALSE(is_overloaded(with_backlog(0, 1, 1), {1, seconds{29}}, seconds{60}));
  EXPECT_FALSE(is_overloaded(with_backlog(0, 0, 0), {1, {}}, seconds{60}));
}

// 2 % of 100 arrivals are 2 requests.
TEST(KeepsUp, IsABacklogThatGrowsByAShareOfTheArrivalsAtMost) {
  EXPECT_TRUE(keeps_up(with_backlog(10, 100, 12), 0.02));
  EXPECT_FALSE(keeps_up(with_backlog(10, 100, 13), 0.02));
  EXPECT_TRUE(keeps_up(with_backlog(10, 100, 0), 0.02));
}

TEST(RecoveredOverGpus, WeighsEachGpuByItsBubbles) {
  GpuUse small;
  small.bubble_fraction = 0.1;
  small.recovered_fraction = 1;
  GpuUse large;
  large.bubble_fraction = 0.3;
  large.recovered_fraction = 0.5;
  EXPECT_DOUBLE_EQ(recovered_over_gpus({small, large}), 0.625);  // (0.1 + 0.15) / 0.4
  EXPECT_EQ(recovered_over_gpus({}), 0);
  EXPECT_DOUBLE_EQ(mean_over_gpus({small, large}, &GpuUse::bubble_fraction), 0.2);
}

TEST(Summary, EnergyOfAnIterationLeavesFillersOut) {
  // (600 - 100) J in 2 s at 4 iterations a second.
  const PolicyResult policy = metered_report().policies.front();
  const auto power = power_of(policy);
  ASSERT_TRUE(power.has_value());
  EXPECT_DOUBLE_EQ(power->iteration_j.value(), 62.5);
  EXPECT_DOUBLE_EQ(power->mean_w, 300);
  EXPECT_DOUBLE_EQ(power->peak_w, 390);
  EXPECT_DOUBLE_EQ(request_energy(policy.fillers.front()).value(), 25);  // 100 J, 4 requests
}

TEST(Summary, WhereNothingIsMeteredThereIsNoPower) {
  const PolicyResult policy = sample_report().policies.front();
  EXPECT_FALSE(power_of(policy).has_value());
  EXPECT_FALSE(request_energy(policy.fillers.front()).has_value());
}

}  // namespace
}  // namespace bubblesim::observe
