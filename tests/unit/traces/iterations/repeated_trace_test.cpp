// A pass as it repeats. Times in us.
#include <gtest/gtest.h>

#include "tests/unit/sim/workload/trace_builder.hpp"
#include "traces/iterations/job_pass.hpp"

namespace bubblesim::traces {
namespace {

std::int64_t us(TraceTime at) { return at.time_since_epoch().count() / 1000; }

using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;

RepeatedTrace repeated(const workload::TraceBuilder& job) {
  const RankTrace trace = job.trace();
  return repeated_trace(trace, *find_rank_pass(trace));
}

Spans spans(const RankTrace& trace) {
  Spans result;
  for (const DeviceOp& op : trace.device_ops) result.emplace_back(us(op.start), us(op.end()));
  return result;
}

// A pass of 100, from 0: kernels at [10, 20] and [80, 100]. Once more, a hundred before.
TEST(RepeatedTrace, HoldsThePassAndTheOneBefore) {
  workload::TraceBuilder job;
  job.iteration(0, 100);
  job.kernel({.called = 5, .returned = 7, .start = 10, .end = 20});
  job.kernel({.called = 30, .returned = 32, .start = 80, .end = 100});
  const RepeatedTrace result = repeated(job);
  EXPECT_EQ(spans(result.trace), (Spans{{-90, -80}, {-20, 0}, {10, 20}, {80, 100}}));
  EXPECT_EQ(us(result.window.begin), 0);
  EXPECT_EQ(us(result.window.end), 100);
  EXPECT_EQ(us(result.trace.host_calls[result.trace.device_ops[1].launch].start), -70);
}

// Work of a pass of 100 that takes until 130: the window of a hundred ends there.
TEST(RepeatedTrace, WorkThatRunsIntoTheNextPassIsThere) {
  workload::TraceBuilder job;
  job.iteration(0, 100).iteration(100, 200);
  for (const std::int64_t begin : {0, 100}) {
    job.kernel({.called = begin, .returned = begin + 2, .start = begin + 60, .end = begin + 130});
  }
  const RepeatedTrace result = repeated(job);
  EXPECT_EQ(spans(result.trace), (Spans{{60, 130}, {160, 230}}));
  EXPECT_EQ(us(result.window.begin), 130);
  EXPECT_EQ(us(result.window.end), 230);
}

// A pass of 100 whose exchange takes until 190 of its own time: what runs beside that one in
// [190, 290] is the kernel of the pass after it, and the exchange of the pass before has ended.
TEST(RepeatedTrace, WorkThatOutlastsThePassRunsBesideThePassAfter) {
  workload::TraceBuilder job(0, 1, 2);
  job.iteration(0, 100).iteration(100, 200);
  for (const std::int64_t begin : {0, 100}) {
    job.kernel({.called = begin, .returned = begin + 2, .start = begin + 10, .end = begin + 40});
    job.kernel({.called = begin + 5, .returned = begin + 7, .start = begin + 120,
                .end = begin + 190, .stream = 1});
  }
  const RepeatedTrace result = repeated(job);
  EXPECT_EQ(us(result.window.begin), 190);
  EXPECT_EQ(us(result.window.end), 290);
  Spans inside;
  for (const auto& span : spans(result.trace)) {
    if (span.second > 190 && span.first < 290) inside.push_back(span);
  }
  EXPECT_EQ(inside, (Spans{{210, 240}, {220, 290}}));
}

// The wait of [2, 50] for work from before is gone: what was at 0 is at 48.
TEST(RepeatedTrace, HasNoWaitsForWorkFromBefore) {
  workload::TraceBuilder job;
  job.call(HostCallKind::kDeviceSync, {.start = 0, .end = 50});
  job.kernel({.called = 50, .returned = 52, .start = 55, .end = 75});
  const RepeatedTrace result = repeated(job);
  EXPECT_EQ(us(result.trace.host_calls.back().start), 50);
  EXPECT_EQ(us(result.trace.host_calls[result.trace.host_calls.size() - 2].start), 48);
  EXPECT_EQ(us(result.window.end) - us(result.window.begin), 20);
}

}  // namespace
}  // namespace bubblesim::traces
