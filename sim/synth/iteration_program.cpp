#include "sim/synth/iteration_program.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "sim/model/inference_work.hpp"
#include "sim/synth/pass_writer.hpp"
#include "sim/synth/precision_check.hpp"

namespace bubblesim::synth {
namespace {

constexpr std::uint64_t kContextStep = 256;
constexpr std::uint64_t kFirstPrompt = 16;
constexpr std::uint64_t kPromptStep = 256;
constexpr std::uint64_t kMostThreads = 4096;

std::vector<std::uint64_t> prompt_buckets(std::uint64_t most) {
  std::vector<std::uint64_t> buckets;
  for (std::uint64_t tokens = kFirstPrompt; tokens < most;
       tokens += std::min(tokens, kPromptStep)) {
    buckets.push_back(tokens);
  }
  buckets.push_back(most);
  return buckets;
}

std::vector<std::uint32_t> sequence_buckets(std::uint32_t most) {
  std::vector<std::uint32_t> buckets;
  for (std::uint64_t count = 1; count < most; count *= 2) {
    buckets.push_back(static_cast<std::uint32_t>(count));
  }
  buckets.push_back(most);
  return buckets;
}

workload::IterationTable table_of(const InferenceRequest& request, const Generation& shape) {
  workload::IterationTable table;
  const std::uint64_t all = shape.prompt_tokens * request.batch;
  table.prompt_tokens = prompt_buckets(
      std::min(all, std::max(shape.prompt_tokens, kPromptBatch)));
  table.sequences = sequence_buckets(request.batch);
  table.context_step = kContextStep;
  const std::uint64_t longest = shape.prompt_tokens + shape.output_tokens;
  table.contexts = static_cast<std::uint32_t>(longest / kContextStep + 1);
  table.length = {shape.prompt_tokens, shape.output_tokens};
  return table;
}

// Prompts as they come: whole ones, and a shorter last one.
std::vector<model::SequenceState> prompts_of(std::uint64_t tokens, std::uint64_t length) {
  std::vector<model::SequenceState> prompts(tokens / length, model::SequenceState{length, 0});
  if (tokens % length != 0) prompts.push_back({tokens % length, 0});
  return prompts;
}

Result<void> write(PassWriter& passes, const InferenceRequest& request, const Generation& shape,
                   const workload::IterationTable& table) {
  for (const std::uint64_t tokens : table.prompt_tokens) {
    const auto prompts = prompts_of(tokens, shape.prompt_tokens);
    BUBBLESIM_ASSIGN_OR_RETURN(
        const model::ModelWork work,
        model::iteration_work(request.model, {}, request.precision, prompts));
    passes.copy_to_device(kTokenBytes * static_cast<double>(tokens));
    passes.writer().pause(request.step_host);
    BUBBLESIM_RETURN_IF_ERROR(passes.pass_and_result(
        work, DecodeMode::kEager, kTokenBytes * static_cast<double>(prompts.size())));
    passes.writer().end_thread("prompts of " + std::to_string(tokens) + " tokens");
  }
  const std::uint64_t longest = shape.prompt_tokens + shape.output_tokens - 1;
  for (const std::uint32_t count : table.sequences) {
    for (std::uint64_t context = 0; context < table.contexts; ++context) {
      const std::uint64_t middle = context * kContextStep + kContextStep / 2;
      BUBBLESIM_ASSIGN_OR_RETURN(
          const model::ModelWork work,
          model::decode_work(request.model, {}, request.precision, count,
                             std::min(middle, longest)));
      passes.writer().pause(request.step_host);
      BUBBLESIM_RETURN_IF_ERROR(
          passes.pass_and_result(work, shape.decode, kTokenBytes * count));
      passes.writer().end_thread("decode " + std::to_string(count) + " at " +
                                 std::to_string(middle));
    }
  }
  return {};
}

Result<void> check_batching(const InferenceRequest& request) {
  const auto* shape = std::get_if<Generation>(&request.shape);
  if (shape == nullptr) return fail("continuous batching of one pass; expected a generation");
  if (shape->speculation) return fail("continuous batching with speculation; expected either");
  if (request.batch == 0) return fail("a batch of 0 requests; expected at least 1");
  if (shape->prompt_tokens == 0 || shape->output_tokens == 0) {
    return fail("a prompt or an output of 0 tokens; expected at least 1");
  }
  const workload::IterationTable table = table_of(request, *shape);
  if (table.threads() > kMostThreads) {
    return fail("continuous batching with " + std::to_string(table.threads()) +
                " kinds of iterations; expected at most " + std::to_string(kMostThreads) +
                ": fewer sequences or shorter ones");
  }
  return {};
}

// Weights, the largest iteration's activations, and the cache.
Result<InstanceMemory> memory_of(const InferenceRequest& request, const Generation& shape,
                                 std::uint64_t most_prompt, std::optional<double> kv_cache) {
  BUBBLESIM_ASSIGN_OR_RETURN(InstanceMemory memory, instance_memory(request));
  BUBBLESIM_ASSIGN_OR_RETURN(
      const model::ModelWork prompts,
      model::iteration_work(request.model, {}, request.precision,
                            prompts_of(most_prompt, shape.prompt_tokens)));
  memory.activations = pass_bytes(prompts);
  if (kv_cache) memory.kv_cache = std::min(memory.kv_cache, *kv_cache);
  if (memory.total() > static_cast<double>(request.gpu.memory.value)) {
    return fail(request.model.name + ": a continuously batched instance takes " +
                std::to_string(std::llround(memory.total() * 1e-6)) + " MB of " +
                std::to_string(request.gpu.memory.value / 1'000'000) +
                "; expected a smaller KV cache, batch or model");
  }
  return memory;
}

}  // namespace

Result<IterationProgram> iteration_program(const InferenceRequest& request,
                                           std::optional<double> kv_cache) {
  BUBBLESIM_RETURN_IF_ERROR(check_batching(request));
  const auto& shape = std::get<Generation>(request.shape);
  IterationProgram out;
  out.table = table_of(request, shape);
  BUBBLESIM_ASSIGN_OR_RETURN(
      out.memory, memory_of(request, shape, out.table.prompt_tokens.back(), kv_cache));
  BUBBLESIM_ASSIGN_OR_RETURN(const double token,
                             model::kv_cache_bytes(request.model, {}, request.precision, 1));
  out.table.cache_tokens = static_cast<std::uint64_t>(out.memory.kv_cache / token);
  if (out.table.cache_tokens < shape.prompt_tokens + shape.output_tokens) {
    return fail(request.model.name + ": a KV cache of " + std::to_string(out.table.cache_tokens) +
                " tokens; expected at least the " +
                std::to_string(shape.prompt_tokens + shape.output_tokens) + " of one request");
  }
  PassWriter passes(request);
  BUBBLESIM_RETURN_IF_ERROR(write(passes, request, shape, out.table));
  out.program = passes.writer().finish();
  count_replaced_precision(request.efficiency, request.precision, out.program.counters);
  return out;
}

}  // namespace bubblesim::synth
