#include "policies/tally_config.hpp"

#include <gtest/gtest.h>

namespace bubblesim::policies {
namespace {

using namespace std::chrono_literals;
using FormKind = TallyForm::Kind;

/// 100 SMs; workers at 0.8 of a kernel's speed; 5 us more for each further slice.
TallyLimits limits(Duration turnaround) {
  TallyLimits result;
  result.sms = 100;
  result.turnaround = turnaround;
  result.persistent_slowdown = 1.25;
  result.slice_overhead = 5us;
  return result;
}

/// 256 threads a block, 8 blocks an SM.
TallyKernel kernel(std::uint64_t blocks, Duration length) { return {length, blocks, 256, 800}; }

TEST(choose_form, leaves_kernels_that_end_in_time_or_have_few_blocks) {
  EXPECT_EQ(choose_form(kernel(5000, 50us), limits(50us)).kind, FormKind::kOriginal);
  EXPECT_EQ(choose_form(kernel(100, 5ms), limits(50us)).kind, FormKind::kOriginal);
  EXPECT_EQ(choose_form({0us, 5000, 256, 800}, limits(50us)).kind, FormKind::kOriginal);
}

/// 8000 blocks of 10 waves in 1 ms. With 1024 threads an SM at most four blocks are packed: 20
/// waves, twice as long. Workers: 1 / (1.25 * 2) = 0.4 of the speed, 2.5 ms / 20 / 2 = 62.5 us.
/// Slices of 400: 2 ms + 19 * 5 us = 2.095 ms, 0.477 of the speed, 104.75 us each.
TEST(choose_form, takes_the_fastest_form_within_the_limit) {
  const TallyForm workers = choose_form(kernel(8000, 1ms), limits(100us));
  EXPECT_EQ(workers.kind, FormKind::kPersistent);
  EXPECT_EQ(workers.most_blocks, 400u);
  EXPECT_EQ(workers.slowdown, 1.25);
  EXPECT_DOUBLE_EQ(workers.speed, 0.4);
  EXPECT_EQ(workers.turnaround, Duration{62500ns});
  const TallyForm slices = choose_form(kernel(8000, 1ms), limits(105us));
  EXPECT_EQ(slices.kind, FormKind::kPersistent);  // both are above 0.4, and workers come first
}

/// Where slices cost nothing they run at 0.5, a tenth above workers.
TEST(choose_form, takes_slices_if_they_are_faster) {
  TallyLimits free = limits(105us);
  free.slice_overhead = 0us;
  const TallyForm slices = choose_form(kernel(8000, 1ms), free);
  EXPECT_EQ(slices.kind, FormKind::kSliced);
  EXPECT_EQ(slices.most_blocks, 400u);
  EXPECT_EQ(slices.turnaround, Duration{100us});  // 2 ms in 20 slices
}

/// One wave of 5 ms, so no form retreats in 50 us: one worker an SM has 8 waves of 10 * 5 ms ...
/// 800 blocks on 100 SMs: 8 waves, 5 ms * 8 * 1.25 = 50 ms, 50 / 8 / 2 = 3.125 ms. 50 us are a
/// 62nd part, so 1 worker: raised to 24, which take 34 waves: speed 1 / (1.25 * 34), too slow.
/// Slices: 1.3 * 100 = 130 wanted, but of 24 blocks: 34 slices, 34 waves: 0.03 of the speed.
TEST(choose_form, falls_back_to_the_original_if_all_forms_are_too_slow) {
  EXPECT_EQ(choose_form(kernel(800, 5ms), limits(50us)).kind, FormKind::kOriginal);
}

/// A kernel of one block an SM: 1000 blocks are 10 waves of 100 us, workers retreat in 62.5 us. At
/// a limit of 50 us: 50 / 62.5 of 100 workers, 80: 13 waves, 1 / (1.25 * 1.3) of the speed.
TEST(choose_form, shrinks_to_fewer_workers_than_sms) {
  const TallyForm form = choose_form({1ms, 1000, 1024, 100}, limits(50us));
  EXPECT_EQ(form.kind, FormKind::kPersistent);
  EXPECT_EQ(form.most_blocks, 80u);
  EXPECT_DOUBLE_EQ(form.speed, 1 / (1.25 * 1.3));
}

TEST(choose_form, guesses_residency_from_threads) {
  const TallyForm form = choose_form({1ms, 8000, 256, 0}, limits(100us));
  EXPECT_EQ(form.most_blocks, 400u);  // 2048 / 256 = 8 blocks an SM, as above
  // Blocks of one thread: all 8,000 are resident at once, and no fewer are fast enough.
  EXPECT_EQ(choose_form({1ms, 8000, 0, 0}, limits(100us)).kind, FormKind::kOriginal);
}

}  // namespace
}  // namespace bubblesim::policies
