#include "capture/substrate/nvml.hpp"

#include <dlfcn.h>

namespace bubblesim::capture::nvml {
namespace {

template <class Function>
bool bind(void* library, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

const char* bind_needed(void* library, Api& api) {
  if (!bind(library, api.init, "nvmlInit_v2")) return "nvmlInit_v2";
  if (!bind(library, api.shutdown, "nvmlShutdown")) return "nvmlShutdown";
  if (!bind(library, api.device_count, "nvmlDeviceGetCount_v2")) return "nvmlDeviceGetCount_v2";
  if (!bind(library, api.device_by_index, "nvmlDeviceGetHandleByIndex_v2"))
    return "nvmlDeviceGetHandleByIndex_v2";
  if (!bind(library, api.uuid, "nvmlDeviceGetUUID")) return "nvmlDeviceGetUUID";
  return nullptr;
}

void bind_wanted(void* library, Api& api) {
  bind(library, api.error_string, "nvmlErrorString");
  bind(library, api.name, "nvmlDeviceGetName");
  bind(library, api.driver_version, "nvmlSystemGetDriverVersion");
  bind(library, api.cores, "nvmlDeviceGetNumGpuCores");
  bind(library, api.compute_capability, "nvmlDeviceGetCudaComputeCapability");
  bind(library, api.memory, "nvmlDeviceGetMemoryInfo");
  bind(library, api.clock, "nvmlDeviceGetClockInfo");
  bind(library, api.max_clock, "nvmlDeviceGetMaxClockInfo");
  bind(library, api.power, "nvmlDeviceGetPowerUsage");
  bind(library, api.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  bind(library, api.temperature, "nvmlDeviceGetTemperature");
  bind(library, api.compute_mode, "nvmlDeviceGetComputeMode");
  bind(library, api.mig_mode, "nvmlDeviceGetMigMode");
  bind(library, api.persistence, "nvmlDeviceGetPersistenceMode");
  bind(library, api.throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
}

}  // namespace

Result<std::unique_ptr<Library>> Library::open(const std::string& path) {
  std::unique_ptr<Library> library(new Library);
  library->handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library->handle_ == nullptr)
    return fail(path, {}, "cannot be loaded; NVML comes with NVIDIA's driver");
  if (const char* missing = bind_needed(library->handle_, library->api_))
    return fail(path, {}, std::string("has no ") + missing);
  bind_wanted(library->handle_, library->api_);
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
