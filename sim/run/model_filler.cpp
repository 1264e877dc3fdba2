#include "sim/run/model_filler.hpp"

#include <cmath>
#include <filesystem>
#include <utility>
#include <variant>

#include "sim/synth/find_inference.hpp"
#include "sim/synth/inference_program.hpp"

namespace bubblesim::run {

CheckedResult<workload::Program> load_model_filler(FillerConfig& config,
                                                   const hardware::GpuSpec& device,
                                                   const std::string& device_folder) {
  const auto configs = std::filesystem::path(device_folder).parent_path().string();
  const auto& names = std::get<synth::InferenceNames>(config.program);
  BUBBLESIM_ASSIGN_OR_RETURN(const synth::InferenceRequest request,
                             synth::find_inference(names, device, configs));
  auto made = synth::inference_program(request);
  if (!made) {
    Error fault = made.error();
    fault.message = "filler \"" + config.name + "\": " + fault.message;
    return tl::make_unexpected(Errors{std::move(fault)});
  }
  if (!config.memory) {
    config.memory = Bytes{static_cast<std::uint64_t>(std::ceil(made->memory.total()))};
  }
  return std::move(made->program);
}

}  // namespace bubblesim::run
