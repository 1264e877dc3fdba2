#include "sim/observe/timeline.hpp"

#include <gtest/gtest.h>

namespace bubblesim::observe {
namespace {

Slice slice_of(NameId name) {
  Slice slice;
  slice.name = name;
  slice.end = SimTime{Duration{5}};
  return slice;
}

TEST(Timeline, SameNameIsHeldOnce) {
  TimelineRecorder timeline;
  const NameId gemm = timeline.intern("gemm");
  EXPECT_NE(timeline.intern("relu"), gemm);
  EXPECT_EQ(timeline.intern("gemm"), gemm);
  EXPECT_EQ(timeline.text(gemm), "gemm");
}

TEST(Timeline, SlicesBeyondTheLimitAreDroppedAndCounted) {
  TimelineRecorder timeline({2, 1});
  const NameId name = timeline.intern("kernel");
  for (int i = 0; i < 5; ++i) timeline.add(slice_of(name));
  const TrackId track = timeline.add_track(GpuId{0}, "resident_sms");
  for (int i = 0; i < 3; ++i) timeline.add(CounterSample{track, kSimStart, 1.0});
  EXPECT_EQ(timeline.slices().size(), 2U);
  EXPECT_EQ(timeline.counters().count("timeline_slices_dropped"), 3U);
  EXPECT_EQ(timeline.samples().size(), 1U);
  EXPECT_EQ(timeline.counters().count("timeline_samples_dropped"), 2U);
}

TEST(Timeline, NothingDroppedLeavesNoCounter) {
  TimelineRecorder timeline;
  timeline.add(slice_of(timeline.intern("kernel")));
  EXPECT_TRUE(timeline.counters().empty());
}

TEST(Timeline, NamesFallBackToNumbers) {
  TimelineRecorder timeline;
  timeline.name_client(GpuId{1}, ClientId{0}, "training");
  EXPECT_EQ(timeline.client_name(GpuId{1}, ClientId{0}), "training");
  EXPECT_EQ(timeline.client_name(GpuId{0}, ClientId{0}), "client 0");
  EXPECT_EQ(timeline.gpu_name(GpuId{3}), "GPU 3");
}

}  // namespace
}  // namespace bubblesim::observe
