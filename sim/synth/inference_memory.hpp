// Device memory of an inference instance.
#pragma once

#include <cstdint>

#include "sim/base/result.hpp"
#include "sim/synth/inference_request.hpp"

namespace bubblesim::synth {

/// Bytes on the GPU. A draft model's are included.
struct InstanceMemory {
  double weights = 0;
  double kv_cache = 0;     ///< of the whole batch at its longest; no paging waste
  double activations = 0;  ///< the most that one layer needs at once: input, output, inner arrays
  [[nodiscard]] double total() const { return weights + kv_cache + activations; }
};

/// Fault: a request that the model cannot serve. Does not ask whether it fits.
[[nodiscard]] Result<InstanceMemory> instance_memory(const InferenceRequest& request);

/// Fault: the instance does not fit the GPU's memory; with the largest batch that does.
[[nodiscard]] Result<InstanceMemory> memory_that_fits(const InferenceRequest& request);

/// Weights in `precision`, each tensor once.
[[nodiscard]] double weight_bytes(const model::ModelWork& work, model::Precision precision);
/// The most that one layer of a pass needs at once.
[[nodiscard]] double pass_bytes(const model::ModelWork& work);

}  // namespace bubblesim::synth
