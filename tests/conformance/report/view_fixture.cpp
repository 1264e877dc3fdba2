// Writes pages for view_page_test.py: view_fixture FOLDER.
//
// small.html: a trace of two ranks of 1 ms; its names hold what would break a page out of its data.
// run.html: a run of two policies on two GPUs.
// large.html: 8 ranks of 37,500 kernels each.
#include <filesystem>
#include <fstream>

#include "sim/report/view/timeline_view.hpp"
#include "tests/unit/traces/inspect/small_trace.hpp"

namespace bubblesim::report {
namespace {

using traces::testing::SmallTrace;

constexpr const char* kHostile = "</script><script>window.broken=1</script><img src=x onerror=a>";

/// Kernels [0, 600) and [950, 1000) us, an all-reduce [500, 900).
traces::RankTrace small_rank(std::uint32_t rank) {
  SmallTrace trace;
  trace.rank().rank = rank;
  trace.kernel(0, 600);
  trace.collective(traces::CollectiveKind::kAllReduce, 500, 900, 1);
  trace.op(traces::DeviceOpKind::kKernel, kHostile, 950, 1000);
  return trace.rank();
}

/// 20 us a kernel, 1 us apart; after each hundredth 300 us.
traces::RankTrace large_rank(std::uint32_t rank) {
  SmallTrace trace;
  trace.rank().rank = rank;
  std::int64_t at = 0;
  for (int i = 0; i < 37'500; ++i) {
    trace.op(traces::DeviceOpKind::kKernel, "kernel number " + std::to_string(i % 60), at, at + 20);
    at += i % 100 == 99 ? 320 : 21;
  }
  return trace.rank();
}

traces::JobTrace job_of(std::uint32_t ranks, traces::RankTrace (*make)(std::uint32_t)) {
  traces::JobTrace job;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) job.ranks.push_back(make(rank));
  return job;
}

ChartRow row_of(const std::string& policy, bool filled) {
  const auto ms = [](int count) { return Duration{count * 1'000'000}; };
  const auto span = [&](int from, int length, traces::Paint paint) {
    return traces::ShownSpan{ms(from), ms(length), 0, paint, 1, ms(length)};
  };
  ChartRow row{policy, "keeps 1.000, serves 0/s", {{ms(0), ms(7), "iteration"}}, {}};
  row.lanes = {{"training", LaneForm::kThick, {span(0, 2, traces::Paint::kCompute)}},
               {"bubbles", LaneForm::kThick, {span(2, 5, traces::Paint::kIdle)}},
               {"filler", LaneForm::kThick, {}}};
  if (filled) row.lanes[2].spans = {span(2, 4, traces::Paint::kFiller)};
  return row;
}

TimelineView run_view() {
  TimelineChart chart;
  chart.length = Duration{15'000'000};
  chart.names = {"gemm"};
  chart.rows = {row_of("exclusive", false), row_of("mps", true)};
  ViewSection section{"offline", {"Two GPUs."}, {{"GPU 0", chart}, {"GPU 1", chart}}, {}};
  section.table = {"What each policy keeps and gains",
                   {{"policy", "", false}, {"filler", "", false}, {"training kept", "", true}},
                   {{"exclusive", "batch", "1.000"}, {"mps", "batch", "0.900"}}};
  return {"a run", {section}};
}

bool write_page(const std::filesystem::path& path, const TimelineView& view) {
  std::ofstream out(path, std::ios::binary);
  out << view_page(view);
  return static_cast<bool>(out);
}

}  // namespace
}  // namespace bubblesim::report

int main(int argc, char** argv) {
  using namespace bubblesim::report;
  if (argc < 2) return 2;
  const std::filesystem::path folder = argv[1];
  return write_page(folder / "small.html", trace_view(job_of(2, small_rank), kHostile)) &&
                 write_page(folder / "run.html", run_view()) &&
                 write_page(folder / "large.html", trace_view(job_of(8, large_rank), "large"))
             ? 0
             : 1;
}
