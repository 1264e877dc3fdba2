#include "sim/validate/serving/serve_measured.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/fakes/lone_cost.hpp"

namespace bubblesim::validate {
namespace {

/// A step takes 1 us a token of its padded batch.
class MicrosecondATokens final : public step_cost::KernelTimes {
 public:
  double batch_us(const step_cost::Batch& batch) override { return batch.shape.padded; }
};

struct Costs {
  MicrosecondATokens kernels;
  model::TransformerSpec model;
  step_cost::ServerLayout layout;
  step_cost::EngineSpec engine;
  step_cost::EngineCost cost{kernels, model, layout, engine, {}};
};

std::vector<serving::Request> requests_of(std::size_t count) {
  std::vector<serving::Request> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    out[i].number = i;
    out[i].arrival = SimTime(Duration(static_cast<std::int64_t>(i) * 700));
    out[i].prompt_tokens = 20 + static_cast<std::uint32_t>(i * 37 % 50);
    out[i].output_tokens = 1 + static_cast<std::uint32_t>(i * 13 % 60);
  }
  return out;
}

serving::SchedulerSpec small_scheduler() {
  serving::SchedulerSpec spec = serving::vllm_settings();
  spec.max_num_batched_tokens = 64;
  spec.max_num_seqs = 4;
  spec.kv_blocks = 12;
  return spec;
}

class Source final : public serving::RequestSource {
 public:
  explicit Source(const std::vector<serving::Request>& requests) : requests_(requests) {}
  std::optional<serving::Request> next() override {
    if (next_ == requests_.size()) return std::nullopt;
    return requests_[next_++];
  }

 private:
  const std::vector<serving::Request>& requests_;
  std::size_t next_ = 0;
};

class LastTokens final : public serving::ServerObserver {
 public:
  explicit LastTokens(std::size_t count) : last(count) {}
  void on_arrival(const serving::Request&, serving::ArrivalOutcome) override {}
  void on_step(const serving::ScheduledStep&, SimTime, SimTime,
               const serving::Scheduler&) override {}
  void on_finished(const serving::FinishedRequest& request) override {
    last[request.number] = request.last_token;
  }
  std::vector<SimTime> last;
};

TEST(GroupServer, OfOneMemberDoesWhatALoneServerDoes) {
  const auto requests = requests_of(40);
  Costs of_group;
  const ServedLoad load = serve_group(small_scheduler(), 1, requests, of_group.cost);
  Costs alone;
  step_cost::LoneCost cost(alone.cost);
  serving::Scheduler scheduler(small_scheduler());
  Source source(requests);
  LastTokens observer(requests.size());
  EXPECT_EQ(serving::serve_alone(scheduler, source, cost, observer), load.end);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(load.requests[i].finished.last_token, observer.last[i]) << i;
  }
  EXPECT_GT(load.preemptions, 0U);  // the cache is small enough for the rule to matter
}

TEST(GroupServer, QueuesARequestWhenTheStepThatRunsEnds) {
  // The first prompt takes 20 us, within which the second arrives.
  std::vector<serving::Request> requests = requests_of(2);
  requests[1].arrival = SimTime(Duration(5000));
  Costs costs;
  const ServedLoad load = serve_group(small_scheduler(), 1, requests, costs.cost);
  EXPECT_EQ(load.requests[0].queued, SimTime(Duration(0)));
  EXPECT_EQ(load.requests[1].queued, SimTime(Duration(20000)));
}

TEST(GroupServer, GivesARequestToTheMemberWithTheLeastLoadAndStepsTogether) {
  std::vector<serving::Request> requests = requests_of(2);
  requests[1].arrival = requests[0].arrival;
  requests[0].prompt_tokens = 10;
  requests[1].prompt_tokens = 60;
  requests[0].output_tokens = requests[1].output_tokens = 1;
  Costs costs;
  const ServedLoad load = serve_group(small_scheduler(), 2, requests, costs.cost);
  EXPECT_EQ(load.steps, 1U);
  // The member with 10 tokens waits for the one with 60.
  EXPECT_EQ(load.requests[0].finished.last_token, SimTime(Duration(60000)));
  EXPECT_EQ(load.requests[1].finished.last_token, SimTime(Duration(60000)));
}

}  // namespace
}  // namespace bubblesim::validate
