#include "sim/synth/device_efficiency.hpp"

#include <algorithm>
#include <filesystem>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency_file.hpp"

namespace bubblesim::synth {

CheckedResult<model::Efficiency> device_efficiency(const hardware::GpuSpec& gpu,
                                                   const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto devices,
                             hardware::read_device_folder(configs + "/devices"));
  const auto match = std::find_if(devices.begin(), devices.end(), [&](const auto& device) {
    return device.spec.name == gpu.name;
  });
  if (match != devices.end()) return model::find_efficiency(match->id, configs + "/efficiency");
  return tl::make_unexpected(Errors{
      {configs + "/efficiency", {}, "no file is known for " + gpu.name +
                                        "; expected \"efficiency\" to name one"}});
}

CheckedResult<model::Efficiency> device_efficiency(std::string_view asked,
                                                   const hardware::GpuSpec& gpu,
                                                   const std::string& configs) {
  const std::string id = std::filesystem::path(asked).stem().string();
  auto own = model::find_efficiency(id, configs + "/efficiency");
  if (own) return own;
  std::error_code code;
  // A file that is there and wrong is a fault of its own.
  if (std::filesystem::exists(configs + "/efficiency/" + id + ".json", code)) return own;
  auto described = device_efficiency(gpu, configs);
  return described ? described : own;
}

}  // namespace bubblesim::synth
