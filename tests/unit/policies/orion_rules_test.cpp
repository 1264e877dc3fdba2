// Orion's SM needs, its search for the SM threshold, and its drain rule.
#include <gtest/gtest.h>

#include "policies/client_queues.hpp"
#include "policies/orion_rules.hpp"
#include "policies/reef_padding.hpp"
#include "policies/tally_config.hpp"

namespace bubblesim::policies {
namespace {

using FormKind = TallyForm::Kind;
using namespace std::chrono_literals;
using policy::KernelClass;
using program::WorkKind;

policy::LaunchInfo kernel_launch(std::uint64_t blocks, std::uint64_t sm_blocks) {
  policy::LaunchInfo result;
  result.blocks = blocks;
  result.sm_blocks = sm_blocks;
  return result;
}

/// 80 SMs of 8 blocks: 640 at once.
TEST(orion_rules, count_sms_by_the_blocks_that_an_sm_holds) {
  EXPECT_EQ(sms_needed(kernel_launch(8, 640), 80), 1u);
  EXPECT_EQ(sms_needed(kernel_launch(9, 640), 80), 2u);
  EXPECT_EQ(sms_needed(kernel_launch(640, 640), 80), 80u);
  EXPECT_EQ(sms_needed(kernel_launch(6400, 640), 80), 800u);  // more than there are
  EXPECT_EQ(sms_needed(kernel_launch(0, 640), 80), 0u);
  EXPECT_EQ(sms_needed(kernel_launch(9, 0), 80), 9u);  // occupancy not known
}

/// The largest need is 100: 50. In 2 iterations of 10 ms: low 50, 75; of 12 ms: high 75, 62; of
/// 10 ms: low 62, 68; and so on.
TEST(orion_rules, search_the_threshold_by_halves) {
  SmThreshold threshold(2);
  EXPECT_EQ(threshold.value(), 0u);
  threshold.see(40);
  threshold.see(100);
  EXPECT_EQ(threshold.value(), 50u);
  const auto two = [&threshold](Duration length) {
    threshold.end_iteration(length, 11ms);
    threshold.end_iteration(length, 11ms);
    return threshold.value();
  };
  EXPECT_EQ(two(10ms), 75u);
  EXPECT_EQ(two(12ms), 62u);
  threshold.see(1000);  // too late
  EXPECT_EQ(two(10ms), 68u);
  EXPECT_EQ(two(12ms), 65u);
  EXPECT_EQ(two(12ms), 63u);
  EXPECT_EQ(two(12ms), 62u);
  EXPECT_EQ(two(12ms), 62u);  // where the lower bound is: it stays
}

TEST(orion_rules, average_over_the_step) {
  SmThreshold threshold(2);
  threshold.see(100);
  threshold.end_iteration(5ms, 11ms);
  EXPECT_EQ(threshold.value(), 50u);
  threshold.end_iteration(16ms, 11ms);  // the mean is 10.5
  EXPECT_EQ(threshold.value(), 75u);
}

/// At most 10 us since the last drain: 6 and 6 exceed it, then both must complete.
TEST(orion_rules, drain_when_the_sum_is_exceeded) {
  DrainRule drain;
  EXPECT_TRUE(drain.lets_go());
  drain.launch(6us, 1, 10us);
  EXPECT_TRUE(drain.lets_go());
  drain.launch(6us, 1, 10us);
  EXPECT_FALSE(drain.lets_go());
  drain.complete(1);
  EXPECT_FALSE(drain.lets_go());
  drain.complete(1);
  EXPECT_TRUE(drain.lets_go());
  drain.launch(6us, 1, 10us);  // the sum began anew
  EXPECT_TRUE(drain.lets_go());
}

/// The sum does not shrink with completions.
TEST(orion_rules, count_completed_work_until_a_drain) {
  DrainRule drain;
  for (int i = 0; i < 2; ++i) {
    drain.launch(5us, 1, 9us);
    drain.complete(1);
  }
  drain.launch(1us, 1, 9us);  // 11 us in all
  EXPECT_FALSE(drain.lets_go());
}

/// Launches of training, numbered from 1 on, on a GPU of 100 SMs and 200 blocks at once.
LaunchQueue queue(std::initializer_list<std::pair<WorkKind, std::uint64_t>> launches) {
  LaunchQueue result;
  std::uint64_t number = 0;
  for (const auto& [kind, blocks] : launches) {
    policy::LaunchInfo info;
    info.kind = kind;
    info.blocks = blocks;
    info.sm_blocks = kind == WorkKind::kKernel ? 200 : 0;
    info.profiled = 10us;
    info.launch = ++number;
    result.push(info);
  }
  return result;
}

TEST(padding_room, is_what_a_block_an_sm_leaves_until_the_kernel_ends) {
  const PaddingRoom room = padding_room(queue({{WorkKind::kKernel, 61}}), 5us, 100);
  EXPECT_EQ(room.sms, 39u);  // 100 - 61, though 61 blocks fit into 31 SMs
  EXPECT_EQ(room.end, Duration{15us});
}

/// On 100 SMs 250 blocks are three an SM, which 84 SMs hold, and 101 are two, which 51 hold.
TEST(padding_room, is_what_the_last_layer_of_blocks_leaves) {
  EXPECT_EQ(padding_room(queue({{WorkKind::kKernel, 250}}), 0us, 100).sms, 16u);
  EXPECT_EQ(padding_room(queue({{WorkKind::kKernel, 101}}), 0us, 100).sms, 49u);
}

TEST(padding_room, is_none_beside_full_layers_or_a_copy) {
  EXPECT_EQ(padding_room(queue({{WorkKind::kKernel, 100}}), 0us, 100).sms, 0u);
  EXPECT_EQ(padding_room(queue({{WorkKind::kKernel, 200}}), 0us, 100).sms, 0u);
  EXPECT_EQ(padding_room(queue({{WorkKind::kCopy, 0}}), 0us, 100).sms, 0u);
}

/// A collective's 24 blocks have 24 SMs; the kernel behind it may run beside it.
TEST(padding_room, counts_collectives_and_the_kernel_that_may_run_beside_them) {
  EXPECT_EQ(padding_room(queue({{WorkKind::kCollective, 24}}), 0us, 100).sms, 76u);
  EXPECT_EQ(padding_room(queue({{WorkKind::kCollective, 24}, {WorkKind::kKernel, 50},
                                {WorkKind::kKernel, 200}}),
                         0us, 100)
                .sms,
            26u);  // 100 - 24 - 50
  EXPECT_EQ(padding_room(queue({{WorkKind::kKernel, 50}, {WorkKind::kCollective, 24}}), 0us,
                         100)
                .sms,
            26u);
}

TEST(wave_length, is_the_duration_over_the_waves) {
  EXPECT_EQ(wave_length(500, 200, 30us), Duration{10us});  // three waves
  EXPECT_EQ(wave_length(1, 200, 30us), Duration{30us});
  EXPECT_EQ(wave_length(0, 200, 30us), std::nullopt);
  EXPECT_EQ(wave_length(500, 0, 30us), std::nullopt);
  EXPECT_EQ(wave_length(500, 200, 0us), std::nullopt);
}

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

/// 800 blocks of 5 ms. No form retreats in 50 us: with a block an SM, an eighth of those that fit,
/// workers have 0.22 of the speed, slices 1 / (3.6 + 35 us / 5 ms) = 0.28. Slices have 24 blocks,
/// the fewest, at 0.03 / 0.45 of the pace: these 34 are taken, though slower than a tenth. The
/// original is taken where a block an SM is too slow.
TEST(choose_form, falls_back_to_the_original_if_all_forms_are_too_slow) {
  const TallyForm slices = choose_form(kernel(800, 5ms), limits(50us));
  EXPECT_EQ(slices.kind, FormKind::kSliced);
  EXPECT_EQ(slices.most_blocks, 53u);  // 800 / 15
  EXPECT_NEAR(slices.speed, 1 / 15.033, 1e-9);  // 33 * 5 us / 5 ms
  TallyLimits strict = limits(50us);
  strict.lowest_speed = 0.3;
  EXPECT_EQ(choose_form(kernel(800, 5ms), strict).kind, FormKind::kOriginal);
}

/// A kernel of one block an SM: 1000 blocks are 10 waves of 100 us, workers retreat in 62.5 us. At
/// a limit of 50 us: 50 / 62.5 of 100 workers, 80: at 0.8 of the pace. Slices that take 50 us each
/// to launch are slower: 1 / 1.45.
TEST(choose_form, shrinks_to_fewer_workers_than_sms) {
  TallyLimits costly = limits(50us);
  costly.slice_overhead = 50us;
  const TallyForm form = choose_form({1ms, 1000, 1024, 100, KernelClass::kCompute}, costly);
  EXPECT_EQ(form.kind, FormKind::kPersistent);
  EXPECT_EQ(form.most_blocks, 80u);
  EXPECT_DOUBLE_EQ(form.speed, 0.8 / 1.25);
}

/// Ten slices, nine of them 5 us more, keep 1 / 1.045 of the speed, workers 0.8. Of the limit, 53
/// us, 1.3 ms are 25 slices, of 40 blocks: at 0.4 of the pace, and 120 us more.
TEST(choose_form, shrinks_slices_where_they_are_faster_than_workers) {
  const TallyForm form = choose_form({1ms, 1000, 1024, 100, KernelClass::kCompute}, limits(53us));
  EXPECT_EQ(form.kind, FormKind::kSliced);
  EXPECT_EQ(form.most_blocks, 40u);
  EXPECT_DOUBLE_EQ(form.speed, 1 / 2.62);
}

TEST(choose_form, guesses_residency_from_threads) {
  const TallyForm form = choose_form({1ms, 8000, 256, 0, KernelClass::kMemory}, limits(40us));
  EXPECT_DOUBLE_EQ(form.speed, 0.8);  // 2048 / 256 = 8 blocks an SM, as above
}

policy::LaunchInfo launch(std::uint64_t number, std::uint32_t operations = 1) {
  policy::LaunchInfo info;
  info.client = ClientId{1};
  info.launch = number;
  info.operations = operations;
  info.blocks = 10 * number;
  return info;
}

TEST(launch_queue, keeps_the_oldest_outstanding_launch_in_front) {
  LaunchQueue queue;
  for (std::uint64_t number = 1; number <= 3; ++number) queue.push(launch(number));
  EXPECT_FALSE(queue.complete(2));  // another stream was faster
  EXPECT_EQ(queue.front().launch, 1u);
  EXPECT_TRUE(queue.complete(1));
  EXPECT_EQ(queue.front().launch, 3u);
  EXPECT_EQ(queue.front().blocks, 30u);
  EXPECT_TRUE(queue.complete(3));
  EXPECT_TRUE(queue.empty());
}

TEST(launch_queue, ends_a_launch_with_its_last_operation) {
  LaunchQueue queue;
  queue.push(launch(5, 3));
  EXPECT_EQ(queue.operations(), 3u);
  EXPECT_FALSE(queue.complete(5));
  EXPECT_FALSE(queue.complete(5));
  EXPECT_TRUE(queue.complete(5));
  EXPECT_TRUE(queue.empty());
}

TEST(launch_queue, ignores_launches_it_does_not_have) {
  LaunchQueue queue;
  EXPECT_FALSE(queue.complete(1));
  queue.push(launch(4));
  queue.push(launch(6));
  for (const std::uint64_t number : {1u, 5u, 7u}) EXPECT_FALSE(queue.complete(number));
  EXPECT_EQ(queue.operations(), 2u);
  queue.push(launch(7, 0));  // nothing of it will end
  EXPECT_EQ(queue.size(), 2u);
}

/// It holds 16 at first; 40 outstanding, after 10 that went through.
TEST(launch_queue, grows_and_keeps_the_order) {
  LaunchQueue queue;
  for (std::uint64_t number = 1; number <= 10; ++number) {
    queue.push(launch(number));
    queue.complete(number);
  }
  for (std::uint64_t number = 11; number <= 50; ++number) queue.push(launch(number));
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(queue[i].launch, 11 + i);
  for (std::uint64_t number = 50; number > 11; --number) queue.complete(number);
  EXPECT_EQ(queue.operations(), 1u);
  EXPECT_EQ(queue.front().launch, 11u);
  queue.clear();
  EXPECT_TRUE(queue.empty());
}

TEST(outstanding_operations, ignore_ends_after_death) {
  OutstandingOperations outstanding(2);
  outstanding.passed(launch(1, 2));
  EXPECT_EQ(outstanding.count_of(ClientId{1}), 2u);
  outstanding.ended(ClientId{1});
  EXPECT_FALSE(outstanding.idle(ClientId{1}));
  outstanding.gone(ClientId{1});
  outstanding.ended(ClientId{1});
  EXPECT_TRUE(outstanding.idle(ClientId{1}));
}

}  // namespace
}  // namespace bubblesim::policies
