// What a policy does to running work, put into effect by the driver. Times in us.
#include <gmock/gmock.h>

#include "tests/unit/sim/schedule/driver_fixture.hpp"

namespace bubblesim::schedule {
namespace {

using testing::HasSubstr;

using PolicyActions = PolicyDriverTest;

program::Program two_kernels() {
  return ProgramMaker().kernel(10, 30).kernel(0, 30).end().program();
}

// The filler's kernels would run 10 - 40 - 70. Driven off at 20 and let on at 100: the first ends,
// the second waits.
TEST_F(PolicyActions, preempt_after_a_kernel_and_proceed) {
  policy_.ticks = {us(20), us(100)};
  policy_.tick_rule = [this](policy::Actions& actions) {
    if (policy_.ticks.empty()) return actions.proceed(kFiller);
    actions.preempt(kFiller, program::Preemption::kAfterKernel);
  };
  run({one_kernel(500, 1), two_kernels()});
  EXPECT_EQ(spans(1), (Spans{{10, 40}, {100, 130}}));
  EXPECT_EQ(driver_->session().counts().preemptions, 1u);
}

TEST_F(PolicyActions, reset_makes_a_kernel_begin_anew) {
  policy_.ticks = {us(20), us(100)};
  policy_.tick_rule = [this](policy::Actions& actions) {
    if (policy_.ticks.empty()) return actions.proceed(kFiller);
    actions.preempt(kFiller, program::Preemption::kReset);
  };
  run({one_kernel(500, 1), two_kernels()});
  EXPECT_EQ(spans(1), (Spans{{10, 130}, {130, 160}}));
}

TEST_F(PolicyActions, switch_a_context_away_only_where_contexts_take_turns) {
  at_tick(us(20), [](policy::Actions& actions) {
    actions.preempt(kFiller, program::Preemption::kContextSwitch);
  });
  run({one_kernel(500, 1), two_kernels()});
  EXPECT_THAT(fault(), HasSubstr("contexts do not take turns"));
}

TEST_F(PolicyActions, set_slices_only_where_contexts_take_turns) {
  at_tick(us(20), [](policy::Actions& actions) { actions.set_time_slice(kFiller, us(5)); });
  run({one_kernel(500, 1), two_kernels()});
  EXPECT_THAT(fault(), HasSubstr("contexts do not take turns"));
}

TEST_F(PolicyActions, slices_take_effect_under_time_slicing) {
  sharing_ = {program::SharingMode::kTimeSliced, us(1000), us(0)};
  at_tick(us(1), [](policy::Actions& actions) { actions.set_time_slice(kFiller, us(10)); });
  // The filler runs from 5 on; the job's first slice begins when the filler's of 10 has ended.
  run({one_kernel(10, 30), one_kernel(5, 30)});
  EXPECT_EQ(fault(), "none");
  EXPECT_EQ(spans(0), (Spans{{15, 45}}));
  EXPECT_EQ(spans(1), (Spans{{5, 65}}));
}

// Twice as long, and on one block at a time: of 2 blocks that fit together, 30 each.
TEST_F(PolicyActions, reshape_the_launch_that_goes_on_and_no_other) {
  program::Program filler = two_kernels();
  for (auto& profile : filler.profiles) profile.blocks = 2;
  policy_.launch_rule = [](const policy::LaunchInfo& launch, policy::Actions& actions) {
    if (launch.client == kFiller && launch.launch == 1) actions.reshape(kFiller, {1, 2.0});
    return policy::Verdict::kAdmit;
  };
  run({one_kernel(500, 1), filler});
  EXPECT_EQ(spans(1), (Spans{{10, 130}, {130, 160}}));
  EXPECT_EQ(driver_->session().counts().reshaped, 1u);
}

TEST_F(PolicyActions, a_held_launch_keeps_its_form_until_it_is_released) {
  hold_fillers();
  at_tick(us(50), [](policy::Actions& actions) {
    actions.reshape(kFiller, {0, 3.0});
    actions.release(kFiller);
  });
  run({one_kernel(500, 1), one_kernel(10, 30)});
  EXPECT_EQ(spans(1), (Spans{{50, 140}}));
}

TEST_F(PolicyActions, a_form_that_is_faster_ends_the_run) {
  at_tick(us(5), [](policy::Actions& actions) { actions.reshape(kFiller, {0, 0.5}); });
  run({one_kernel(500, 1), two_kernels()});
  EXPECT_THAT(fault(), HasSubstr("to a slowdown of 0.5, allowed are 1 to 1000"));
}

// Half of 1,000 bytes moves out over 1e6 B/s: 500 us. A kernel that asks for a tenth of 2e7 B/s of
// DRAM then fetches half of its 2e6 B/s over the link, which takes as long as it lasts: no loss. At
// a tenth of the link it takes ten times as long.
TEST_F(PolicyActions, memory_behind_the_host_link_slows_kernels_that_start_then) {
  memory_ = Bytes{1000};
  gpu_spec_.dram_bandwidth = {2e7};
  gpu_spec_.host_bandwidth = {1e5};
  program::Program filler = ProgramMaker().kernel(10, 30).kernel(9000, 30).end().program();
  for (auto& profile : filler.profiles) profile.dram_share = 0.1;
  at_tick(us(1), [](policy::Actions& actions) {
    actions.set_resident_memory(kFiller, Bytes{500});
  });
  run({one_kernel(50, 1), filler});
  EXPECT_EQ(spans(1), (Spans{{10, 40}, {9010, 9310}}));
  EXPECT_EQ(driver_->session().counts().migrated, Bytes{500});
}

TEST_F(PolicyActions, more_memory_than_a_client_has_ends_the_run) {
  memory_ = Bytes{1000};
  at_tick(us(1), [](policy::Actions& actions) {
    actions.set_resident_memory(kFiller, Bytes{1001});
  });
  run({one_kernel(50, 1), two_kernels()});
  EXPECT_THAT(fault(), HasSubstr("1001"));
}

TEST_F(PolicyActions, of_a_client_that_does_not_exist_end_the_run) {
  at_tick(us(1), [](policy::Actions& actions) {
    actions.preempt(ClientId{7}, program::Preemption::kAfterBlocks);
  });
  run({one_kernel(50, 1), two_kernels()});
  EXPECT_THAT(fault(), HasSubstr("client 7"));
}

}  // namespace
}  // namespace bubblesim::schedule
