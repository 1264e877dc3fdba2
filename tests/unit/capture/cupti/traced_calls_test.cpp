// The table of recorded calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "capture/record/cupti/traced_calls.hpp"
#include "traces/names/host_call_names.hpp"

namespace bubblesim::capture {
namespace {

void expect_rising(std::span<const TracedCall> calls) {
  std::uint32_t before = 0;
  for (const TracedCall& call : calls) {
    EXPECT_GT(call.id, before) << call.name;
    EXPECT_LT(call.id, 1024U) << call.name;
    before = call.id;
  }
}

TEST(TracedCalls, AreInRisingOrderOfId) {
  expect_rising(traced_runtime_calls());
  expect_rising(traced_driver_calls());
}

// Queries of events and streams; of streams by the thread's own default stream, too. Without them a
// thread that waits by asking again and again would be one that computes.
TEST(TracedCalls, PollingWaitsAreAmongThem) {
  for (const auto calls : {traced_runtime_calls(), traced_driver_calls()}) {
    EXPECT_EQ(std::count_if(calls.begin(), calls.end(), [](const TracedCall& call) {
      return traces::classify_host_call(call.name) == traces::HostCallKind::kEventQuery;
    }), 3);
  }
}

}  // namespace
}  // namespace bubblesim::capture
