// Steps by hand: blocks of four tokens, budgets of eight. Expected steps read
// "request:tokens@context", "p" for prefill, "*" for a token that is sampled.
#include <gmock/gmock.h>

#include "sim/serving/scheduler.hpp"
#include "tests/fakes/lone_server.hpp"
#include "tests/unit/sim/serving/serving_testing.hpp"

namespace bubblesim::serving {
namespace {

using ::testing::ElementsAre;

TEST(Scheduler, APromptIsCutByTheBudgetAndItsRestSharesAStepWithAnotherPrompt) {
  Scheduler scheduler(small_spec());
  play(scheduler, {make_request(1, 10, 3), make_request(2, 3, 2), "1:p8@0",
                   "1:p2@8* 2:p3@0*",  // 2 + 3 of 8
                   "1:1@10* 2:1@3*",  // the second has its two tokens
                   "1:1@11*", "-"});
  EXPECT_TRUE(scheduler.is_idle());
  EXPECT_EQ(scheduler.counts().computed_tokens, 10 + 3 - 1 + 3 + 2 - 1u);
  EXPECT_EQ(scheduler.counts().output_tokens, 3 + 2u);
}

TEST(Scheduler, DecodesGoBeforeChunksWithinTheBudgetAndTotalsAreSums) {
  Scheduler scheduler(small_spec());
  play(scheduler, {make_request(1, 2, 9), "1:p2@0*", make_request(2, 20, 1),
                   "1:1@2* 2:p7@0"});  // 1 + 7 = 8
  const ScheduledStep* step = scheduler.next_step(kSimStart);
  ASSERT_EQ(text_of(step), "1:1@3* 2:p7@7");
  StepTotals expected;
  expected.prefill_sequences = 1;
  expected.decode_sequences = 1;
  expected.prefill_tokens = 7;
  expected.decode_tokens = 1;
  expected.decode_context = 3;
  EXPECT_EQ(step->totals, expected);
  scheduler.finish_step(kSimStart);
  EXPECT_EQ(do_step(scheduler), "1:1@4* 2:p6@14*");
}

TEST(Scheduler, AsManySequencesRunAsAreAllowed) {
  Scheduler scheduler(small_spec());
  play(scheduler, {make_request(1, 1, 2), make_request(2, 1, 2), make_request(3, 1, 2),
                   "1:p1@0* 2:p1@0*"});
  EXPECT_EQ(scheduler.waiting(), 1u);
  play(scheduler, {"1:1@1* 2:1@1*", "3:p1@0*"});
}

TEST(Scheduler, AThresholdCutsLongPromptsEvenWhereTheBudgetHasRoom) {
  SchedulerSpec spec = small_spec();
  spec.long_prefill_token_threshold = 3;
  Scheduler scheduler(spec);
  play(scheduler, {make_request(1, 7, 1), make_request(2, 4, 1), "1:p3@0 2:p3@0", "1:p3@3 2:p1@3*",
                   "1:p1@6*"});
}

TEST(Scheduler, WholePromptsWaitForABudgetThatHoldsThem) {
  SchedulerSpec spec = small_spec();
  spec.chunking = Chunking::kWhole;
  Scheduler scheduler(spec);
  play(scheduler, {make_request(1, 5, 2), make_request(2, 4, 1),
                   "1:p5@0*",  // 4 of the 3 that are left: not now
                   "1:1@5* 2:p4@0*"});
}

TEST(Scheduler, PromptsApartGoBeforeDecodes) {
  SchedulerSpec spec = small_spec();
  spec.chunking = Chunking::kWhole;
  spec.mixing = Mixing::kPromptsApart;
  Scheduler scheduler(spec);
  play(scheduler, {make_request(1, 5, 2), "1:p5@0*", make_request(2, 4, 2), "2:p4@0*",
                   "1:1@5* 2:1@4*"});
}

TEST(Scheduler, AWaitingRequestNeedsBlocksForItsWholePromptOrForItsChunk) {
  SchedulerSpec spec = small_spec();
  spec.kv_blocks = 6;                                  // 24 tokens
  for (const Reserve reserve : {Reserve::kPrompt, Reserve::kChunk}) {
    spec.reserve = reserve;
    Scheduler scheduler(spec);
    scheduler.arrive(make_request(1, 8, 3));           // 2 blocks, then 3
    scheduler.arrive(make_request(2, 16, 2));          // 4 blocks, then 5
    EXPECT_EQ(do_step(scheduler), "1:p8@0*");
    // 3 blocks are free after the first has its third: enough for a chunk of 7 tokens, not for 16.
    EXPECT_EQ(do_step(scheduler), reserve == Reserve::kPrompt ? "1:1@8*" : "1:1@8* 2:p7@0");
  }
}

TEST(Scheduler, OrcaKeepsBlocksForTheWholeOutputAndPreemptsNobody) {
  SchedulerSpec spec = small_spec();
  spec.kv_blocks = 4;
  spec.chunking = Chunking::kWhole;
  spec.reserve = Reserve::kWholeRequest;
  Scheduler scheduler(spec);
  play(scheduler, {make_request(1, 4, 6),  // 9 cached in the end: 3 blocks
                   make_request(2, 4, 2),  // 5: 2 blocks, of 1 that is not reserved
                   "1:p4@0*", "1:1@4*", "1:1@5*", "1:1@6*", "1:1@7*", "1:1@8*", "2:p4@0*"});
  EXPECT_EQ(scheduler.counts().preemptions, 0u);
}

TEST(Scheduler, TheWatermarkKeepsAdmissionAwayFromTheLastBlocksWhileAnythingRuns) {
  SchedulerSpec spec = small_spec();
  spec.kv_blocks = 4;
  spec.watermark = 0.5;                      // 2 blocks
  Scheduler scheduler(spec);
  play(scheduler, {make_request(1, 9, 1),  // 3 blocks of 4: nothing runs
                   make_request(2, 4, 1), "1:p8@0",  // 2 blocks are free, 1 + 2 wanted
                   "1:p1@8*", "2:p4@0*"});
}

TEST(Scheduler, PriorityComesBeforeArrival) {
  SchedulerSpec spec = small_spec();
  spec.order = Order::kPriority;
  spec.max_num_seqs = 1;
  Scheduler scheduler(spec);
  Request urgent = make_request(2, 2, 1);
  urgent.priority = -1;
  play(scheduler, {make_request(1, 3, 1), urgent, "2:p2@0*", "1:p3@0*"});
}

TEST(Scheduler, RequestsThatCouldNeverBeServedAreRefusedByName) {
  SchedulerSpec spec = small_spec();
  spec.kv_blocks = 8;                                                // 32 tokens
  EXPECT_EQ(Scheduler::admissible(spec, make_request(1, 60, 5)), ArrivalOutcome::kLongerThanWindow);
  EXPECT_EQ(Scheduler::admissible(spec, make_request(1, 30, 4)), ArrivalOutcome::kLargerThanCache);
  EXPECT_EQ(Scheduler::admissible(spec, make_request(1, 30, 3)),  // 32 cached
            ArrivalOutcome::kQueued);
  spec.chunking = Chunking::kWhole;
  EXPECT_EQ(Scheduler::admissible(spec, make_request(1, 8, 2)), ArrivalOutcome::kLargerThanBudget);
  EXPECT_EQ(Scheduler::admissible(spec, make_request(1, 7, 2)), ArrivalOutcome::kQueued);
  Scheduler scheduler(spec);
  EXPECT_EQ(scheduler.arrive(make_request(1, 60, 5)), ArrivalOutcome::kLongerThanWindow);
  EXPECT_EQ(scheduler.arrive(make_request(2, 8, 2)), ArrivalOutcome::kLargerThanBudget);
  EXPECT_TRUE(scheduler.is_idle());
  CounterSet counters;
  add_counters(scheduler.counts(), counters);
  EXPECT_EQ(counters.count("server_requests_longer_than_window"), 1u);
  EXPECT_EQ(counters.count("server_requests_larger_than_budget"), 1u);
  EXPECT_TRUE(counters.has_error());
}

TEST(Scheduler, AFinishedRequestHasTheTimesOfItsSteps) {
  Scheduler scheduler(small_spec());
  Request request = make_request(7, 10, 3);
  request.arrival = at_ms(1);
  scheduler.arrive(request);
  ASSERT_EQ(text_of(scheduler.next_step(at_ms(2))), "7:p8@0");
  scheduler.finish_step(at_ms(10));
  ASSERT_EQ(text_of(scheduler.next_step(at_ms(10))), "7:p2@8*");
  EXPECT_THAT(scheduler.finish_step(at_ms(14)).first_token, ElementsAre(7u));
  EXPECT_EQ(do_step(scheduler, at_ms(16)), "7:1@10*");
  ASSERT_NE(scheduler.next_step(at_ms(16)), nullptr);
  const StepOutcome& outcome = scheduler.finish_step(at_ms(19));
  ASSERT_EQ(outcome.finished.size(), 1u);
  const FinishedRequest& done = outcome.finished.front();
  EXPECT_EQ(done.admitted, at_ms(2));
  EXPECT_EQ(done.ttft(), std::chrono::milliseconds(13));                 // 14 - 1
  EXPECT_EQ(done.latency(), std::chrono::milliseconds(18));              // 19 - 1
  EXPECT_EQ(done.tpot(), Duration(std::chrono::microseconds(2500)));     // (19 - 14) / 2
}

TEST(Scheduler, AStepTellsHowLongEachFurtherTokenTook) {
  Scheduler scheduler(small_spec());
  scheduler.arrive(make_request(1, 2, 3));
  ASSERT_NE(scheduler.next_step(at_ms(0)), nullptr);
  EXPECT_THAT(scheduler.finish_step(at_ms(5)).gaps, ::testing::IsEmpty());
  ASSERT_NE(scheduler.next_step(at_ms(5)), nullptr);
  EXPECT_THAT(scheduler.finish_step(at_ms(7)).gaps, ElementsAre(std::chrono::milliseconds(2)));
  ASSERT_NE(scheduler.next_step(at_ms(9)), nullptr);
  EXPECT_THAT(scheduler.finish_step(at_ms(12)).gaps, ElementsAre(std::chrono::milliseconds(5)));
}

TEST(Scheduler, ARequestThatIsHandedOverDecodesFromItsFirstToken) {
  Scheduler scheduler(small_spec());
  Request request = make_request(1, 10, 3);
  request.arrival = at_ms(1);
  request.handed = Handover{at_ms(4)};
  scheduler.arrive(request);
  EXPECT_EQ(text_of(scheduler.next_step(at_ms(6))), "1:1@10*");
  EXPECT_EQ(scheduler.blocks_used(), 3u);  // 11 tokens
  const StepOutcome& second = scheduler.finish_step(at_ms(8));
  EXPECT_THAT(second.gaps, ElementsAre(std::chrono::milliseconds(4)));
  EXPECT_TRUE(second.first_token.empty());
  EXPECT_EQ(text_of(scheduler.next_step(at_ms(8))), "1:1@11*");
  const StepOutcome& third = scheduler.finish_step(at_ms(9));
  ASSERT_EQ(third.finished.size(), 1u);
  EXPECT_EQ(third.finished.front().ttft(), std::chrono::milliseconds(3));
  EXPECT_EQ(third.finished.front().latency(), std::chrono::milliseconds(8));
  EXPECT_EQ(scheduler.counts().handed_tokens, 10u);
  EXPECT_EQ(scheduler.counts().computed_tokens, 2u);  // 10 + 3 - 1 - 10
}

TEST(SchedulerSpec, FaultsAreSentences) {
  SchedulerSpec spec = small_spec();
  EXPECT_TRUE(check(spec));
  spec.kv_blocks = 0;
  EXPECT_EQ(check(spec).error().message, "a KV cache of 0 blocks; expected 1 or more");
  spec = orca_settings();
  spec.long_prefill_token_threshold = 4;
  EXPECT_THAT(check(spec).error().message, ::testing::HasSubstr("whole prompts; expected 0"));
  EXPECT_TRUE(check(vllm_settings()));
  EXPECT_TRUE(check(sarathi_settings(512)));
  EXPECT_TRUE(check(orca_settings()));
}

// A server alone, with steps of a millisecond a token.

class ListSource final : public RequestSource {
 public:
  explicit ListSource(std::vector<Request> requests) : requests_(std::move(requests)) {}
  std::optional<Request> next() override {
    if (at_ == requests_.size()) return std::nullopt;
    return requests_[at_++];
  }

 private:
  std::vector<Request> requests_;
  std::size_t at_ = 0;
};

class TokenCost final : public StepCost {
 public:
  Duration step_time(const ScheduledStep& step, bool queued) override {
    queued_ += queued ? 1 : 0;
    return std::chrono::milliseconds(step.totals.tokens());
  }
  int queued_ = 0;
};

class Log final : public ServerObserver {
 public:
  void on_arrival(const Request& request, ArrivalOutcome what) override {
    if (what != ArrivalOutcome::kQueued) refused.push_back(request.number);
  }
  void on_step(const ScheduledStep& step, SimTime start, SimTime end, const Scheduler&) override {
    steps.push_back(std::to_string(to_ns(start) / 1'000'000) + "-" +
                    std::to_string(to_ns(end) / 1'000'000) + " " + text_of(&step));
  }
  void on_finished(const FinishedRequest& request) override { finished.push_back(request); }

  std::vector<std::string> steps;
  std::vector<std::uint64_t> refused;
  std::vector<FinishedRequest> finished;
};

std::vector<Request> two_requests() {
  std::vector<Request> requests{make_request(1, 4, 3), make_request(2, 3, 1)};
  requests[0].arrival = at_ms(10);
  requests[1].arrival = at_ms(12);
  return requests;
}

TEST(LoneServer, ARequestWaitsForTheEndOfTheStepThatRuns) {
  Scheduler scheduler(small_spec());
  ListSource source(two_requests());
  TokenCost cost;
  Log log;
  EXPECT_EQ(serve_alone(scheduler, source, cost, log), at_ms(19));
  EXPECT_THAT(log.steps, ElementsAre("10-14 1:p4@0*", "14-18 1:1@4* 2:p3@0*", "18-19 1:1@5*"));
  ASSERT_EQ(log.finished.size(), 2u);
  EXPECT_EQ(log.finished[0].ttft(), std::chrono::milliseconds(6));  // of the second: 18 - 12
  EXPECT_EQ(cost.queued_, 0);
}

TEST(LoneServer, AheadItWaitsForTheStepAfterThatToo) {
  SchedulerSpec spec = small_spec();
  spec.pacing = Pacing::kOneAhead;
  Scheduler scheduler(spec);
  ListSource source(two_requests());
  TokenCost cost;
  Log log;
  EXPECT_EQ(serve_alone(scheduler, source, cost, log), at_ms(19));
  EXPECT_THAT(log.steps, ElementsAre("10-14 1:p4@0*", "14-15 1:1@4*", "15-19 1:1@5* 2:p3@0*"));
  EXPECT_EQ(cost.queued_, 2);
}

TEST(LoneServer, RefusedRequestsAreNamedAndTheOthersServed) {
  Scheduler scheduler(small_spec());
  ListSource source({make_request(1, 100, 1), make_request(2, 3, 1)});
  TokenCost cost;
  Log log;
  EXPECT_EQ(serve_alone(scheduler, source, cost, log), at_ms(3));
  EXPECT_THAT(log.refused, ElementsAre(1u));
  EXPECT_EQ(log.finished.size(), 1u);
}

}  // namespace
}  // namespace bubblesim::serving
