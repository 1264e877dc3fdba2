#include "sim/validate/serving/serve_measured.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/json.hpp"
#include "sim/serving/scheduler.hpp"
#include "sim/step_cost/layer_tables.hpp"
#include "sim/step_cost/model_times.hpp"
#include "sim/step_cost/table_times.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::validate {
namespace {

constexpr CounterSpec kCacheComputed{
    "kv_cache_size_computed", Severity::kNotice,
    "runs whose number of KV blocks was not recorded; computed from memory, weights and what the "
    "engine reserves"};

constexpr CounterSpec kNoGraphs{
    "steps_without_graphs", Severity::kNotice,
    "runs whose engine captured no CUDA graphs: what it takes the host to launch each kernel is "
    "not in the simulated times"};

std::unique_ptr<step_cost::KernelTimes> kernel_times(const ServerSetup& setup,
                                                     const step_cost::ServerLayout& layout) {
  if (setup.layers) {
    return std::make_unique<step_cost::TableTimes>(**setup.layers->of_tensor(layout.tensor),
                                                   setup.transformer(), layout,
                                                   setup.gpu.sm_count);
  }
  const step_cost::ModelTimes model(setup.model, layout, setup.gpu, *setup.efficiency);
  if (!setup.steps) return std::make_unique<step_cost::ModelTimes>(model);
  return std::make_unique<step_cost::RecordedTimes>(model, *setup.steps, setup.capture_sizes,
                                                    layout.data);
}

std::string costs_of(const ServerSetup& setup) {
  if (setup.layers) return setup.layers->source;
  const std::string model = "bubblesim's kernel model";
  return setup.steps ? model + ", corrected by steps of " + setup.steps->source : model;
}

CounterSet counters_of(const ServerSetup& setup, const step_cost::KernelTimes& kernels) {
  CounterSet out;
  kernels.add_counters(out);
  if (setup.layers) {
    step_cost::count_tables(*setup.layers, setup.model, setup.gpu.name, out);
  }
  if (setup.steps && !setup.steps->gpu.empty() && setup.steps->gpu != setup.gpu.name) {
    out.add(step_cost::kRecordedOnOtherGpu);
  }
  if (setup.capture_sizes.empty()) out.add(kNoGraphs);
  if (setup.blocks_computed) out.add(kCacheComputed);
  return out;
}

std::int64_t ns(SimTime at) { return (at - kSimStart).count(); }

Json answer_of(const ServerSetup& setup, const ServedLoad& load, const CounterSet& counters) {
  Json out = {{"gpu", setup.gpu.name},
              {"step_times", costs_of(setup)},
              {"prefix_caching", setup.scheduler.enable_prefix_caching},
              {"steps", load.steps},
              {"preemptions", load.counts.preemptions},
              {"prefix_hit_tokens", load.counts.prefix_hit_tokens},
              {"counters", counters_object(counters)}};
  for (const SimulatedRequest& request : load.requests) {
    out["requests"].push_back({{"queued_ns", ns(request.queued)},
                               {"first_token_ns", ns(request.finished.first_token)},
                               {"last_token_ns", ns(request.finished.last_token)},
                               {"preemptions", request.finished.preemptions}});
  }
  return out;
}

CheckedResult<SetupRequest> setup_of(const ServeSources& sources) {
  SetupRequest out{sources.configs, sources.engine, {}, {}};
  if (!sources.layers.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(out.layers, step_cost::read_layers_at(sources.layers));
  }
  if (!sources.steps.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(out.steps, step_cost::read_steps_file(sources.steps));
  }
  return out;
}

}  // namespace

CheckedResult<Json> serve_measured(std::string_view settings, const MeasuredLoad& load,
                                   const ServeSources& sources) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document,
                             JsonDocument::parse(settings, "settings"));
  BUBBLESIM_ASSIGN_OR_RETURN(const ServerSettings server,
                             read_whole(document, read_server_settings));
  BUBBLESIM_ASSIGN_OR_RETURN(const SetupRequest request, setup_of(sources));
  BUBBLESIM_ASSIGN_OR_RETURN(const ServerSetup setup, set_up_server(server, load, request));
  const auto kernels = kernel_times(setup, server.layout);
  step_cost::EngineCost cost(*kernels, setup.transformer(), server.layout, setup.engine,
                             setup.capture_sizes);
  const ServedLoad served =
      serve_group(setup.scheduler, server.layout.data, load.requests, cost);
  return answer_of(setup, served, counters_of(setup, *kernels));
}

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
