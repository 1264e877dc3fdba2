#include "policies/tally_config.hpp"

#include <gtest/gtest.h>

namespace bubblesim::policies {
namespace {

using namespace std::chrono_literals;
using FormKind = TallyForm::Kind;

using policy::KernelClass;

/// 100 SMs; workers at 0.8 of a kernel's speed; 5 us more for each further slice.
TallyLimits limits(Duration turnaround) {
  TallyLimits result;
  result.sms = 100;
  result.turnaround = turnaround;
  result.persistent_slowdown = 1.25;
  result.slice_overhead = 5us;
  result.threads_per_sm = 1024;
  return result;
}

/// 256 threads a block, 8 blocks an SM.
TallyKernel kernel(std::uint64_t blocks, Duration length,
                   KernelClass bound = KernelClass::kMemory) {
  return {length, blocks, 256, 800, bound};
}

TEST(choose_form, leaves_kernels_that_have_few_blocks_or_no_length) {
  EXPECT_EQ(choose_form(kernel(100, 5ms), limits(50us)).kind, FormKind::kOriginal);
  EXPECT_EQ(choose_form({0us, 5000, 256, 800}, limits(50us)).kind, FormKind::kOriginal);
}

/// 8000 blocks in 1 ms. Four blocks an SM are 1024 threads, half of those that fit, and 0.45 keep
/// DRAM busy: 1 / 1.25 of the speed, and 1.25 ms / 20 / 2 = 31.25 us.
TEST(choose_form, takes_the_fastest_form_within_the_limit) {
  const TallyForm workers = choose_form(kernel(8000, 1ms), limits(40us));
  EXPECT_EQ(workers.kind, FormKind::kPersistent);
  EXPECT_EQ(workers.most_blocks, 0u);
  EXPECT_EQ(workers.slowdown, 1.25);
  EXPECT_DOUBLE_EQ(workers.speed, 0.8);
  EXPECT_EQ(workers.turnaround, Duration{31250ns});
}

/// Two blocks an SM are a quarter of those that fit: 0.25 / 0.45 of the pace. Of 800 blocks that is
/// as many as 444. 1 ms * 1.8 * 1.25 = 2.25 ms of 40 batches, half a batch: 28.1 us.
TEST(choose_form, slows_memory_bound_kernels_below_the_share_that_fills_dram) {
  TallyLimits few = limits(40us);
  few.threads_per_sm = 512;
  const TallyForm workers = choose_form(kernel(8000, 1ms), few);
  EXPECT_EQ(workers.most_blocks, 444u);
  EXPECT_DOUBLE_EQ(workers.speed, 0.25 / 0.45 / 1.25);
  EXPECT_EQ(workers.turnaround, Duration{28125ns});
}

/// A block of 256 threads an SM keeps its units busy.
TEST(choose_form, does_not_slow_compute_bound_kernels_while_each_sm_has_a_block) {
  TallyLimits tight = limits(100us);
  tight.threads_per_sm = 256;
  const TallyForm workers = choose_form(kernel(8000, 1ms, KernelClass::kCompute), tight);
  EXPECT_EQ(workers.most_blocks, 0u);
  EXPECT_DOUBLE_EQ(workers.speed, 0.8);
  EXPECT_EQ(workers.turnaround, Duration{7812ns});  // 1.25 ms / 80 / 2
  tight.busy_threads = 512;
  EXPECT_DOUBLE_EQ(choose_form(kernel(8000, 1ms, KernelClass::kCompute), tight).speed, 0.4);
}

/// Of an unknown kernel both hold.
TEST(choose_form, takes_the_slower_of_both_for_kernels_of_no_class) {
  TallyLimits few = limits(40us);
  few.threads_per_sm = 512;
  EXPECT_DOUBLE_EQ(choose_form(kernel(8000, 1ms, KernelClass::kUnknown), few).speed,
                   0.25 / 0.45 / 1.25);
}

/// Workers at 0.8 are fast enough for a kernel that ends within the turnaround; at 0.9 none are, as
/// 19 further slices of 5 us are longer than the kernel.
TEST(choose_form, transforms_short_kernels_while_they_keep_half_of_their_speed) {
  EXPECT_EQ(choose_form(kernel(8000, 50us), limits(50us)).kind, FormKind::kPersistent);
  TallyLimits strict = limits(50us);
  strict.short_speed = 0.9;
  EXPECT_EQ(choose_form(kernel(8000, 50us), strict).kind, FormKind::kOriginal);
}

/// Where slices cost nothing they run at the kernel's own speed, above workers.
TEST(choose_form, takes_slices_if_they_are_faster) {
  TallyLimits free = limits(105us);
  free.slice_overhead = 0us;
  const TallyForm slices = choose_form(kernel(8000, 1ms), free);
  EXPECT_EQ(slices.kind, FormKind::kSliced);
  EXPECT_EQ(slices.most_blocks, 0u);
  EXPECT_EQ(slices.turnaround, Duration{50us});  // 1 ms in 20 slices
}

/// 800 blocks of 5 ms. No form retreats in 50 us: one worker an SM has 5 ms * 1.25 * 0.45 * 8 / 8
/// batches / 2 = 1.4 ms. 50 us are a 28th part, 3 workers: raised to 24, 0.03 of the blocks, which
/// keep 1 / 15 of the pace. Slices of 24 blocks do, too: both below a tenth.
TEST(choose_form, falls_back_to_the_original_if_all_forms_are_too_slow) {
  EXPECT_EQ(choose_form(kernel(800, 5ms), limits(50us)).kind, FormKind::kOriginal);
}

/// A kernel of one block an SM: 1000 blocks are 10 waves of 100 us, workers retreat in 62.5 us. At
/// a limit of 50 us: 50 / 62.5 of 100 workers, 80: at 0.8 of the pace.
TEST(choose_form, shrinks_to_fewer_workers_than_sms) {
  const TallyForm form = choose_form({1ms, 1000, 1024, 100, KernelClass::kCompute}, limits(50us));
  EXPECT_EQ(form.kind, FormKind::kPersistent);
  EXPECT_EQ(form.most_blocks, 80u);
  EXPECT_DOUBLE_EQ(form.speed, 0.8 / 1.25);
}

TEST(choose_form, guesses_residency_from_threads) {
  const TallyForm form = choose_form({1ms, 8000, 256, 0, KernelClass::kMemory}, limits(40us));
  EXPECT_DOUBLE_EQ(form.speed, 0.8);  // 2048 / 256 = 8 blocks an SM, as above
}

}  // namespace
}  // namespace bubblesim::policies
