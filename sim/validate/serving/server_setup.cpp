#include "sim/validate/serving/server_setup.hpp"

#include <algorithm>
#include <cctype>
#include <utility>
#include <variant>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency_file.hpp"
#include "sim/model/inference_work.hpp"
#include "sim/model/model_file.hpp"
#include "sim/serving/scheduler.hpp"
#include "sim/step_cost/model_times.hpp"

namespace bubblesim::validate {
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

std::string id_of_gpu(const hardware::GpuSpec& gpu,
                      const std::vector<hardware::DeviceFile>& devices) {
  for (const hardware::DeviceFile& device : devices) {
    if (device.spec.name == gpu.name) return device.id;
  }
  return {};
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

/// The kernel model's constants: of the device of that name.
CheckedResult<model::Efficiency> efficiency_of(const hardware::GpuSpec& gpu,
                                               const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto devices,
                             hardware::read_device_folder(configs + "/devices"));
  return model::find_efficiency(id_of_gpu(gpu, devices), configs + "/efficiency");
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
  BUBBLESIM_ASSIGN_OR_RETURN(setup.efficiency, efficiency_of(setup.gpu, request.configs));
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
  setup.capture_sizes =
      settings.capture_sizes.value_or(step_cost::vllm_capture_sizes(setup.scheduler));
  BUBBLESIM_RETURN_IF_ERROR(check_requests(settings, load, setup.scheduler));
  return setup;
}

}  // namespace bubblesim::validate
