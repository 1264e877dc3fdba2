// The golden job's rank 0 alone, an iteration in ms: A [0, 1), B [1, 2), AR [2, 4), C [4, 5), then
// nothing up to 7. Its AR waits for rank 1.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/base/json.hpp"
#include "sim/observe/report.hpp"
#include "sim/report/view/run_view.hpp"
#include "sim/report/view/timeline_view.hpp"
#include "sim/report/view/view_picture.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"
#include "tests/unit/traces/inspect/small_trace.hpp"
#include "traces/inspect/timeline_lanes.hpp"

namespace bubblesim::report {

// A view as a file and as a page.
namespace {

using testing::HasSubstr, testing::Not;
using traces::testing::SmallTrace, traces::testing::us;

/// A rank: kernels [0, 600) and [950, 1000) us, an all-reduce [500, 900).
traces::JobTrace one_rank() {
  SmallTrace trace;
  trace.kernel(0, 600);
  trace.collective(traces::CollectiveKind::kAllReduce, 500, 900, 1);
  trace.kernel(950, 1000);
  return {{trace.rank()}};
}

class ViewFile : public testing::Test {
 protected:
  ~ViewFile() override { std::filesystem::remove(path_); }
  [[nodiscard]] CheckedResult<TimelineView> read(const std::string& text) const {
    std::ofstream(path_, std::ios::binary) << text;
    return read_view(path_);
  }
  std::string path_ = (std::filesystem::temp_directory_path() /
                       ("view_test_" + std::to_string(getpid()) + ".json")).string();
};

TEST_F(ViewFile, ReadsWhatWasWritten) {
  const std::string text = view_text(trace_view(one_rank(), "a trace"));
  const auto view = must(read(text));
  EXPECT_EQ(view_text(view), text);
}

TEST_F(ViewFile, ChangedNumbersAreFaultsThatNameTheirPlace) {
  const auto changed = [&](const std::string& pointer, const Json& value) {
    Json json = Json::parse(view_text(trace_view(one_rank(), "a trace")));
    json[Json::json_pointer(pointer)] = value;
    const auto view = read(json.dump());
    return view ? std::string("no fault") : view.error().front().text();
  };
  const std::string chart = "/sections/0/charts/0/chart";
  const std::string lane = chart + "/rows/0/lanes/0";
  for (const Json& spans : {Json{0, 600000}, Json{0, -1, 0}, Json{0, 2000000, 0}, Json{0, 1, 99},
                            Json{-5, 1, 0}, Json{INT64_MAX, INT64_MAX, 0}}) {
    EXPECT_THAT(changed(lane + "/spans", spans), HasSubstr(lane + "/spans")) << spans;
  }
  EXPECT_THAT(changed(lane + "/joined", Json{9, 2, 1}), HasSubstr(lane + "/joined"));
  EXPECT_THAT(changed(chart + "/paints", Json{"kernel"}), HasSubstr("as many as names"));
  EXPECT_THAT(changed("/format", "bubblesim.view/9"), HasSubstr("/format"));
  EXPECT_THAT(changed("/sections/0/table/rows/0/cells", Json{"1"}), HasSubstr("a cell for each"));
}

TEST(TraceView, HasARowARankAndSharesOfItsTime) {
  const TimelineView view = trace_view(one_rank(), "a trace");
  const ViewSection& section = view.sections.at(0);
  EXPECT_EQ(section.charts.at(0).chart.length, us(1000));
  EXPECT_EQ(section.charts[0].chart.rows.at(0).note, "bubbles 35.0 %");
  // Busy: 950 of 1000; bubbles: 600 to 950.
  EXPECT_EQ(section.table.rows.at(0).at(1), "95.0");
  EXPECT_EQ(section.table.rows[0].at(2), "35.0");
}

TEST(TraceView, OfNothingSaysSo) {
  const TimelineView view = trace_view({}, "nothing");
  EXPECT_TRUE(view.sections.at(0).charts.empty());
  EXPECT_EQ(view.sections[0].notes.at(0), "No device operations to draw.");
  EXPECT_THAT(view_page(view), HasSubstr("No device operations to draw."));
}

TEST(ViewPage, HostileTextsCannotEndTheScript) {
  const std::string hostile = "</script><script>alert(1)</script><!-- & ]]>\xff";
  traces::JobTrace job = one_rank();
  job.ranks[0].device_ops[0].name = job.ranks[0].names.intern(hostile);
  const std::string page = view_page(trace_view(job, hostile));
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'; style-src 'sha256-"));
  for (const char* word : {"eval(", "innerHTML", "new Function", "unsafe-inline", "{{", "https:"}) {
    EXPECT_THAT(page, Not(HasSubstr(word)));
  }
}

}  // namespace

using namespace run;
namespace {

using traces::Paint;

run::LoadedRun two_policies() {
  run::LoadedRun loaded = small_run({offline("batch")});
  loaded.config.warmup = 10ms;
  loaded.config.policies = {choice("exclusive"), choice("mps")};
  return loaded;
}

TimelineView view_of(const run::LoadedRun& loaded, const policy::Registry& registry,
                     std::size_t threads = 1) {
  RunView view(loaded);
  run::RunOptions options;
  options.threads = threads;
  options.timelines = view.sink();
  const auto report = must(run::run_policies(loaded, registry, options));
  return {"small", {view.section(report)}};
}

const ChartLane& lane(const TimelineView& view, std::size_t gpu, std::size_t policy,
                      const std::string& label) {
  for (const ChartLane& lane : view.sections.at(0).charts.at(gpu).chart.rows.at(policy).lanes) {
    if (lane.label == label) return lane;
  }
  throw std::out_of_range(label);
}

class RunViewTest : public ::testing::Test {
 protected:
  const policy::Registry registry = policies::builtin_policies();
};

TEST_F(RunViewTest, RowsBeginWithTheFirstIterationAfterTheWarmUp) {
  const TimelineView view = view_of(two_policies(), registry);
  ASSERT_EQ(view.sections[0].charts.size(), 2U);  // a GPU each
  const TimelineChart& chart = view.sections[0].charts[0].chart;
  EXPECT_EQ(chart.length, 15400us);  // 2.2 times 7 ms
  EXPECT_EQ(chart.rows[0].label, "exclusive");
  EXPECT_EQ(chart.rows[0].marks.at(0).start, Duration{});
  EXPECT_EQ(chart.rows[0].marks.at(0).length, 7ms);
  const auto& work = lane(view, 0, 0, "training").spans;
  EXPECT_EQ(work.at(0).start, Duration{});  // A
  EXPECT_EQ(chart.names[work.at(0).name], "A");
  EXPECT_EQ(work.at(2).start, 4ms);  // C
}

TEST_F(RunViewTest, BubblesOfTheJobAloneHaveTheirCauses) {
  const TimelineView view = view_of(two_policies(), registry);
  const Paint wait = traces::paint_of(traces::BubbleCause::kCollectiveWait);
  const auto& bubbles = lane(view, 0, 0, "bubbles").spans;
  ASSERT_EQ(bubbles.size(), 4U);
  const std::pair<Duration, Paint> expected[] = {
      {2ms, wait}, {5ms, Paint::kIdle}, {9ms, wait}, {12ms, Paint::kIdle}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(bubbles[i].start, expected[i].first) << i;
    EXPECT_EQ(bubbles[i].length, 2ms) << i;
    EXPECT_EQ(bubbles[i].paint, expected[i].second) << i;
  }
  EXPECT_TRUE(lane(view, 0, 0, "filler").spans.empty());
  EXPECT_FALSE(lane(view, 0, 1, "filler").spans.empty());
}

TEST_F(RunViewTest, TheTableHasARowForEachPolicy) {
  const ViewTable table = view_of(two_policies(), registry).sections[0].table;
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0][0], "exclusive");
  EXPECT_EQ(table.rows[0][2], "1.000");
  EXPECT_EQ(table.rows[1][0], "mps");
}

TEST_F(RunViewTest, AnyNumberOfThreadsGivesTheSameBytes) {
  const run::LoadedRun loaded = two_policies();
  EXPECT_EQ(view_text(view_of(loaded, registry, 1)), view_text(view_of(loaded, registry, 2)));
}

TEST_F(RunViewTest, WatchingChangesNoResult) {
  const run::LoadedRun loaded = two_policies();
  RunView view(loaded);
  run::RunOptions options;
  const auto plain = run::run_policies(loaded, registry, options);
  options.timelines = view.sink();
  const auto watched = run::run_policies(loaded, registry, options);
  ASSERT_TRUE(plain && watched);
  EXPECT_EQ(observe::report_json(*plain), observe::report_json(*watched));
}

TEST(ViewPicture, ShowsTheChosenPoliciesAsText) {
  const policy::Registry registry = policies::builtin_policies();
  TimelineView view = view_of(two_policies(), registry);
  ASSERT_TRUE(select_policies(view, {"mps"}));
  const auto picture = must(view_picture(view, {}));
  EXPECT_THAT(picture, HasSubstr(">mps</text>"));
  EXPECT_THAT(picture, Not(HasSubstr("exclusive")));
  EXPECT_THAT(picture, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(picture, Not(HasSubstr("{{")));
}

TEST(ViewPicture, FaultsNameWhatThereIs) {
  const policy::Registry registry = policies::builtin_policies();
  TimelineView view = view_of(two_policies(), registry);
  EXPECT_THAT(select_policies(view, {"mpss"}).error().text(), HasSubstr("did you mean \"mps\"?"));
  EXPECT_THAT(view_picture(view, {"", 7}).error().text(), HasSubstr("found 7, expected"));
  EXPECT_THAT(view_picture(view, {"smal", 0}).error().text(), HasSubstr("did you mean \"small\"?"));
}

// Timelines as SVG.

using traces::DeviceOp, traces::DeviceOpKind, traces::JobTrace;

/// Two ranks of 1 ms: kernel [0, 600) us, all-reduce [500, 900), kernel [950, 1000).
JobTrace two_ranks() {
  JobTrace job;
  for (std::uint32_t number = 0; number < 2; ++number) {
    SmallTrace trace;
    trace.rank().rank = number;
    trace.kernel(0, 600);
    trace.collective(traces::CollectiveKind::kAllReduce, 500, 900, 1 << 20);
    trace.kernel(950, 1000);
    job.ranks.push_back(trace.rank());
  }
  return job;
}

std::string picture_of(const JobTrace& job, const std::string& title = "job",
                       std::size_t most_ranks = 64) {
  return trace_picture(trace_view(job, title, most_ranks));
}

/// Every element is closed in order and every attribute quoted: enough of XML to catch a slip.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t i = xml.find('<'); i != std::string::npos; i = xml.find('<', i + 1)) {
    const std::size_t end = xml.find('>', i);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(i + 1, end - i - 1);
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    ASSERT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag.front() == '/') {
      ASSERT_FALSE(open.empty()) << tag;
      ASSERT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(TracePicture, IsWellFormedAndNamesWhatItShows) {
  const std::string svg = picture_of(two_ranks(), "a <b> & c");
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr("Timeline of a &lt;b&gt; &amp; c"));
  EXPECT_THAT(svg, HasSubstr(">rank 1<"));
  EXPECT_THAT(svg, HasSubstr(">bubbles 35.0 %<"));
  EXPECT_THAT(svg, HasSubstr(">collective wait<"));
  EXPECT_THAT(svg, HasSubstr("0.5 ms"));
  EXPECT_THAT(svg, Not(HasSubstr(">copies<")));
}

TEST(TracePicture, EveryPaintHasAColour) {
  const std::string svg = picture_of(two_ranks());
  for (std::size_t i = 0; i < traces::kPaintCount; ++i) {
    const auto name = std::string(traces::paint_name(static_cast<traces::Paint>(i)));
    EXPECT_THAT(svg, testing::ContainsRegex("[.]k-" + name + "[ ,]"));
  }
}

TEST(TracePicture, RanksWithoutCommonTimeAreDrawnEachFromItsOwnStart) {
  JobTrace job = two_ranks();
  for (DeviceOp& op : job.ranks[1].device_ops) op.start += std::chrono::hours{5};
  const std::string svg = picture_of(job);
  EXPECT_THAT(svg, HasSubstr("Clocks are not aligned"));
  EXPECT_THAT(svg, HasSubstr("1.00 ms"));
}

TEST(TracePicture, ShowsTheFirstRanksOnlyAndSaysSo) {
  const std::string svg = picture_of(two_ranks(), "job", 1);
  EXPECT_THAT(svg, HasSubstr("The first 1 ranks are shown."));
  EXPECT_THAT(svg, Not(HasSubstr(">rank 1<")));
}

TEST(TracePicture, NothingToDrawIsSaid) {
  JobTrace one_rank;
  one_rank.ranks.emplace_back();
  for (const JobTrace& job : {JobTrace{}, one_rank}) {
    const std::string svg = picture_of(job);
    expect_well_formed(svg);
    EXPECT_THAT(svg, HasSubstr("No device operations to draw."));
  }
}

TEST(TracePicture, AKernelFarBelowAColumnIsSeen) {
  SmallTrace trace;
  trace.kernel(0, 1);
  trace.kernel(500'000, 500'001);
  trace.kernel(999'999, 1'000'000);
  const std::string svg = picture_of({{trace.rank()}});
  const std::size_t kernels = svg.find("<path class=\"k-kernel l1\"");
  ASSERT_NE(kernels, std::string::npos);
  EXPECT_EQ(std::count(svg.begin() + static_cast<std::ptrdiff_t>(kernels),
                       svg.begin() + static_cast<std::ptrdiff_t>(svg.find("/>", kernels)), 'M'),
            3);
}

TEST(TracePicture, StaysBelowAMegabyteAtItsLargest) {
  SmallTrace trace;
  for (std::int64_t i = 0; i < 20'000; ++i) {
    const auto kind = static_cast<DeviceOpKind>(i * 7 % 3);
    trace.op(kind, "op", i * 10, i * 10 + 1 + i % 9).stream =
        StreamId{static_cast<std::uint32_t>(i % 4)};
  }
  for (std::int64_t i = 0; i < 1'000; ++i) trace.iteration(i, i * 200, i * 200 + 190);
  JobTrace job;
  for (std::uint32_t number = 0; number < 64; ++number) job.ranks.push_back(trace.rank());
  EXPECT_LT(picture_of(job).size(), 1'000'000U);
}

TEST(TracePicture, TheSameTraceGivesTheSameBytes) {
  EXPECT_EQ(picture_of(two_ranks()), picture_of(two_ranks()));
}

}  // namespace
}  // namespace bubblesim::report
