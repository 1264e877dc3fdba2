#include <gmock/gmock.h>

#include "sim/base/json.hpp"
#include "sim/report/report_page.hpp"
#include "sim/report/report_timeline.hpp"
#include "tests/unit/sim/report/report_case.hpp"

namespace bubblesim::report {
namespace {

using testing::HasSubstr, testing::Not;
using ReportPage = ReportCase;

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

using traces::ChromeSlice, traces::ChromeTrace;

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
