// A server under random requests, and a log of its steps, for laws that hold for any load.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/random.hpp"
#include "tests/fakes/lone_server.hpp"

namespace bubblesim::serving {

/// Poisson arrivals at `rate` a second, prompts and outputs uniform up to the given lengths.
struct RandomLoad {
  std::uint64_t seed = 1;
  std::uint64_t requests = 200;
  double rate = 100;
  std::uint32_t most_prompt = 60;
  std::uint32_t most_output = 40;
  std::uint64_t conversations = 0;  ///< that the requests are turns of; 0: single requests
  bool handed = false;              ///< every second request comes from a prefill server
};

class RandomSource final : public RequestSource {
 public:
  explicit RandomSource(const RandomLoad& load) : load_(load), random_(load.seed, "requests") {}

  std::optional<Request> next() override {
    if (number_ == load_.requests) return std::nullopt;
    Request request;
    request.number = ++number_;
    now_ += Duration{std::llround(random_.exponential(1e9 / load_.rate))};
    request.arrival = now_;
    request.prompt_tokens = up_to(load_.most_prompt);
    request.output_tokens = up_to(load_.most_output);
    request.priority = static_cast<std::int32_t>(up_to(3));
    if (load_.conversations > 0) request.prefix.conversation = number_ % load_.conversations;
    if (load_.handed && number_ % 2 == 0 && request.output_tokens > 1) {
      request.handed = Handover{now_};
    }
    return request;
  }

 private:
  std::uint32_t up_to(std::uint32_t most) {
    return 1 + static_cast<std::uint32_t>(random_.uniform() * most);
  }

  RandomLoad load_;
  RandomStream random_;
  std::uint64_t number_ = 0;
  SimTime now_{};
};

/// A step takes 1 ms plus 10 us a token.
class LinearCost final : public StepCost {
 public:
  Duration step_time(const ScheduledStep& step, bool) override {
    return std::chrono::milliseconds(1) + step.totals.tokens() * std::chrono::microseconds(10);
  }
};

struct ServerLog final : ServerObserver {
  void on_arrival(const Request& request, ArrivalOutcome what) override {
    (what == ArrivalOutcome::kQueued ? queued : refused).push_back(request);
  }
  void on_step(const ScheduledStep& step, SimTime, SimTime, const Scheduler& state) override {
    steps.push_back(step);
    blocks.push_back(state.blocks_used());
    host_blocks.push_back(state.host_blocks_used());
  }
  void on_finished(const FinishedRequest& request) override { finished.push_back(request); }

  std::vector<Request> queued;
  std::vector<Request> refused;
  std::vector<ScheduledStep> steps;
  std::vector<std::uint32_t> blocks;  ///< held after each step
  std::vector<std::uint32_t> host_blocks;
  std::vector<FinishedRequest> finished;
  SchedulerCounts counts;
  SimTime end{};
};

inline ServerLog serve_random(const SchedulerSpec& spec, const RandomLoad& load) {
  Scheduler scheduler(spec);
  RandomSource source(load);
  LinearCost cost;
  ServerLog log;
  log.end = serve_alone(scheduler, source, cost, log);
  log.counts = scheduler.counts();
  return log;
}

}  // namespace bubblesim::serving
