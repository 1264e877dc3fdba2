#include "sim/validate/serving/serve_measured.hpp"

#include <algorithm>
#include <cctype>
#include <memory>
#include <utility>
#include <variant>

#include "sim/base/check.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/json.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/inference_work.hpp"
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
  return std::make_unique<step_cost::RecordedTimes>(model, *setup.steps, setup.captured,
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
  if (setup.captured.sizes.empty()) out.add(kNoGraphs);
  if (setup.blocks_computed) out.add(kCacheComputed);
  return out;
}

std::int64_t ns(SimTime at) { return (at - kSimStart).count(); }

Json answer_of(const ServerSetup& setup, const ServedLoad& load, const CounterSet& counters) {
  Json out = {{"gpu", setup.gpu.name},
              {"step_times", costs_of(setup)},
              {"prefix_caching", setup.scheduler.enable_prefix_caching},
              {"steps", load.steps},
              {"preemptions", load.preemptions},
              {"prefix_hit_tokens", load.prefix_hit_tokens},
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
                             setup.captured);
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
    for (const auto& member : members_) {
      load_.preemptions += member->scheduler.counts().preemptions;
      load_.prefix_hit_tokens += member->scheduler.counts().prefix_hit_tokens;
    }
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

namespace {

constexpr model::Precision kWeights = model::Precision::kBf16;

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

/// The recorded name, else the profile's, else the label, whose lower case is a device's id.
CheckedResult<hardware::GpuSpec> gpu_of(const ServerSettings& settings,
                                        const SetupRequest& request) {
  std::string name = settings.gpu_name;
  if (name.empty() && request.layers) name = request.layers->gpu;
  if (name.empty()) name = lower_case(settings.gpu_label);
  return hardware::find_gpu_spec(name, request.configs + "/devices");
}

CheckedResult<model::ModelSpec> model_of(const std::string& name, const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto files, model::read_model_folder(folder));
  for (model::ModelFile& file : files) {
    const auto& names = file.spec.published_as;
    if (std::find(names.begin(), names.end(), name) != names.end()) return std::move(file.spec);
  }
  std::string known;
  for (const model::ModelFile& file : files) {
    for (const std::string& public_name : file.spec.published_as) {
      known += (known.empty() ? "" : ", ") + public_name;
    }
  }
  return fail(folder, {}, "no model is published as '" + name + "'; known: " + known);
}

double weight_bytes(const model::ModelWork& work) {
  double parameters = 0;
  for (const std::uint32_t kind : work.layers) {
    parameters += model::parameters_of(work.kinds[kind]);
  }
  return parameters * model::bytes_of(kWeights);
}

/// vLLM's sizing: what its share of the memory leaves beside weights and the rest.
Result<std::uint32_t> blocks_that_fit(const ServerSettings& settings, const ServerSetup& setup) {
  model::Split split;
  split.tensor = settings.layout.tensor;
  split.expert = settings.layout.expert_ranks();
  model::IterationSums token;
  token.singles.add({1, 1});
  token.tokens = token.rows = 1;
  token.group_tokens = settings.layout.data;
  BUBBLESIM_ASSIGN_OR_RETURN(const model::ModelWork work,
                             model::summed_iteration_work(setup.model, split, kWeights, token));
  BUBBLESIM_ASSIGN_OR_RETURN(
      const double block_bytes,
      model::kv_cache_bytes(setup.model, split, kWeights, setup.scheduler.block_size));
  const double share =
      settings.memory_utilization.value_or(setup.engine.gpu_memory_utilization);
  const double left = share * static_cast<double>(setup.gpu.memory.value) - weight_bytes(work) -
                      static_cast<double>(setup.engine.reserved.value);
  if (left < block_bytes) {
    return fail(settings.bundle, {}, "the weights of " + settings.model + " leave no room for "
                "a block of KV cache on " + setup.gpu.name);
  }
  return static_cast<std::uint32_t>(std::min(left / block_bytes, 4e9));
}

Result<void> set_scheduler(const ServerSettings& settings, ServerSetup& setup) {
  serving::SchedulerSpec& spec = setup.scheduler;
  spec = serving::vllm_settings();
  spec.max_num_seqs = settings.max_num_seqs;
  spec.max_num_batched_tokens = settings.max_num_batched_tokens;
  spec.max_model_len = settings.max_model_len.value_or(
      static_cast<std::uint32_t>(setup.transformer().max_sequence));
  spec.block_size = settings.block_size.value_or(spec.block_size);
  spec.enable_prefix_caching = settings.prefix_caching.value_or(spec.enable_prefix_caching);
  if (settings.async_scheduling) {
    spec.pacing = *settings.async_scheduling ? serving::Pacing::kOneAhead
                                             : serving::Pacing::kSynchronous;
  }
  if (settings.reserve_full_prompt) {
    spec.reserve = *settings.reserve_full_prompt ? serving::Reserve::kPrompt
                                                 : serving::Reserve::kChunk;
  }
  if (settings.chunked_prefill == false) spec.chunking = serving::Chunking::kWhole;
  spec.long_prefill_token_threshold =
      settings.long_prefill_token_threshold.value_or(spec.long_prefill_token_threshold);
  setup.blocks_computed = !settings.num_gpu_blocks;
  std::uint32_t blocks = 0;
  if (settings.num_gpu_blocks) {
    blocks = *settings.num_gpu_blocks;
  } else {
    BUBBLESIM_ASSIGN_OR_RETURN(blocks, blocks_that_fit(settings, setup));
  }
  spec.kv_blocks = blocks - 1;  // one is the null block
  if (const auto sound = serving::check(spec); !sound) {
    return fail(settings.bundle, "meta.json", sound.error().message);
  }
  return {};
}

/// Members of a server step together because they exchange what their experts compute.
Result<void> check_members(const ServerSettings& settings, const model::TransformerSpec& model) {
  const std::uint32_t members = settings.layout.data;
  if (members == 1 || model.mixture) return {};
  return fail(settings.bundle, "meta.json",
              "found data_parallel_size " + std::to_string(members) +
                  " for a model without experts, whose members have nothing to exchange; expected "
                  "1: each of them is a server of its own, to be recorded as a bundle of its own");
}

Result<void> check_requests(const ServerSettings& settings, const MeasuredLoad& load,
                            const serving::SchedulerSpec& spec) {
  for (std::size_t i = 0; i < load.requests.size(); ++i) {
    const serving::Request& request = load.requests[i];
    const std::string request_text =
        "the request '" + load.names[i] + "' has " + std::to_string(request.prompt_tokens) +
        " tokens of prompt and " + std::to_string(request.output_tokens) + " of output";
    switch (serving::Scheduler::admissible(spec, request)) {
      case serving::ArrivalOutcome::kQueued: break;
      case serving::ArrivalOutcome::kLongerThanWindow:
        return fail(
            settings.bundle, "requests.jsonl",
            request_text + ", but the model's window is " + std::to_string(spec.max_model_len));
      case serving::ArrivalOutcome::kLargerThanCache:
        return fail(settings.bundle, "requests.jsonl",
                    request_text + ", but the whole KV cache holds " +
                        std::to_string(std::uint64_t{spec.kv_blocks} * spec.block_size));
      case serving::ArrivalOutcome::kLargerThanBudget:
        return fail(settings.bundle, "requests.jsonl",
                    request_text + ", which exceed a step's budget");
    }
  }
  return {};
}

CheckedResult<void> set_costs(const ServerSettings& settings, const SetupRequest& request,
                              ServerSetup& setup) {
  if (request.layers) {
    setup.layers = request.layers;
    const auto rank =
        step_cost::tables_for(*setup.layers, setup.model, settings.layout.tensor);
    if (!rank) return fail(settings.bundle, "meta.json", rank.error().message);
    return {};
  }
  setup.steps = request.steps;
  BUBBLESIM_ASSIGN_OR_RETURN(setup.efficiency,
                             model::device_efficiency(setup.gpu, request.configs));
  if (const auto able = step_cost::ModelTimes::check_work(setup.model, settings.layout);
      !able) {
    return tl::make_unexpected(able.error());
  }
  return {};
}

constexpr Range<std::uint32_t> kCounts{1, 4'000'000'000};

std::optional<std::uint32_t> count_of(ObjectReader& object, std::string_view key) {
  if (!object.has(key)) return std::nullopt;
  return object.integer<std::uint32_t>(key, kCounts);
}

std::optional<bool> flag_of(ObjectReader& object, std::string_view key) {
  if (!object.has(key)) return std::nullopt;
  return object.flag(key);
}

step_cost::ServerLayout read_layout(ObjectReader& object) {
  step_cost::ServerLayout out;
  out.tensor = object.integer<std::uint32_t>("tensor", kCounts, out.tensor);
  out.data = object.integer<std::uint32_t>("data", kCounts, out.data);
  out.expert_parallel = object.flag("expert_parallel", out.expert_parallel);
  out.link.bandwidth = {object.number("link_bytes_per_s", {0, 1e18}, 0)};
  out.link.latency =
      Duration(object.integer<std::int64_t>("link_latency_ns", {0, 1'000'000'000'000}, 0));
  out.link.mesh =
      object.flag("fully_connected", false) ? model::GpuMesh::kFull : model::GpuMesh::kPartial;
  return out;
}

}  // namespace

ServerSettings read_server_settings(ObjectReader& object) {
  ServerSettings out;
  out.bundle = object.text("bundle");
  out.model = object.text("model");
  out.gpu_name = object.text("gpu_name", "");
  out.gpu_label = object.text("gpu_label", "");
  out.max_num_seqs = object.integer<std::uint32_t>("max_num_seqs", kCounts);
  out.max_num_batched_tokens = object.integer<std::uint32_t>("max_num_batched_tokens", kCounts);
  out.max_model_len = count_of(object, "max_model_len");
  out.num_gpu_blocks = count_of(object, "num_gpu_blocks");
  out.block_size = count_of(object, "block_size");
  out.prefix_caching = flag_of(object, "prefix_caching");
  out.async_scheduling = flag_of(object, "async_scheduling");
  out.reserve_full_prompt = flag_of(object, "reserve_full_prompt");
  if (object.has("memory_utilization")) {
    out.memory_utilization = object.number("memory_utilization", {0, 1});
  }
  out.chunked_prefill = flag_of(object, "chunked_prefill");
  out.long_prefill_token_threshold = count_of(object, "long_prefill_token_threshold");
  if (object.has("capture_sizes")) {
    out.capture_sizes = object.integers<std::uint32_t>("capture_sizes");
  }
  out.layout = read_layout(object);
  object.finish();
  return out;
}

const model::TransformerSpec& ServerSetup::transformer() const {
  return std::get<model::TransformerSpec>(model.network);
}

CheckedResult<ServerSetup> set_up_server(const ServerSettings& settings, const MeasuredLoad& load,
                                         const SetupRequest& request) {
  ServerSetup setup;
  BUBBLESIM_ASSIGN_OR_RETURN(setup.gpu, gpu_of(settings, request));
  BUBBLESIM_ASSIGN_OR_RETURN(
      setup.model, model_of(settings.model, request.configs + "/models"));
  if (!std::holds_alternative<model::TransformerSpec>(setup.model.network)) {
    return fail(settings.bundle, "meta.json", "'" + settings.model + "' is no transformer");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(
      setup.engine, step_cost::find_engine(request.engine, request.configs + "/engines"));
  BUBBLESIM_RETURN_IF_ERROR(check_members(settings, setup.transformer()));
  BUBBLESIM_RETURN_IF_ERROR(set_costs(settings, request, setup));
  BUBBLESIM_RETURN_IF_ERROR(set_scheduler(settings, setup));
  setup.captured = step_cost::vllm_graphs(setup.scheduler);
  if (settings.capture_sizes) setup.captured.sizes = *settings.capture_sizes;
  BUBBLESIM_RETURN_IF_ERROR(check_requests(settings, load, setup.scheduler));
  return setup;
}

}  // namespace bubblesim::validate
