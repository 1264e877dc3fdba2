#include "sim/report/report_timeline.hpp"

#include <gtest/gtest.h>

namespace bubblesim::report {
namespace {

using traces::ChromeSlice;
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
