#include "sim/synth/server_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/model/efficiency.hpp"
#include "sim/model/inference_work.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/synth/find_job.hpp"
#include "sim/synth/software_spec.hpp"

namespace bubblesim::synth {
namespace {

constexpr double kMostBlocks = std::numeric_limits<std::uint32_t>::max() / 2;

std::string megabytes(double bytes) { return std::to_string(std::llround(bytes * 1e-6)) + " MB"; }

/// A prompt that fills the budget, in each member, and logits of as many sequences as may run.
Result<model::ModelWork> largest_step(const model::ModelSpec& served_model,
                                      const model::Split& split, const ServerPlan& plan) {
  const serving::SchedulerSpec& spec = plan.scheduler;
  model::IterationSums sums;
  sums.prompts.add({spec.max_num_batched_tokens, 0});
  sums.tokens = spec.max_num_batched_tokens;
  sums.rows = std::min(spec.max_num_seqs, spec.max_num_batched_tokens);
  sums.group_tokens = plan.members * sums.tokens;
  return model::summed_iteration_work(served_model, split, plan.request.precision, sums);
}

/// Adds its weights, and the activations of its largest step as far as another model's are smaller:
/// passes of two models come one after another. Returns the bytes of a block of its cache.
Result<double> add_model(const model::ModelSpec& served_model, const model::Split& split,
                         ServerPlan& plan) {
  const model::Precision precision = plan.request.precision;
  BUBBLESIM_ASSIGN_OR_RETURN(const model::ModelWork work, largest_step(served_model, split, plan));
  plan.memory.weights += weight_bytes(work, precision);
  plan.memory.activations = std::max(plan.memory.activations, pass_bytes(work));
  return model::kv_cache_bytes(served_model, split, precision, plan.scheduler.block_size);
}

Result<void> add_members(std::uint32_t members, ServerPlan& plan) {
  if (members == 1) return {};
  const auto* network = std::get_if<model::TransformerSpec>(&plan.request.model.network);
  if (network == nullptr || !network->mixture) {
    return fail(plan.request.model.name + ": found \"data_parallel\" " +
                std::to_string(members) +
                " for a model without experts, whose members have nothing to exchange; expected "
                "no such key: a server of its own on each GPU does the same");
  }
  plan.members = members;
  plan.split.expert = plan.gpus();
  return {};
}

double cache_bytes(const CacheSize& size, double block, double gpu, double others) {
  if (const auto* blocks = std::get_if<CacheBlocks>(&size)) return blocks->blocks * block;
  if (const auto* bytes = std::get_if<Bytes>(&size)) return static_cast<double>(bytes->value);
  return std::get<MemoryShare>(size).share * gpu - others;
}

}  // namespace

Result<ServerPlan> plan_server(const InferenceRequest& request, const EngineSettings& settings) {
  ServerPlan plan{request, settings.scheduler, {}, 0, 1, settings.prefill};
  plan.split.tensor = settings.tensor;
  BUBBLESIM_RETURN_IF_ERROR(add_members(settings.members, plan));
  serving::SchedulerSpec& spec = plan.scheduler;
  spec.kv_blocks = 1;
  BUBBLESIM_RETURN_IF_ERROR(serving::check(spec));
  BUBBLESIM_ASSIGN_OR_RETURN(double block, add_model(request.model, plan.split, plan));
  if (const auto& drafts = std::get<Generation>(request.shape).speculation) {
    BUBBLESIM_ASSIGN_OR_RETURN(const double draft_block,
                               add_model(drafts->draft, plan.draft_split(), plan));
    block += draft_block;
  }
  const auto gpu = static_cast<double>(request.gpu.memory.value);
  const double others = plan.memory.weights + plan.memory.activations;
  const double cache = cache_bytes(settings.cache, block, gpu, others);
  const double blocks = std::floor(std::min(cache / block, kMostBlocks));
  if (blocks < 1) {
    return fail(request.model.name + ": weights and activations take " + megabytes(others) +
                " of " + megabytes(gpu) + ", which leaves the KV cache no block of " +
                megabytes(block) + "; expected a larger share or a smaller model");
  }
  spec.kv_blocks = static_cast<std::uint32_t>(blocks);
  spec.host_blocks = static_cast<std::uint32_t>(
      std::min(static_cast<double>(settings.host_cache.value) / block, kMostBlocks));
  plan.memory.kv_cache = blocks * block;
  plan.block_bytes = block;
  plan.layers = static_cast<std::uint32_t>(
      std::get<model::TransformerSpec>(request.model.network).layers);
  if (plan.memory.total() > gpu) {
    return fail(request.model.name + ": a server takes " + megabytes(plan.memory.total()) +
                " of " + megabytes(gpu) + "; expected a smaller KV cache or model");
  }
  return plan;
}

Bytes handover_bytes(const ServerPlan& plan, std::uint32_t prompt_tokens) {
  const std::uint32_t blocks = serving::blocks_of(plan.scheduler, prompt_tokens);
  return Bytes{static_cast<std::uint64_t>(std::llround(blocks * plan.block_bytes))};
}

Duration handover_writes(const ServerPlan& plan, std::uint32_t prompt_tokens) {
  const std::uint32_t blocks = serving::blocks_of(plan.scheduler, prompt_tokens);
  const bool contiguous = plan.prefill->writes == KvWrites::kContiguous;
  const std::int64_t writes = contiguous ? 1 : std::int64_t{2} * plan.layers * blocks;
  return writes * plan.prefill->write;
}

Duration handover_time(const ServerPlan& plan, std::uint32_t prompt_tokens) {
  const auto bytes = static_cast<double>(handover_bytes(plan, prompt_tokens).value);
  return handover_writes(plan, prompt_tokens) +
         Duration{std::llround(bytes / plan.prefill->link.value * 1e9)};
}

namespace {

CheckedResult<model::Efficiency> efficiency_of(const InferenceNames& names,
                                               const hardware::GpuSpec& gpu,
                                               const std::string& configs) {
  if (names.efficiency) return model::find_efficiency(*names.efficiency, configs + "/efficiency");
  return model::device_efficiency(gpu, configs);
}

Generation generation_of(const InferenceNames& names, const std::string& configs,
                         Errors& errors) {
  Generation out;
  out.prompt_tokens = names.prompt_tokens.value_or(1);
  out.output_tokens = names.output_tokens;
  out.decode = names.decode;
  if (!names.speculation) return out;
  DraftSpeculation& speculation = out.speculation.emplace();
  speculation.draft = take(model::find_model(names.speculation->draft, configs + "/models"),
                           errors);
  speculation.tree = names.speculation->tree;
  speculation.acceptance = names.speculation->acceptance;
  return out;
}

}  // namespace

model::TokenTree tree_of(std::uint32_t depth, std::uint32_t width) {
  model::TokenTree tree = model::chain(depth);
  if (depth > 0) tree.expansion[std::min<std::uint32_t>(depth, 3) - 1] = width;
  return tree;
}

CheckedResult<InferenceRequest> find_inference(const InferenceNames& names,
                                               const hardware::GpuSpec& gpu,
                                               const std::string& configs) {
  Errors errors;
  InferenceRequest out;
  out.model = take(model::find_model(names.model, configs + "/models"), errors);
  out.batch = names.batch;
  out.precision = names.precision;
  out.step_host = names.step_host;
  if (names.prompt_tokens || names.engine) {
    out.shape = generation_of(names, configs, errors);
  } else {
    out.shape = OnePass{names.sequence, names.attention};
  }
  out.gpu = gpu;
  out.efficiency = take(efficiency_of(names, gpu, configs), errors);
  if (errors.empty()) {
    auto wrong = precision_fault(out.efficiency, out.precision, gpu.name);
    if (wrong) errors.push_back({{}, "/precision", *std::move(wrong)});
  }
  out.software = take(find_software(names.software, configs + "/software"), errors);
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return out;
}

}  // namespace bubblesim::synth
