#include "sim/synth/inference_request.hpp"

#include <algorithm>
#include <string>

namespace bubblesim::synth {
namespace {

Result<InstanceMemory> memory_of(const InferenceRequest& request, const OnePass& shape) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      const model::ModelWork work,
      model::forward_work(request.model, {}, request.precision, request.batch, shape.sequence,
                          shape.attention));
  return InstanceMemory{weight_bytes(work, request.precision), 0, pass_bytes(work)};
}

// The memory of one model of a generating instance: prompts, then `cached` tokens a sequence.
Result<InstanceMemory> memory_of(const InferenceRequest& request,
                                 const model::ModelSpec& served_model, std::uint64_t prompt_tokens,
                                 double cached) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      const model::ModelWork prompt,
      model::prefill_work(served_model, {}, request.precision, request.batch, prompt_tokens));
  BUBBLESIM_ASSIGN_OR_RETURN(
      const double cache,
      model::kv_cache_bytes(served_model, {}, request.precision, cached * request.batch));
  return InstanceMemory{weight_bytes(prompt, request.precision), cache, pass_bytes(prompt)};
}

Result<InstanceMemory> memory_of(const InferenceRequest& request, const Generation& shape) {
  const std::uint64_t prompt = shape.prompt_tokens;
  double cached = static_cast<double>(prompt) + static_cast<double>(shape.output_tokens);
  if (!shape.speculation) return memory_of(request, request.model, prompt, cached);
  const DraftSpeculation& speculation = *shape.speculation;
  BUBBLESIM_ASSIGN_OR_RETURN(const std::uint64_t tree, model::token_count(speculation.tree));
  cached += static_cast<double>(tree);
  BUBBLESIM_ASSIGN_OR_RETURN(InstanceMemory memory,
                             memory_of(request, request.model, prompt, cached));
  BUBBLESIM_ASSIGN_OR_RETURN(const InstanceMemory draft,
                             memory_of(request, speculation.draft, prompt, cached));
  BUBBLESIM_ASSIGN_OR_RETURN(
      const model::ModelWork verify,
      model::verify_work(request.model, {}, request.precision, request.batch, prompt,
                         speculation.tree));
  memory.weights += draft.weights;
  memory.kv_cache += draft.kv_cache;
  memory.activations = std::max({memory.activations, draft.activations, pass_bytes(verify)});
  return memory;
}

bool fits(const InferenceRequest& request, const InstanceMemory& memory) {
  return memory.total() <= static_cast<double>(request.gpu.memory.value);
}

// The largest batch that fits; 0: none.
std::uint32_t largest_batch(InferenceRequest request) {
  std::uint32_t fitting = 0;
  std::uint32_t too_large = request.batch;
  while (too_large - fitting > 1) {
    request.batch = fitting + (too_large - fitting) / 2;
    const auto memory = instance_memory(request);
    (memory && fits(request, *memory) ? fitting : too_large) = request.batch;
  }
  return fitting;
}

std::string gigabytes(double bytes) {
  const auto tenths = static_cast<std::uint64_t>(bytes / 1e8 + 0.5);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GB";
}

}  // namespace

double weight_bytes(const model::ModelWork& work, model::Precision precision) {
  double elements = 0;
  for (const std::uint32_t kind : work.layers) elements += model::parameters_of(work.kinds[kind]);
  return elements * model::bytes_of(precision);
}

double pass_bytes(const model::ModelWork& work) {
  double most = 0;
  double input = 0;
  for (const std::uint32_t kind : work.layers) {
    const model::LayerWork& layer = work.kinds[kind];
    most = std::max(most, input + layer.working_bytes + layer.output_bytes);
    input = layer.output_bytes;
  }
  return most;
}

Result<InstanceMemory> instance_memory(const InferenceRequest& request) {
  return std::visit([&](const auto& shape) { return memory_of(request, shape); }, request.shape);
}

Result<InstanceMemory> memory_that_fits(const InferenceRequest& request) {
  BUBBLESIM_ASSIGN_OR_RETURN(const InstanceMemory memory, instance_memory(request));
  if (fits(request, memory)) return memory;
  const std::uint32_t batch = largest_batch(request);
  return fail(request.model.name + ": an instance takes " + gigabytes(memory.total()) + " (" +
              gigabytes(memory.weights) + " weights, " + gigabytes(memory.kv_cache) +
              " KV cache, " + gigabytes(memory.activations) + " activations) of " +
              gigabytes(static_cast<double>(request.gpu.memory.value)) + "; " +
              (batch > 0 ? "a batch of " + std::to_string(batch) + " fits"
                         : std::string("no batch fits")));
}

}  // namespace bubblesim::synth
