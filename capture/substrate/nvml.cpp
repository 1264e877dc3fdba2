#include "capture/substrate/nvml.hpp"

#include <dlfcn.h>

#include "sim/base/dynamic_functions.hpp"

namespace bubblesim::capture::nvml {
namespace {

void bind_all(FunctionFinder& bind, Api& api) {
  bind.needed(api.init, "nvmlInit_v2");
  bind.needed(api.shutdown, "nvmlShutdown");
  bind.needed(api.device_count, "nvmlDeviceGetCount_v2");
  bind.needed(api.device_by_index, "nvmlDeviceGetHandleByIndex_v2");
  bind.needed(api.uuid, "nvmlDeviceGetUUID");
  bind.wanted(api.error_string, "nvmlErrorString");
  bind.wanted(api.name, "nvmlDeviceGetName");
  bind.wanted(api.driver_version, "nvmlSystemGetDriverVersion");
  bind.wanted(api.cores, "nvmlDeviceGetNumGpuCores");
  bind.wanted(api.compute_capability, "nvmlDeviceGetCudaComputeCapability");
  bind.wanted(api.memory, "nvmlDeviceGetMemoryInfo");
  bind.wanted(api.clock, "nvmlDeviceGetClockInfo");
  bind.wanted(api.max_clock, "nvmlDeviceGetMaxClockInfo");
  bind.wanted(api.power, "nvmlDeviceGetPowerUsage");
  bind.wanted(api.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  bind.wanted(api.temperature, "nvmlDeviceGetTemperature");
  bind.wanted(api.compute_mode, "nvmlDeviceGetComputeMode");
  bind.wanted(api.mig_mode, "nvmlDeviceGetMigMode");
  bind.wanted(api.persistence, "nvmlDeviceGetPersistenceMode");
  bind.wanted(api.throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
}

}  // namespace

Result<std::unique_ptr<Library>> Library::open(const std::string& path) {
  std::unique_ptr<Library> library(new Library);
  library->handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library->handle_ == nullptr)
    return fail(path, {}, "cannot be loaded; NVML comes with NVIDIA's driver");
  FunctionFinder bind(library->handle_);
  bind_all(bind, library->api_);
  if (bind.missing() != nullptr) return fail(path, {}, std::string("has no ") + bind.missing());
  const ReturnCode status = library->api_.init();
  if (status != kSuccess) {
    const auto& text = library->api_.error_string;
    return fail(path, {}, "nvmlInit_v2 gave " + std::to_string(status) +
                              (text == nullptr ? "" : std::string(": ") + text(status)));
  }
  library->initialised_ = true;
  return library;
}

Library::~Library() {
  if (initialised_) (void)api_.shutdown();
  if (handle_ != nullptr) ::dlclose(handle_);
}

}  // namespace bubblesim::capture::nvml
