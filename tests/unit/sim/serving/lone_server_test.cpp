// A server alone, with steps of a millisecond a token.
#include "tests/fakes/lone_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/serving/serving_testing.hpp"

namespace bubblesim::serving {
namespace {

using ::testing::ElementsAre;

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
