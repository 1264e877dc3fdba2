// Driving a client off the GPU, in each of the four ways. The GPU holds 8 blocks of 4 warps.
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

using program::Preemption, program::SharingMode;

using Preemptions = GpuTest;

// 16 blocks, 8 at once: two waves of 50 ns.
program::KernelProfile two_waves() { return blocks_of_warps(16, 4); }

class PreemptedKernels : public KernelTable {};
TEST_P(PreemptedKernels, StartAndEndAsListed) { expect_row(); }

const std::vector<Kernels> kPreemptedKernels{
    // 1 ends at 250: 50 till the wave ended, then the second from 200 on.
    {"after_blocks_the_wave_ends_and_the_rest_waits", {{0, 0, 100, 16}}, {{"end 1", 250}}, {},
     {{20, 0, preempt(Preemption::kAfterBlocks)}, {200, 0, proceed()}}},
    {"after_kernel_what_has_begun_ends_and_the_next_waits", {{0, 0, 100, 16}, {10, 0, 100, 16}},
     {{"end 1", 100}, {"start 2", 200}, {"end 2", 300}}, {},
     {{20, 0, preempt(Preemption::kAfterKernel)}, {200, 0, proceed()}}},
    // 2 starts at 50: when low's wave has drained. 1 ends at 130: low's second wave from 80 on.
    {"another_client_goes_past_blocks_that_are_kept_off", {{0, 0, 100, 16}, {20, 1, 30}},
     {{"start 2", 50}, {"end 2", 80}, {"end 1", 130}}, {},
     {{10, 0, preempt(Preemption::kAfterBlocks)}, {60, 0, proceed()}}},
    // 1 ends at 110: 50 done; at 55 the switch turns back, from 60 on 50 more.
    {"a_context_driven_off_while_the_gpu_switches_to_it_passes_it_on", {{0, 1, 100, 16},
     {0, 0, 100, 16}}, {{"end 1", 110}, {"end 2", 405}}, turns_of(50, 5),
     {{52, 0, preempt(Preemption::kContextSwitch)}, {300, 0, proceed()}}},
    // 1 ends at 180: nobody else had the GPU: no switch.
    {"a_context_alone_stands_still_while_it_is_switched_away", {{0, 0, 100, 16}}, {{"end 1", 180}},
     turns_of(1000, 5), {{20, 0, preempt(Preemption::kContextSwitch)}, {100, 0, proceed()}}},
    {"a_context_whose_kernels_are_kept_off_takes_no_turn", {{1, 0, 100, 16}, {5, 1, 30}},
     {{"end 2", 35}, {"end 1", 150}}, turns_of(10, 0), {{0, 0, preempt(Preemption::kAfterKernel)},
     {50, 0, proceed()}}},
    // 1 ends at 160: 10 before, 90 after.
    {"idle_only_fillers_stand_still_beside_kernels_and_cost_nothing", {{0, 1, 100, 16},
     {10, 0, 60, 4}}, {{"start 2", 10}, {"end 2", 70}, {"end 1", 160}},
     shared(SharingMode::kIdleOnly)},
    // 1: 4 SMs. 2: 2 SMs. 1 ends at 130: 10 whole, 60 at half speed, 60 more.
    {"leftover_fillers_go_on_as_fast_as_the_free_sms_let_them", {{0, 1, 100}, {10, 0, 60, 4}},
     {{"end 2", 70}, {"end 1", 130}}, shared(SharingMode::kLeftover)}};
INSTANTIATE_TEST_SUITE_P(Preemptions, PreemptedKernels,
                         testing::ValuesIn(kPreemptedKernels), name_of_row);

TEST_F(Preemptions, a_reset_kernel_loses_all_that_it_did) {
  const ClientId c = client();
  kernel_at(0, 1, c, 100, two_waves());
  script_.at(70, [&] { gpu_->preempt(c, program::Preemption::kReset); });
  script_.at(200, [&] { gpu_->proceed(c); });
  expect_run({{"end 1", 300}});
  EXPECT_EQ(gpu_->usage(c).resets, 1u);
  EXPECT_EQ(gpu_->usage(c).kernels, 1u);
  EXPECT_EQ(gpu_->usage(c).busy, Duration{170});  // 70 lost, 100 again
}

TEST_F(Preemptions, a_reset_makes_room_for_another_client_at_once) {
  const ClientId low = client();
  const ClientId high = client();
  kernel_at(0, 1, low, 100, two_waves());
  script_.at(20, [&] { gpu_->preempt(low, program::Preemption::kReset); });
  kernel_at(20, 2, high, 30, blocks_of_warps(8, 4));
  script_.at(50, [&] { gpu_->proceed(low); });
  expect_run({{"end 2", 50}, {"end 1", 150}});
}

TEST_F(Preemptions, who_stands_still_is_not_busy_because_somebody_is_reset) {
  // 3 stands still beside 1, from 10 to 110. A reset of a client that has nothing there changes
  // nothing.
  make(small_gpu(), {.mode = program::SharingMode::kIdleOnly});
  const ClientId training = client();
  const ClientId idle = client();
  const ClientId filler = client();
  kernel_at(0, 3, filler, 100, blocks_of_warps(2, 4));
  kernel_at(10, 1, training, 100, blocks_of_warps(8, 4));
  script_.at(20, [&] { gpu_->preempt(idle, program::Preemption::kReset); });
  expect_run({{"end 3", 200}});
  EXPECT_EQ(gpu_->usage(filler).busy, Duration{100});
}

TEST_F(Preemptions, a_context_switched_away_keeps_its_progress) {
  make(small_gpu(), {program::SharingMode::kTimeSliced, Duration{1000}, Duration{5}});
  const ClientId low = client();
  const ClientId high = client();
  kernel_at(0, 1, low, 100, two_waves());
  script_.at(20, [&] { gpu_->preempt(low, program::Preemption::kContextSwitch); });
  kernel_at(20, 2, high, 30, blocks_of_warps(8, 4));
  script_.at(100, [&] { gpu_->proceed(low); });
  run();
  EXPECT_EQ(start(2), 25);  // the switch to another context
  EXPECT_EQ(end(2), 55);
  EXPECT_EQ(end(1), 185);   // 20 done; at 100 the switch back, then 80 more
}

TEST_F(Preemptions, a_form_bounds_resident_blocks) {
  const ClientId c = client();
  Work work{.client = c, .kind = program::WorkKind::kKernel, .solo = Duration{100},
            .profile = keep(two_waves()), .cookie = 1, .most_blocks = 4};
  work_at(0, work);
  kernel_at(0, 2, client(), 50, blocks_of_warps(4, 4));
  run();
  EXPECT_EQ(end(1), 200);  // 16 blocks of 50 ns, 4 at once
  EXPECT_EQ(end(2), 50);   // beside it, in the room that it leaves
}

TEST_F(Preemptions, slices_may_differ_between_contexts) {
  make(small_gpu(), {program::SharingMode::kTimeSliced, Duration{100}, Duration{0}});
  const ClientId a = client();
  const ClientId b = gpu_->add_client({.name = "b", .slice = Duration{10}}, *this);
  kernel_at(0, 1, a, 200, blocks_of_warps(8, 4));
  kernel_at(0, 2, b, 200, blocks_of_warps(8, 4));
  run();
  EXPECT_EQ(end(1), 210);  // 100, then 10 of the other, then 100
}

TEST_F(Preemptions, partitions_have_their_own_sms_and_bandwidth) {
  make(small_gpu(), {.mode = program::SharingMode::kPartitioned});
  const ClientId a = gpu_->add_client({.name = "a", .sm_cap = 2, .bandwidth = 0.5}, *this);
  const ClientId b = gpu_->add_client({.name = "b", .sm_cap = 2, .bandwidth = 0.5}, *this);
  program::KernelProfile streams = blocks_of_warps(8, 4);
  streams.kernel_class = program::KernelClass::kMemory;
  streams.dram_share = 1;
  kernel_at(0, 1, a, 100, streams);
  kernel_at(0, 2, b, 100, blocks_of_warps(4, 4));
  run();
  EXPECT_EQ(end(1), 200);  // 4 of its 8 blocks at once, each with its whole demand served
  EXPECT_EQ(end(2), 100);
}

}  // namespace
}  // namespace bubblesim::gpu
