#include "sim/validate/serving/judge_serving.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "sim/base/nearest_rank.hpp"
#include "sim/step_cost/model_times.hpp"
#include "sim/step_cost/recorded_times.hpp"
#include "sim/step_cost/table_times.hpp"

namespace bubblesim::validate {
namespace {

constexpr CounterSpec kCacheComputed{
    "kv_cache_size_computed", Severity::kNotice,
    "runs whose number of KV blocks was not recorded; computed from memory, weights and what the "
    "engine reserves"};

constexpr CounterSpec kSharedUnknown{
    "prompts_shared_unknown", Severity::kNotice,
    "runs with a prefix cache whose prompts are not known (--prompts): none of their tokens is "
    "taken as cached"};

constexpr CounterSpec kNoGraphs{
    "steps_without_graphs", Severity::kNotice,
    "runs whose engine captured no CUDA graphs: what it takes the host to launch each kernel is "
    "not in the simulated times"};

constexpr std::array<std::string_view, 3> kTimes = {"ttft", "tpot", "latency"};
constexpr std::array<std::pair<std::string_view, double>, 4> kPercentiles = {
    {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}}};

/// LLMServingSim 2 on its own runs: bench/examples/*/validation/summary.txt at 5daddb2, the mean of
/// the fifteen absolute errors.
struct PublishedPeer {
  std::string_view label;
  double mean;
};
constexpr std::array<PublishedPeer, 2> kPeers = {
    {{"RTX4090/Llama-3.1-8B", 0.005}, {"RTXPRO6000/Llama-3.1-8B", 0.021}}};

std::optional<PeerError> peer_of(const std::string& label) {
  for (const PublishedPeer& peer : kPeers) {
    if (peer.label == label) return PeerError{"LLMServingSim 2", peer.mean};
  }
  return std::nullopt;
}

RequestLatencies measured_times(const MeasuredRequest& request) {
  RequestLatencies out;
  out.ttft = 1e3 * (request.first_token - request.queued);
  out.latency = 1e3 * (request.last_token - request.queued);
  if (request.output_tokens > 1) {
    out.tpot = 1e3 * (request.last_token - request.first_token) / (request.output_tokens - 1);
  }
  return out;
}

RequestLatencies simulated_times(const SimulatedRequest& request) {
  const serving::FinishedRequest& done = request.finished;
  RequestLatencies out;
  out.ttft = 1e3 * to_seconds(done.first_token - request.queued);
  out.latency = 1e3 * to_seconds(done.last_token - request.queued);
  if (const auto tpot = done.tpot()) out.tpot = 1e3 * to_seconds(*tpot);
  return out;
}

/// Values of one of kTimes, over all requests that have it.
std::vector<double> values_of(const std::vector<JudgedRequest>& requests, std::size_t time,
                              RequestLatencies JudgedRequest::*side) {
  std::vector<double> out;
  for (const JudgedRequest& request : requests) {
    const RequestLatencies& times = request.*side;
    if (time == 0) out.push_back(times.ttft);
    if (time == 1 && times.tpot) out.push_back(*times.tpot);
    if (time == 2) out.push_back(times.latency);
  }
  return out;
}

double mean_of_values(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::vector<ServingFigure> figures_of(const std::vector<JudgedRequest>& requests) {
  std::vector<ServingFigure> out;
  for (std::size_t time = 0; time < kTimes.size(); ++time) {
    auto measured = values_of(requests, time, &JudgedRequest::measured);
    auto simulated = values_of(requests, time, &JudgedRequest::simulated);
    if (measured.empty()) continue;
    const std::string name(kTimes[time]);
    out.push_back({name + "_mean", mean_of_values(measured), mean_of_values(simulated)});
    std::ranges::sort(measured);
    std::ranges::sort(simulated);
    for (const auto& [percentile, share] : kPercentiles) {
      out.push_back({name + "_" + std::string(percentile), interpolated_quantile(measured, share),
                     interpolated_quantile(simulated, share)});
    }
  }
  return out;
}

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

std::vector<JudgedRequest> judged_requests(const ServingBundle& bundle, const ServedLoad& load) {
  std::vector<JudgedRequest> out;
  for (std::size_t i = 0; i < bundle.requests.size(); ++i) {
    const MeasuredRequest& measured = bundle.requests[i];
    out.push_back({measured.id, measured.queued - bundle.requests[0].queued,
                   load.requests[i].finished.preemptions, measured_times(measured),
                   simulated_times(load.requests[i])});
  }
  return out;
}

ErrorSummary errors_of(const std::vector<ServingFigure>& figures) {
  std::vector<LabelledError> errors;
  for (const ServingFigure& figure : figures) errors.push_back({figure.error(), figure.name});
  return summarise_errors(errors);
}

}  // namespace

std::vector<serving::Request> requests_of(const ServingBundle& bundle) {
  std::vector<serving::Request> out;
  for (const MeasuredRequest& measured : bundle.requests) {
    serving::Request& request = out.emplace_back();
    request.number = out.size() - 1;
    request.arrival =
        SimTime(Duration(std::llround(1e9 * (measured.arrival - bundle.requests[0].arrival))));
    request.prompt_tokens = measured.prompt_tokens;
    request.output_tokens = measured.output_tokens;
    request.prefix = measured.shared;
  }
  return out;
}

CheckedResult<JudgedBundle> judge_bundle(const ServingBundle& bundle,
                                         const SetupRequest& request) {
  BUBBLESIM_ASSIGN_OR_RETURN(const ServerSetup setup, set_up_server(bundle, request));
  const step_cost::ServerLayout& layout = bundle.settings.layout;
  const auto kernels = kernel_times(setup, layout);
  step_cost::EngineCost cost(*kernels, setup.transformer(), layout, setup.engine,
                             setup.capture_sizes);
  JudgedBundle out;
  out.label = bundle.label;
  out.gpu = setup.gpu.name;
  out.costs = costs_of(setup);
  out.load = serve_group(setup.scheduler, layout.data, requests_of(bundle), cost);
  out.requests = judged_requests(bundle, out.load);
  out.figures = figures_of(out.requests);
  out.errors = errors_of(out.figures);
  out.peer = peer_of(bundle.label);
  kernels->add_counters(out.counters);
  if (setup.layers) {
    step_cost::count_tables(*setup.layers, setup.model, setup.gpu.name, out.counters);
  }
  if (setup.steps && !setup.steps->gpu.empty() && setup.steps->gpu != setup.gpu.name) {
    out.counters.add(step_cost::kRecordedOnOtherGpu);
  }
  out.counters.merge(bundle.settings.ignored);
  if (setup.capture_sizes.empty()) out.counters.add(kNoGraphs);
  if (setup.blocks_computed) out.counters.add(kCacheComputed);
  if (setup.scheduler.enable_prefix_caching && !bundle.prompts_known) {
    out.counters.add(kSharedUnknown);
  }
  return out;
}

}  // namespace bubblesim::validate
