#include "traces/names/marker_names.hpp"

#include <gtest/gtest.h>

namespace bubblesim::traces {
namespace {

void expect(std::string_view name, MarkerKind kind, std::int64_t number) {
  const MarkerClass got = classify_marker(name);
  EXPECT_EQ(got.kind, kind) << name;
  EXPECT_EQ(got.number, number) << name;
}

TEST(MarkerNames, numbered_iterations_of_all_spellings_are_iterations) {
  expect("ProfilerStep#12", MarkerKind::kIteration, 12);
  expect("bubblesim.iteration 0", MarkerKind::kIteration, 0);
  expect("Iteration: 7", MarkerKind::kIteration, 7);
  expect("iter_3", MarkerKind::kIteration, 3);
  expect("step 1000", MarkerKind::kIteration, 1000);
}

TEST(MarkerNames, micro_batches_and_phases_are_told_apart) {
  expect("micro-batch 4", MarkerKind::kMicroBatch, 4);
  expect("microbatch#0", MarkerKind::kMicroBatch, 0);
  expect("Forward", MarkerKind::kPhase, -1);
  expect("phase:embedding", MarkerKind::kPhase, -1);
}

TEST(MarkerNames, what_only_begins_alike_is_the_users) {
  expect("", MarkerKind::kUser, -1);
  expect("step", MarkerKind::kUser, -1);
  expect("step 1 of many", MarkerKind::kUser, -1);
  expect("stepwise 3", MarkerKind::kUser, -1);
  expect("iteration -1", MarkerKind::kUser, -1);
  expect("iteration 99999999999999999999", MarkerKind::kUser, -1);
  expect("forwarding", MarkerKind::kUser, -1);
}

}  // namespace
}  // namespace bubblesim::traces
