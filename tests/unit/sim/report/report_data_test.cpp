#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "sim/base/json.hpp"
#include "sim/report/report_axes.hpp"
#include "sim/report/report_data.hpp"
#include "sim/report/report_page.hpp"
#include "sim/report/report_timeline.hpp"
#include "tests/fault.hpp"
#include "tests/temp_folder.hpp"
#include "tests/unit/sim/store/sample_record.hpp"

namespace bubblesim::report {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty, testing::Not;

// A store for one test, and runs in it with figures that the test chooses.
class ReportCase : public testing::Test {
 protected:
  /// A run of one policy at a load and a seed, with its p95 latency and kept training throughput.
  store::RunRecord run(std::uint64_t number, const std::string& policy, const std::string& load,
                std::uint64_t seed, double p95, double kept) {
    store::RunRecord record = store::sample_record(number);
    record.rows.erase(record.rows.begin());
    record.latencies.clear();
    record.rows[0].policy = 0;
    record.run.seed = seed;
    record.run.settings = {{"/policies/0", '"' + policy + '"'}, {"/load", load}};
    record.run.config = R"({"load":)" + load + R"(,"policies":[")" + policy + R"("]})";
    set_cell(record, 0, "policy", policy);
    set_cell(record, 0, "oracle", std::int64_t{policy == "ideal" ? 1 : 0});
    set_cell(record, 0, "latency_p95_ms", p95);
    set_cell(record, 0, "training_normalised_fraction", kept);
    set_cell(record, 0, "losses", std::string());
    return record;
  }
  void add(const store::RunRecord& record) { ASSERT_TRUE(store_->add({&record, 1})); }
  [[nodiscard]] ReportData report(const store::CompareOptions& options = {}) {
    return must(collect_report(*store_, options));
  }

  const TempFolder temp_;
  const std::unique_ptr<store::ResultsStore> store_ =
      must(store::open_store(temp_.path("results.db"), store::StoreAccess::kWrite));
};
using ReportOfAStore = ReportCase;
using ReportPage = ReportCase;

const ReportValue& figure(const ReportPoint& point, std::string_view column) {
  return point.figures[metric_place(column)];
}

TEST(MeanOverSeeds, HasTheIntervalOfStudentsT) {
  // Mean 4, deviation 2; t of 2 degrees of freedom at 97.5 % is 4.302653.
  const ReportValue value = mean_over_seeds({2.0, 4.0, 6.0}, 0.95);
  EXPECT_DOUBLE_EQ(value.mean.value(), 4);
  EXPECT_NEAR(value.half_width.value(), 4.302653 * 2 / std::sqrt(3), 1e-5);
}

TEST(MeanOverSeeds, OfOneValueHasNoIntervalAndOfNoneNoMean) {
  EXPECT_EQ(mean_over_seeds({7.0, std::nullopt}, 0.95).seeds, 1U);
  EXPECT_FALSE(mean_over_seeds({7.0, std::nullopt}, 0.95).half_width);
  EXPECT_FALSE(mean_over_seeds({std::nullopt}, 0.95).mean);
}

TEST_F(ReportOfAStore, AveragesSeedsOfAPoint) {
  add(run(0, "mps", "100", 1, 10, 0.9)), add(run(1, "mps", "100", 2, 14, 0.9));
  add(run(2, "mps", "200", 1, 30, 0.8));
  const ReportData data = report();
  ASSERT_EQ(data.points.size(), 2U);
  EXPECT_DOUBLE_EQ(figure(data.points[0], "latency_p95_ms").mean.value(), 12);
  EXPECT_EQ(data.points[0].runs.size(), 2U);
  EXPECT_DOUBLE_EQ(figure(data.points[1], "latency_p95_ms").mean.value(), 30);
  EXPECT_FALSE(figure(data.points[1], "latency_p95_ms").half_width);
}

TEST_F(ReportOfAStore, SaysHowMuchOfTheBubblesWasRecovered) {
  store::RunRecord first = run(0, "mps", "100", 1, 10, 0.9);
  store::RunRecord second = run(1, "mps", "100", 2, 10, 0.9);
  set_cell(first, 0, "bubble_recovered_fraction", 0.25);
  set_cell(second, 0, "bubble_recovered_fraction", 0.75);
  add(first), add(second);
  EXPECT_DOUBLE_EQ(figure(report().points[0], "bubble_recovered_fraction").mean.value(), 0.5);
}

TEST_F(ReportOfAStore, CountsLowerBoundsOfLatencies) {
  store::RunRecord bounded = run(0, "mps", "100", 1, 10, 0.9);
  set_cell(bounded, 0, "latency_lower_bound_from", std::string("p95"));
  add(bounded);
  const ReportData data = report();
  EXPECT_EQ(figure(data.points[0], "latency_p95_ms").lower_bounds, 1U);
  EXPECT_EQ(figure(data.points[0], "latency_p50_ms").lower_bounds, 0U);
}

TEST_F(ReportOfAStore, KeepsWhatAnySeedOfAPointHasLost) {
  add(run(0, "mps", "100", 1, 10, 0.9));
  store::RunRecord lossy = run(1, "mps", "100", 2, 10, 0.9);
  set_cell(lossy, 0, "losses", std::string("program_what_ifs_doubtful"));
  add(lossy), add(run(2, "mps", "200", 1, 10, 0.9));
  const ReportData data = report();
  EXPECT_THAT(data.points[0].losses, ElementsAre("program_what_ifs_doubtful"));
  EXPECT_THAT(data.points[1].losses, IsEmpty());
}

TEST_F(ReportOfAStore, CountsLatenciesOfOverloadedFillers) {
  store::RunRecord behind = run(0, "mps", "100", 1, 10, 0.9);
  set_cell(behind, 0, "overloaded", std::int64_t{1});
  add(behind);
  const ReportData data = report();
  EXPECT_EQ(figure(data.points[0], "latency_p95_ms").overloaded, 1U);
  EXPECT_EQ(figure(data.points[0], "filler_requests_per_s").overloaded, 0U);
}

TEST_F(ReportOfAStore, CurvesFollowTheLoadNotTheOrderOfRuns) {
  add(run(0, "mps", "800", 1, 90, 0.7)), add(run(1, "mps", "50", 1, 10, 0.9));
  add(run(2, "mps", "100", 1, 20, 0.8));
  const ReportData data = report();
  ASSERT_EQ(data.sweeps[0].curves.size(), 1U);
  EXPECT_THAT(data.sweeps[0].curves[0].points, ElementsAre(1, 2, 0));  // 50, 100, 800
}

TEST_F(ReportOfAStore, FrontsAreOfAllSettingsAndOfEachChoice) {
  add(run(0, "mps", "1", 1, 10, 0.80)), add(run(1, "tgs", "1", 1, 20, 0.90));
  add(run(2, "mps", "2", 1, 30, 0.70)), add(run(3, "tgs", "2", 1, 40, 0.85));
  const ReportData data = report();
  const auto front = [&](AxisPlace load) -> std::vector<std::uint32_t> {
    for (const ReportFront& known : data.sweeps[0].fronts) {
      if (known.trade == 0 && known.choices == std::vector<AxisPlace>{load}) return known.points;
    }
    return {};
  };
  EXPECT_THAT(front(kNoValue), ElementsAre(0, 1));  // what is at load 2 is beaten at load 1
  EXPECT_THAT(front(0), ElementsAre(0, 1));
  EXPECT_THAT(front(1), ElementsAre(2, 3));         // but not among its own
}

TEST_F(ReportOfAStore, OraclesStandOutsideOfFronts) {
  add(run(0, "mps", "1", 1, 10, 0.8)), add(run(1, "tgs", "1", 1, 20, 0.9));
  add(run(2, "ideal", "1", 1, 5, 1.0));
  EXPECT_THAT(report().sweeps[0].fronts[0].points, ElementsAre(0, 1));
}

TEST_F(ReportOfAStore, ParametersThatASweepVariesAreNoPartOfThePolicy) {
  for (const std::uint64_t number : {0, 1}) {
    const std::string window = number == 0 ? "1ms" : "2ms";
    store::RunRecord record = run(number, "specinf", "1", 1, 10, 0.9);
    set_cell(record, 0, "policy_parameters", "poll=2ms;window=" + window);
    record.run.settings = {{"/policies/0/parameters/window", '"' + window + '"'}};
    add(record);
  }
  const ReportData data = report();
  ASSERT_EQ(data.policies.size(), 1U);
  EXPECT_EQ(data.policies[0].parameters, "poll=2ms");
  EXPECT_EQ(data.points.size(), 2U);
  EXPECT_TRUE(data.sweeps[0].comparisons.empty());
}

TEST_F(ReportOfAStore, ListsFailedRunsWithTheirReasonsAndSumsCounters) {
  add(run(0, "mps", "1", 1, 10, 0.9));                 // counts sizes_guessed 1
  add(run(1, "mps", "2", 1, 10, 0.9));                 // 2
  add(store::failed_record(2, "config: no such device"));     // 3
  const ReportData data = report();
  ASSERT_EQ(data.failures.size(), 1U);
  EXPECT_EQ(data.failures[0].reason, "config: no such device");
  EXPECT_EQ(data.sweeps[0].failed, 1U);
  ASSERT_EQ(data.counters.size(), 1U);
  EXPECT_EQ(data.counters[0].entry.count, 6U);
  EXPECT_EQ(data.counters[0].runs, 3U);
}

TEST_F(ReportOfAStore, KeepsConfigsAsDifferencesFromTheFirst) {
  add(run(0, "mps", "1", 1, 10, 0.9)), add(run(1, "mps", "2", 1, 10, 0.9));
  const ReportData data = report();
  EXPECT_EQ(data.sweeps[0].base_config, R"({"load":1,"policies":["mps"]})");
  EXPECT_EQ(data.runs[0].patch, "[]");
  EXPECT_EQ(data.runs[1].patch, R"([{"op":"replace","path":"/load","value":2}])");
}

TEST_F(ReportOfAStore, ASeedThatIsThereTwiceCountsOnce) {
  add(run(0, "mps", "1", 1, 10, 0.9)), add(run(1, "mps", "1", 1, 99, 0.9));
  const ReportData data = report();
  EXPECT_DOUBLE_EQ(figure(data.points[0], "latency_p95_ms").mean.value(), 10);
  EXPECT_EQ(data.repeated, 1U);
}

TEST_F(ReportOfAStore, ComparesAsResultsCompareDoes) {
  add(run(0, "exclusive", "1", 1, 10, 1.0)), add(run(1, "mps", "1", 1, 14, 0.9));
  const ReportData data = report();
  EXPECT_EQ(data.sweeps[0].baseline, "exclusive");
  bool found = false;
  for (const ReportComparison& comparison : data.sweeps[0].comparisons) {
    if (comparison.line.metric != "latency_p95_ms" || !comparison.values.empty()) continue;
    found = true;
    EXPECT_DOUBLE_EQ(comparison.line.difference, 4);
  }
  EXPECT_TRUE(found);
}

TEST_F(ReportOfAStore, ABaselineThatIsNotThereIsAFault) {
  add(run(0, "exclusive", "1", 1, 10, 1.0));
  store::CompareOptions options;
  options.baseline = "exclusiv";
  const auto data = error_of(collect_report(*store_, options));
  EXPECT_THAT(data.text(), HasSubstr("exclusive"));
}

TEST_F(ReportOfAStore, WithoutRunsIsEmpty) {
  const ReportData data = report();
  EXPECT_TRUE(data.points.empty());
  EXPECT_EQ(data.title, "Results: none");
}

using Texts = std::vector<std::string>;

std::vector<ReportAxis> axes(const std::vector<std::vector<store::Setting>>& runs) {
  std::vector<const std::vector<store::Setting>*> all;
  for (const auto& settings : runs) all.push_back(&settings);
  return axes_of(all);
}

TEST(ReportAxes, NumbersRiseByValueNotByText) {
  const auto found = axes({{{"/load", "100"}}, {{"/load", "50"}}, {{"/load", "800"}}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].values, (Texts{"50", "100", "800"}));
  EXPECT_EQ(found[0].numbers, (std::vector<double>{50, 100, 800}));
  EXPECT_EQ(found[0].place_of(std::vector<store::Setting>{{"/load", "100"}}), 1);
  EXPECT_EQ(found[0].place_of(std::vector<store::Setting>{{"/other", "100"}}), kNoValue);
}

TEST(ReportAxes, SpansOfTimeAreMilliseconds) {
  const auto found = axes({{{"/window", "\"5ms\""}}, {{"/window", "\"500us\""}}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].unit, "ms");
  EXPECT_EQ(found[0].numbers, (std::vector<double>{0.5, 5}));
}

TEST(ReportAxes, TextsStandAsFirstSeen) {
  const auto found = axes({{{"/device", "\"v100\""}}, {{"/device", "\"a100\""}}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].numbers.empty());
  EXPECT_EQ(found[0].choices, (Texts{"v100", "a100"}));
}

TEST(ReportAxes, ManyNumbersAreOfferedAsRanges) {
  std::vector<std::vector<store::Setting>> runs;
  for (int i = 1; i <= 40; ++i) runs.push_back({{"/x", std::to_string(i)}});
  const auto found = axes(runs);
  ASSERT_EQ(found[0].choices.size(), kAxisRanges);  // of 5 values each
  EXPECT_EQ(found[0].choices[0], "1 to 5");
  EXPECT_EQ(found[0].choices[7], "36 to 40");
  EXPECT_EQ(found[0].choice_of[4], 0);
  EXPECT_EQ(found[0].choice_of[5], 1);
}

TEST(ReportAxes, SeedsAndPoliciesAreNoneButParametersOfPoliciesAre) {
  const auto found = axes({{{"/seed", "1"},
                            {"/policies/0", "\"mps\""},
                            {"/policies/0/parameters/window", "\"5ms\""}}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(swept_parameter({found[0].pointer, {}}), "window");
}

using Front = std::vector<std::size_t>;

// Latency (less is better) and throughput (more is better).
Front front(const std::vector<TradePoint>& points) {
  return pareto_front(points, sweep::Better::kLess, sweep::Better::kMore);
}

TEST(ParetoFront, HoldsWhatNoOtherBeatsInBoth) {
  // 10 ms at 5/s is beaten by 10 ms at 6/s; 30 ms at 8/s by 20 ms at 9/s.
  EXPECT_EQ(front({{10, 5}, {10, 6}, {20, 9}, {30, 8}, {40, 12}}), (Front{1, 2, 4}));
}

TEST(ParetoFront, EqualPointsAreOnItTogether) {
  EXPECT_EQ(front({{20, 9}, {10, 6}, {20, 9}}), (Front{1, 0, 2}));
}

TEST(ParetoFront, OfEqualsInOneFigureTheBetterInTheOtherStays) {
  EXPECT_EQ(front({{10, 6}, {12, 6}, {10, 4}}), (Front{0}));
}

TEST(ParetoFront, PointsWithoutAFigureAreNotOnItAndBeatNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(front({{nan, 99}, {1, nan}, {std::nullopt, 99}, {1, std::nullopt}, {1, infinite},
                   {10, 5}}),
            (Front{5}));
  EXPECT_EQ(front({}), Front{});
}

TEST(ParetoFront, MoreOfBothMayBeBetter) {
  // Training kept and filler throughput; in the order of x.
  EXPECT_EQ(pareto_front(std::vector<TradePoint>{{0.9, 10}, {1.0, 2}, {0.8, 9}},
                         sweep::Better::kMore, sweep::Better::kMore),
            (Front{0, 1}));
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(ReportPage, HostileTextsCannotEndTheScript) {
  const std::string hostile = "</script><script>alert(1)</script><!-- & ]]>";
  store::RunRecord record = run(0, "mps", "1", 1, 10, 0.9);
  record.sweep = hostile;
  record.host = hostile;
  record.run.settings.push_back({"/" + hostile, Json(hostile).dump()});
  set_cell(record, 0, "filler", hostile);
  add(record);
  add(store::failed_record(1, hostile));
  ReportData data = report();
  data.title = hostile;
  const std::string page = report_page(data);
  EXPECT_EQ(count_of(page, "</script"), 2U);  // of the data and of the script
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;"));
  const Json read = Json::parse(report_json(data));
  EXPECT_EQ(read["hosts"][0], hostile);
  EXPECT_EQ(read["title"], hostile);
}

TEST_F(ReportPage, NamesNoAddressAndAllowsItsOwnScriptOnly) {
  add(run(0, "mps", "1", 1, 10, 0.9));
  std::string page = report_page(report());
  EXPECT_THAT(page, HasSubstr("default-src 'none'; style-src 'sha256-"));
  EXPECT_EQ(count_of(page, "http"), 2U);  // http-equiv, and the name of SVG's elements
  EXPECT_THAT(page, HasSubstr("http://www.w3.org/2000/svg"));
  for (const char* word : {"eval(", "innerHTML", "new Function", "unsafe-inline", "{{"}) {
    EXPECT_THAT(page, Not(HasSubstr(word)));
  }
}

TEST_F(ReportPage, TheSameStoreGivesTheSameBytes) {
  add(run(0, "mps", "1", 1, 10, 0.9));
  add(store::failed_record(1, "reason"));
  EXPECT_EQ(report_page(report()), report_page(report()));
}

TEST_F(ReportPage, TextsThatAreNoUtf8AreReplaced) {
  store::RunRecord record = run(0, "mps", "1", 1, 10, 0.9);
  record.host = "host\xff";
  add(record);
  EXPECT_TRUE(Json::accept(report_json(report())));
}

TEST_F(ReportPage, NumbersHaveSixDigits) {
  add(run(0, "mps", "1", 1, 10.0 / 3, 1.0));
  const Json read = Json::parse(report_json(report()));
  EXPECT_EQ(read["points"][0][5][metric_place("latency_p95_ms")], 3.33333);
}

using traces::ChromeTrace;

/// Two GPUs with a track each.
ChromeTrace two_gpus() {
  ChromeTrace trace;
  trace.processes = {"GPU 0", "GPU 1"};
  trace.tracks = {{0, "training: device", {}}, {1, "training: device", {}}};
  return trace;
}

ReportTimeline window(std::int64_t start, std::int64_t length) {
  ReportTimeline timeline;
  timeline.start_ns = start;
  timeline.chart.length = Duration{length};
  return timeline;
}

const traces::ShownSpans& first_lane(const ReportTimeline& timeline) {
  return timeline.chart.rows.at(0).lanes.at(0).spans;
}

TEST(TimelineLanes, SpansAreCutToTheWindow) {
  ChromeTrace trace = two_gpus();
  trace.slices = {{0, "early", "kernel", 0, 100}, {0, "in", "kernel", 50, 500},
                  {1, "late", "copy", 1900, 500}};
  ReportTimeline timeline = window(100, 1000);
  add_lanes(trace, {}, timeline);
  EXPECT_EQ(timeline.slices, 1U);  // the first ends where the window starts
  ASSERT_EQ(timeline.chart.rows.size(), 1U);
  EXPECT_EQ(timeline.chart.rows[0].label, "GPU 0");
  EXPECT_EQ(first_lane(timeline)[0].start, Duration{0});
  EXPECT_EQ(first_lane(timeline)[0].length, Duration{450});  // 100 to 550
}

TEST(TimelineLanes, NeighboursThatCannotBeToldApartAreOneAndCounted) {
  ChromeTrace trace = two_gpus();
  // A resolution of 0.01 of 1000 ns: gaps and lengths below 10 ns.
  trace.slices = {{0, "a", "kernel", 0, 4}, {0, "b", "kernel", 5, 6}, {0, "c", "kernel", 30, 5},
                  {0, "d", "copy", 60, 50}};
  ReportTimeline timeline = window(0, 1000);
  TimelineOptions options;
  options.resolution = 0.01;
  add_lanes(trace, options, timeline);
  const auto& spans = first_lane(timeline);
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(timeline.joined, 1U);
  EXPECT_EQ(spans[0].count, 2U);
  EXPECT_EQ(spans[0].length, Duration{11});
  EXPECT_EQ(timeline.chart.names[spans[0].name], "b");  // the longer
  EXPECT_EQ(spans[2].paint, traces::Paint::kCopy);
}

TEST(TimelineLanes, GpusThatAreLeftOutAreCounted) {
  ChromeTrace trace = two_gpus();
  trace.slices = {{0, "a", "kernel", 0, 100}, {0, "b", "kernel", 200, 100},
                  {1, "c", "kernel", 0, 100}};
  ReportTimeline timeline = window(0, 1000);
  TimelineOptions options;
  options.gpus = 1;
  add_lanes(trace, options, timeline);
  EXPECT_EQ(timeline.slices, 3U);
  EXPECT_EQ(timeline.gpus_left_out, 1U);
  EXPECT_EQ(timeline.slices_left_out, 1U);  // c is of the other GPU
}

TEST(TimelineLanes, MoreSpansThanTheLimitAreJoined) {
  ChromeTrace trace = two_gpus();
  trace.slices = {{0, "a", "kernel", 0, 100}, {0, "b", "kernel", 200, 100}};
  ReportTimeline timeline = window(0, 1000);
  TimelineOptions options;
  options.spans = 1;
  add_lanes(trace, options, timeline);
  EXPECT_EQ(first_lane(timeline).size(), 1U);
  EXPECT_EQ(timeline.joined, 1U);
  EXPECT_EQ(first_lane(timeline)[0].covered, Duration{200});  // of 300
}

}  // namespace
}  // namespace bubblesim::report
