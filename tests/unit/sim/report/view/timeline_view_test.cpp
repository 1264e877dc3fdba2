// A view as a file and as a page.
#include "sim/report/view/timeline_view.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sim/base/json.hpp"
#include "sim/report/view/trace_view.hpp"
#include "tests/unit/traces/inspect/small_trace.hpp"

namespace bubblesim::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using traces::testing::SmallTrace;
using traces::testing::us;

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
  const auto view = read(text);
  ASSERT_TRUE(view) << view.error().front().text();
  EXPECT_EQ(view_text(*view), text);
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
}  // namespace bubblesim::report
