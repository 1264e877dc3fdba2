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
CheckedResult<hardware::GpuSpec> gpu_of(const BundleSettings& settings,
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
Result<std::uint32_t> blocks_that_fit(const ServingBundle& bundle, const ServerSetup& setup) {
  model::Split split;
  split.tensor = bundle.settings.layout.tensor;
  split.expert = bundle.settings.layout.expert_ranks();
  model::IterationSums token;
  token.singles.add({1, 1});
  token.tokens = token.rows = 1;
  token.group_tokens = bundle.settings.layout.data;
  BUBBLESIM_ASSIGN_OR_RETURN(const model::ModelWork work,
                             model::summed_iteration_work(setup.model, split, kWeights, token));
  BUBBLESIM_ASSIGN_OR_RETURN(
      const double block_bytes,
      model::kv_cache_bytes(setup.model, split, kWeights, setup.scheduler.block_size));
  const double share =
      bundle.settings.memory_utilization.value_or(setup.engine.gpu_memory_utilization);
  const double left = share * static_cast<double>(setup.gpu.memory.value) - weight_bytes(work) -
                      static_cast<double>(setup.engine.reserved.value);
  if (left < block_bytes) {
    return fail(bundle.folder, {}, "the weights of " + bundle.settings.model + " leave no room for "
                "a block of KV cache on " + setup.gpu.name);
  }
  return static_cast<std::uint32_t>(std::min(left / block_bytes, 4e9));
}

Result<void> set_scheduler(const ServingBundle& bundle, ServerSetup& setup) {
  const BundleSettings& settings = bundle.settings;
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
    BUBBLESIM_ASSIGN_OR_RETURN(blocks, blocks_that_fit(bundle, setup));
  }
  spec.kv_blocks = blocks - 1;  // one is the null block
  if (const auto sound = serving::check(spec); !sound) {
    return fail(bundle.folder, "meta.json", sound.error().message);
  }
  return {};
}

/// Members of a server step together because they exchange what their experts compute.
Result<void> check_members(const ServingBundle& bundle, const model::TransformerSpec& model) {
  const std::uint32_t members = bundle.settings.layout.data;
  if (members == 1 || model.mixture) return {};
  return fail(bundle.folder, "meta.json",
              "found data_parallel_size " + std::to_string(members) +
                  " for a model without experts, whose members have nothing to exchange; expected "
                  "1: each of them is a server of its own, to be recorded as a bundle of its own");
}

Result<void> check_requests(const ServingBundle& bundle, const serving::SchedulerSpec& spec) {
  for (const MeasuredRequest& measured : bundle.requests) {
    serving::Request request;
    request.prompt_tokens = measured.prompt_tokens;
    request.output_tokens = measured.output_tokens;
    const std::string request_text =
        "the request '" + measured.id + "' has " + std::to_string(measured.prompt_tokens) +
        " tokens of prompt and " + std::to_string(measured.output_tokens) + " of output";
    switch (serving::Scheduler::admissible(spec, request)) {
      case serving::ArrivalOutcome::kQueued: break;
      case serving::ArrivalOutcome::kLongerThanWindow:
        return fail(
            bundle.folder, "requests.jsonl",
            request_text + ", but the model's window is " + std::to_string(spec.max_model_len));
      case serving::ArrivalOutcome::kLargerThanCache:
        return fail(bundle.folder, "requests.jsonl",
                    request_text + ", but the whole KV cache holds " +
                        std::to_string(std::uint64_t{spec.kv_blocks} * spec.block_size));
      case serving::ArrivalOutcome::kLargerThanBudget:
        return fail(bundle.folder, "requests.jsonl",
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

CheckedResult<void> set_costs(const ServingBundle& bundle, const SetupRequest& request,
                              ServerSetup& setup) {
  if (request.layers) {
    setup.layers = request.layers;
    const auto rank =
        step_cost::tables_for(*setup.layers, setup.model, bundle.settings.layout.tensor);
    if (!rank) return fail(bundle.folder, "meta.json", rank.error().message);
    return {};
  }
  setup.steps = request.steps;
  BUBBLESIM_ASSIGN_OR_RETURN(setup.efficiency, efficiency_of(setup.gpu, request.configs));
  if (const auto able = step_cost::ModelTimes::check_work(setup.model, bundle.settings.layout);
      !able) {
    return tl::make_unexpected(able.error());
  }
  return {};
}

}  // namespace

const model::TransformerSpec& ServerSetup::transformer() const {
  return std::get<model::TransformerSpec>(model.network);
}

CheckedResult<ServerSetup> set_up_server(const ServingBundle& bundle,
                                         const SetupRequest& request) {
  ServerSetup setup;
  BUBBLESIM_ASSIGN_OR_RETURN(setup.gpu, gpu_of(bundle.settings, request));
  BUBBLESIM_ASSIGN_OR_RETURN(
      setup.model, model_of(bundle.settings.model, request.configs + "/models"));
  if (!std::holds_alternative<model::TransformerSpec>(setup.model.network)) {
    return fail(bundle.folder, "meta.json", "'" + bundle.settings.model + "' is no transformer");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(
      setup.engine, step_cost::find_engine(request.engine, request.configs + "/engines"));
  BUBBLESIM_RETURN_IF_ERROR(check_members(bundle, setup.transformer()));
  setup.capture_sizes = bundle.settings.capture_sizes.value_or(
      step_cost::vllm_capture_sizes(bundle.settings.max_num_seqs));
  BUBBLESIM_RETURN_IF_ERROR(set_costs(bundle, request, setup));
  BUBBLESIM_RETURN_IF_ERROR(set_scheduler(bundle, setup));
  BUBBLESIM_RETURN_IF_ERROR(check_requests(bundle, setup.scheduler));
  return setup;
}

}  // namespace bubblesim::validate
