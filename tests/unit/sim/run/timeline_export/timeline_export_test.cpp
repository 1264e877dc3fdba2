#include "sim/run/timeline_export.hpp"

#include <gtest/gtest.h>

#include "tests/unit/sim/instant.hpp"

namespace bubblesim::run {
namespace {

using observe::Slice, observe::SliceKind;

TEST(TimelineExport, ClientsHaveATrackForEachSideThatWasRecorded) {
  observe::TimelineRecorder timeline;
  timeline.name_gpu(GpuId{1}, "GPU 1, H100");
  timeline.name_client(GpuId{1}, ClientId{1}, "bert");
  const NameId gemm = timeline.intern("gemm");
  const NameId request = timeline.intern("request");
  timeline.add(Slice{GpuId{1}, ClientId{1}, gemm, SliceKind::kKernel, at(10), at(15), 4});
  timeline.add(Slice{GpuId{1}, ClientId{1}, request, SliceKind::kRequest, at(5), at(20), 4});
  timeline.add(Slice{GpuId{0}, ClientId{0}, gemm, SliceKind::kKernel, at(0), at(9)});
  const observe::TrackId queue = timeline.add_track(GpuId{1}, "queue_requests");
  timeline.add(observe::CounterSample{queue, at(5), 1});

  const traces::ChromeTrace trace = timeline_to_chrome(timeline);
  EXPECT_EQ(trace.processes, (std::vector<std::string>{"GPU 0", "GPU 1, H100"}));
  ASSERT_EQ(trace.tracks.size(), 3U);
  EXPECT_EQ(trace.tracks[0].name, "client 0: device");
  EXPECT_EQ(trace.tracks[1].name, "bert: device");
  EXPECT_EQ(trace.tracks[2].name, "bert: requests");
  EXPECT_EQ(trace.slices[0].track, 1U);
  EXPECT_EQ(trace.slices[0].start_ns, 10);
  EXPECT_EQ(trace.slices[0].duration_ns, 5);
  EXPECT_EQ(trace.slices[0].flow, trace.slices[1].flow);
  EXPECT_EQ(trace.slices[2].flow, traces::kNoFlow);
  EXPECT_EQ(trace.counters[0].process, 1U);
  EXPECT_EQ(trace.counters[0].samples[0].value, 1);
}

TEST(TimelineExport, WhatTheRecorderDroppedIsNoted) {
  observe::TimelineRecorder timeline({0, 0});
  const NameId gemm = timeline.intern("gemm");
  timeline.add(Slice{GpuId{0}, ClientId{0}, gemm, SliceKind::kKernel, at(0), at(1)});
  const traces::ChromeTrace trace = timeline_to_chrome(timeline);
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_EQ(trace.notes[0].first, "timeline_slices_dropped");
  EXPECT_EQ(trace.notes[0].second, "1");
}

}  // namespace
}  // namespace bubblesim::run
