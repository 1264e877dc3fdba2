// Everything that an inference service is made of, read from the files of configs that it names.
#pragma once

#include <string>

#include "sim/base/result.hpp"
#include "sim/synth/inference_names.hpp"
#include "sim/synth/inference_request.hpp"

namespace bubblesim::synth {

/// `configs` holds models/, devices/, efficiency/ and software/. Without an efficiency by name, the
/// one that is called as the file of `gpu` is. All names that are not found are reported at once.
[[nodiscard]] CheckedResult<InferenceRequest> find_inference(const InferenceNames& names,
                                                             const hardware::GpuSpec& gpu,
                                                             const std::string& configs);

}  // namespace bubblesim::synth
