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

TEST(TracedCalls, AsksForNothingThatIsPolled) {
  for (const auto calls : {traced_runtime_calls(), traced_driver_calls()}) {
    EXPECT_TRUE(std::none_of(calls.begin(), calls.end(), [](const TracedCall& call) {
      return traces::classify_host_call(call.name) == traces::HostCallKind::kEventQuery;
    }));
  }
}

}  // namespace
}  // namespace bubblesim::capture
