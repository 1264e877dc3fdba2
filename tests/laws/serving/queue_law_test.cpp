// One sequence at a time, one token of output, steps of fixed length: a queue M/D/1.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/laws/serving/random_server.hpp"

namespace bubblesim::serving {
namespace {

constexpr Duration kStep = std::chrono::milliseconds(10);

class FixedCost final : public StepCost {
 public:
  Duration step_time(const ScheduledStep&, bool) override { return kStep; }
};

SchedulerSpec one_at_a_time() {
  SchedulerSpec spec;
  spec.max_num_seqs = 1;
  spec.kv_blocks = 64;
  return spec;
}

RandomLoad one_token(double load) {
  RandomLoad random;
  random.requests = 40'000;
  random.rate = load / to_seconds(kStep);
  random.most_output = 1;
  return random;
}

ServerLog serve_one_by_one(const RandomLoad& load) {
  Scheduler scheduler(one_at_a_time());
  RandomSource source(load);
  FixedCost cost;
  ServerLog log;
  serve_alone(scheduler, source, cost, log);
  return log;
}

// Lindley's recurrence: a request starts when it has arrived and the one before it has ended.
TEST(QueueLaw, EachRequestEndsWhereLindleysRecurrenceSays) {
  const ServerLog log = serve_one_by_one(one_token(0.8));
  ASSERT_EQ(log.finished.size(), 40'000u);
  SimTime free{};
  for (const FinishedRequest& request : log.finished) {
    free = std::max(free, request.arrival) + kStep;
    ASSERT_EQ(request.last_token, free);
  }
}

// Pollaczek and Khinchine: the mean wait of M/D/1 at load r is r / (2 (1 - r)) services. The
// standard error of the mean over 40,000 requests is some 2 % at a load of 0.5.
TEST(QueueLaw, TheMeanWaitIsThatOfPollaczekAndKhinchine) {
  for (const double load : {0.2, 0.5}) {
    const ServerLog log = serve_one_by_one(one_token(load));
    double wait = 0;
    for (const FinishedRequest& request : log.finished) {
      wait += to_seconds(request.latency() - kStep);
    }
    wait /= static_cast<double>(log.finished.size());
    const double expected = load / (2 * (1 - load)) * to_seconds(kStep);
    EXPECT_NEAR(wait / expected, 1, 0.05) << "load " << load;
  }
}

}  // namespace
}  // namespace bubblesim::serving
