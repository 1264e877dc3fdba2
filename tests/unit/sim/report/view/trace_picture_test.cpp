// Timelines as SVG.
#include "sim/report/view/view_picture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/report/view/timeline_view.hpp"
#include "tests/unit/traces/inspect/small_trace.hpp"
#include "traces/inspect/timeline_lanes.hpp"

namespace bubblesim::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using traces::DeviceOp;
using traces::DeviceOpKind;
using traces::JobTrace;
using traces::testing::SmallTrace;

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
