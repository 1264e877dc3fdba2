// Scheduling one step ahead of the one that runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/serving/scheduler.hpp"
#include "tests/unit/sim/serving/serving_testing.hpp"

namespace bubblesim::serving {
namespace {

SchedulerSpec ahead_spec() {
  SchedulerSpec spec = small_spec();
  spec.pacing = Pacing::kOneAhead;
  return spec;
}

TEST(SchedulerAhead, TwoStepsAreInFlightAndTheSecondAssumesTheTokenOfTheFirst) {
  Scheduler scheduler(ahead_spec());
  scheduler.arrive(make_request(1, 4, 3));
  EXPECT_EQ(text_of(scheduler.next_step(kSimStart)), "1:p4@0*");
  EXPECT_EQ(text_of(scheduler.next_step(kSimStart)), "1:1@4*");
  EXPECT_EQ(text_of(scheduler.next_step(kSimStart)), "-");
  EXPECT_EQ(scheduler.finish_step(at_ms(1)).first_token.size(), 1u);
  EXPECT_EQ(text_of(scheduler.next_step(at_ms(1))), "1:1@5*");
  EXPECT_TRUE(scheduler.finish_step(at_ms(2)).finished.empty());
  EXPECT_EQ(text_of(scheduler.next_step(at_ms(2))), "-");  // its third token is on its way
  EXPECT_EQ(scheduler.running(), 1u);                      // and it keeps its place
  EXPECT_EQ(scheduler.finish_step(at_ms(3)).finished.size(), 1u);
  EXPECT_TRUE(scheduler.is_idle());
  EXPECT_EQ(scheduler.blocks_used(), 0u);
}

TEST(SchedulerAhead, ARequestThatArrivesMeanwhileWaitsForTheStepThatIsScheduled) {
  Scheduler scheduler(ahead_spec());
  scheduler.arrive(make_request(1, 4, 9));
  ASSERT_EQ(text_of(scheduler.next_step(kSimStart)), "1:p4@0*");
  ASSERT_EQ(text_of(scheduler.next_step(kSimStart)), "1:1@4*");
  scheduler.arrive(make_request(2, 3, 1));
  scheduler.finish_step(at_ms(1));
  EXPECT_EQ(text_of(scheduler.next_step(at_ms(1))), "1:1@5* 2:p3@0*");
}

TEST(SchedulerAhead, AnEndThatNobodyForesawCostsOneMoreToken) {
  SchedulerSpec spec = ahead_spec();
  spec.output_end = OutputEnd::kStopToken;
  Scheduler scheduler(spec);
  scheduler.arrive(make_request(1, 4, 2));
  ASSERT_EQ(text_of(scheduler.next_step(kSimStart)), "1:p4@0*");
  ASSERT_EQ(text_of(scheduler.next_step(kSimStart)), "1:1@4*");
  scheduler.finish_step(at_ms(1));
  EXPECT_EQ(text_of(scheduler.next_step(at_ms(1))), "1:1@5*");
  EXPECT_EQ(scheduler.finish_step(at_ms(2)).finished.size(), 1u);
  EXPECT_EQ(scheduler.finish_step(at_ms(3)).tokens, 0u);
  EXPECT_EQ(scheduler.counts().dropped_tokens, 1u);
  EXPECT_EQ(scheduler.counts().computed_tokens, 4 + 2 - 1 + 1u);
}

TEST(SchedulerAhead, APreemptedSequenceStillReceivesTheTokenInFlight) {
  SchedulerSpec spec = ahead_spec();
  spec.max_num_batched_tokens = 14;
  spec.kv_blocks = 4;
  Scheduler scheduler(spec);
  scheduler.arrive(make_request(1, 7, 4));
  scheduler.arrive(make_request(2, 7, 2));
  ASSERT_EQ(text_of(scheduler.next_step(kSimStart)), "1:p7@0* 2:p7@0*");
  ASSERT_EQ(text_of(scheduler.next_step(kSimStart)), "1:1@7* 2:1@7*");
  scheduler.finish_step(at_ms(1));
  // The first needs a third block. The second, whose last token is in flight, gives way for it...
  EXPECT_EQ(text_of(scheduler.next_step(at_ms(1))), "1:1@8*");
  EXPECT_EQ(scheduler.counts().preemptions, 1u);
  // ...and ends in the queue.
  const StepOutcome& outcome = scheduler.finish_step(at_ms(2));
  ASSERT_EQ(outcome.finished.size(), 1u);
  EXPECT_EQ(outcome.finished.front().number, 2u);
  EXPECT_EQ(scheduler.waiting(), 0u);
}

}  // namespace
}  // namespace bubblesim::serving
