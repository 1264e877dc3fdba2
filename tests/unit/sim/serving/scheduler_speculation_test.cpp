// Drafted tokens that decode steps check, accepted by stated chances.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "sim/base/output_file.hpp"
#include "sim/serving/scheduler.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "tests/unit/sim/serving/serving_testing.hpp"

namespace bubblesim::serving {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

/// Two drafted tokens a step, of which as many are accepted as the chances say.
SchedulerSpec drafting_spec(std::vector<double> accepted) {
  SchedulerSpec spec = small_spec();
  spec.speculation = {static_cast<std::uint32_t>(accepted.size()) - 1, std::move(accepted)};
  spec.seed = 1;
  return spec;
}

TEST(SchedulerSpeculation, AcceptedDraftsAreTokensAndTheLastStepDraftsNoMoreThanIsLeft) {
  Scheduler scheduler(drafting_spec({0, 0, 1}));
  scheduler.arrive(make_request(1, 2, 6));
  EXPECT_EQ(do_step(scheduler), "1:p2@0*");   // its first token
  const ScheduledStep* step = scheduler.next_step(at_ms(1));
  EXPECT_EQ(text_of(step), "1:3@2*");         // its own and two drafted ones: three tokens
  EXPECT_EQ(step->totals.decode_tokens, 3u);
  const StepOutcome& outcome = scheduler.finish_step(at_ms(3));
  EXPECT_EQ(outcome.tokens, 3u);
  EXPECT_THAT(outcome.gaps, ElementsAre(std::chrono::milliseconds(3), Duration{}, Duration{}));
  EXPECT_EQ(do_step(scheduler), "1:2@5*");    // two of six are left
  EXPECT_TRUE(scheduler.is_idle());
  EXPECT_EQ(scheduler.counts().output_tokens, 6u);
  EXPECT_EQ(scheduler.counts().rejected_tokens, 0u);
  EXPECT_EQ(scheduler.counts().computed_tokens, 2 + 6 - 1u);
}

TEST(SchedulerSpeculation, RejectedDraftsAreComputedForNothing) {
  Scheduler scheduler(drafting_spec({1, 0, 0}));
  play(scheduler, {make_request(1, 2, 4), "1:p2@0*", "1:3@2*",
                   "1:2@3*",  // the third token, and one draft
                   "1:1@4*"});
  EXPECT_TRUE(scheduler.is_idle());
  EXPECT_EQ(scheduler.counts().drafted_tokens, 3u);
  EXPECT_EQ(scheduler.counts().rejected_tokens, 3u);
  EXPECT_EQ(scheduler.counts().computed_tokens, 2 + 4 - 1 + 3u);
}

// Leviathan et al.: (1 - 0.6^4) / (1 - 0.6) = 2.176 tokens a step. Over 9,000 steps of a standard
// deviation of some 1.2 the mean is within 0.6 %.
TEST(SchedulerSpeculation, AStepYieldsWhatIndependentAcceptanceSays) {
  SchedulerSpec spec = drafting_spec(independent_acceptance(3, 0.6));
  spec.max_model_len = 20'010;
  spec.kv_blocks = 6'000;
  Scheduler scheduler(spec);
  scheduler.arrive(make_request(1, 2, 20'000));
  while (!scheduler.is_idle()) do_step(scheduler);
  const auto steps = static_cast<double>(scheduler.counts().steps - 1);
  EXPECT_NEAR(19'999 / steps, (1 - std::pow(0.6, 4)) / (1 - 0.6), 0.02 * 2.176);
}

/// Three drafted tokens a step, of which as many are accepted as were in recorded steps.
SchedulerSpec recorded_spec(std::vector<std::uint32_t> recorded) {
  SchedulerSpec spec = small_spec();
  spec.speculation.tokens = 3;
  spec.speculation.recorded = std::move(recorded);
  return spec;
}

// After the first token a request of 24 gets 1 + accepted tokens a step, in the file's order from a
// place of its own on: whichever that is, 2, 0, 3 and 1 accepted are 10 tokens in four steps.
TEST(SchedulerSpeculation, RecordedAcceptanceComesInItsOrder) {
  Scheduler scheduler(recorded_spec({2, 0, 3, 1}));
  scheduler.arrive(make_request(1, 2, 24));
  do_step(scheduler);
  std::vector<std::uint32_t> tokens;
  while (!scheduler.is_idle()) {
    ASSERT_NE(scheduler.next_step(kSimStart), nullptr);
    tokens.push_back(scheduler.finish_step(kSimStart).tokens);
  }
  ASSERT_GE(tokens.size(), 8u);
  const std::vector<std::uint32_t> recorded{3, 1, 4, 2};
  const auto first = std::find(recorded.begin(), recorded.end(), tokens[0]) - recorded.begin();
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(tokens[i], recorded[(static_cast<std::size_t>(first) + i) % 4]) << i;
  }
  EXPECT_EQ(scheduler.counts().output_tokens, 24u);
}

// Requests begin at places of their own, so that the file's mean is theirs: 1 + 6 / 4 tokens.
TEST(SchedulerSpeculation, RequestsBeginAtPlacesOfTheirOwn) {
  Scheduler scheduler(recorded_spec({3, 3, 0, 0}));
  std::uint64_t tokens = 0;
  for (std::uint64_t number = 0; number < 2000; ++number) {
    scheduler.arrive(make_request(number, 2, 40));
    do_step(scheduler);
    ASSERT_NE(scheduler.next_step(kSimStart), nullptr);
    tokens += scheduler.finish_step(kSimStart).tokens;
    while (!scheduler.is_idle()) do_step(scheduler);
  }
  EXPECT_NEAR(static_cast<double>(tokens) / 2000, 2.5, 0.1);  // three errors of 1.5 / sqrt(2000)
}

TEST(SchedulerSpeculation, AFileOfAcceptanceIsChecked) {
  const auto folder = ScratchFolder::make(::testing::TempDir(), "acceptance");
  ASSERT_TRUE(folder);
  const std::string path = (*folder)->path() + "/accepted.csv";
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return read_acceptance(path, 3);
  };
  EXPECT_THAT(*read("step,accepted\n0,3\n1,0\n2,2\n"), ElementsAre(3u, 0u, 2u));
  EXPECT_THAT(read("step,tokens\n0,3\n").error().text(), HasSubstr("no column \"accepted\""));
  EXPECT_THAT(read("accepted\n3\n4\n").error().text(),
              HasSubstr("line 3: accepted: found \"4\"; expected a whole number of 0 to 3"));
  EXPECT_THAT(read("accepted\n1.5\n").error().text(), HasSubstr("found \"1.5\""));
  EXPECT_THAT(check(recorded_spec({1, 4})).error().message,
              HasSubstr("recorded 4 accepted drafts; expected at most the 3"));
}

TEST(SchedulerSpeculation, ChancesAreCheckedAndStepsAheadRefused) {
  EXPECT_TRUE(check(drafting_spec({0.5, 0.25, 0.25})));
  EXPECT_THAT(check(drafting_spec({0.5, 0.25})).error().message,
              HasSubstr("found 2 chances of accepted drafts with the sum 0.75"));
  SchedulerSpec ahead = drafting_spec({0.5, 0.5});
  ahead.pacing = Pacing::kOneAhead;
  EXPECT_THAT(check(ahead).error().message, HasSubstr("expected pacing \"synchronous\""));
}

// Scheduling one step ahead of the one that runs.

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
