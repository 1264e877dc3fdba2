#include "sim/validate/serving/group_server.hpp"

#include <algorithm>
#include <memory>

#include "sim/base/check.hpp"
#include "sim/serving/step_queue.hpp"

namespace bubblesim::validate {
namespace {

struct Member {
  explicit Member(const serving::SchedulerSpec& spec) : scheduler(spec), steps(scheduler) {}

  serving::Scheduler scheduler;
  serving::StepQueue steps;
};

class Group {
 public:
  Group(const serving::SchedulerSpec& spec, std::uint32_t members,
        std::span<const serving::Request> requests, step_cost::EngineCost& cost)
      : requests_(requests), cost_(cost), steps_(members, nullptr) {
    for (std::uint32_t i = 0; i < members; ++i) members_.push_back(std::make_unique<Member>(spec));
    load_.requests.resize(requests.size());
  }

  ServedLoad run() {
    while (steps_run_ || coming_ < requests_.size()) {
      if (steps_run_) {
        now_ = end_;
        end_steps();
      } else {
        now_ = std::max(now_, requests_[coming_].arrival);
      }
      take_arrivals();
      start_steps();
    }
    load_.end = now_;
    for (const auto& member : members_) add_counts(member->scheduler.counts());
    return std::move(load_);
  }

 private:
  void end_steps() {
    for (const auto& member : members_) {
      if (member->steps.running() == nullptr) continue;
      for (const serving::FinishedRequest& done : member->steps.finish(now_).finished) {
        load_.requests[done.number].finished = done;
      }
    }
  }

  void take_arrivals() {
    while (coming_ < requests_.size() && requests_[coming_].arrival <= now_) {
      const auto member = std::min_element(
          members_.begin(), members_.end(),
          [](const auto& a, const auto& b) { return a->scheduler.load() < b->scheduler.load(); });
      const auto what = (*member)->scheduler.arrive(requests_[coming_]);
      BUBBLESIM_CHECK(what == serving::ArrivalOutcome::kQueued, "a request that was not checked");
      load_.requests[coming_++].queued = now_;
    }
  }

  void start_steps() {
    steps_run_ = false;
    bool queued = true;  // by every member: all wait for the last one's host
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const auto started = members_[i]->steps.refill(now_);
      steps_[i] = started ? started->step : nullptr;
      steps_run_ = steps_run_ || started.has_value();
      queued = queued && (!started || started->queued);
    }
    if (!steps_run_) return;
    end_ = now_ + cost_.step_time(steps_, queued);
    ++load_.steps;
  }

  void add_counts(const serving::SchedulerCounts& counts) {
    load_.counts.preemptions += counts.preemptions;
    load_.counts.recomputed_tokens += counts.recomputed_tokens;
    load_.counts.prefix_hit_tokens += counts.prefix_hit_tokens;
    load_.counts.computed_tokens += counts.computed_tokens;
    load_.counts.output_tokens += counts.output_tokens;
    load_.counts.finished += counts.finished;
    load_.counts.most_running = std::max(load_.counts.most_running, counts.most_running);
    load_.counts.most_blocks = std::max(load_.counts.most_blocks, counts.most_blocks);
  }

  std::span<const serving::Request> requests_;
  step_cost::EngineCost& cost_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<const serving::ScheduledStep*> steps_;  ///< by member; of the step that runs
  std::size_t coming_ = 0;                   ///< the next request to arrive
  bool steps_run_ = false;
  SimTime now_{};
  SimTime end_{};
  ServedLoad load_;
};

}  // namespace

ServedLoad serve_group(const serving::SchedulerSpec& spec, std::uint32_t members,
                       std::span<const serving::Request> requests,
                       step_cost::EngineCost& cost) {
  return Group(spec, members, requests, cost).run();
}

}  // namespace bubblesim::validate
