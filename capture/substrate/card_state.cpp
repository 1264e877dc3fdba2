#include "capture/substrate/card_state.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>

#include "sim/base/dynamic_functions.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {
// The functions of NVML that read a card, found at run time, and the few types that they take.
//
// The types mirror NVIDIA's nvml.h (values and signatures from the NVML API reference, r580); none
// of these functions sets anything.
namespace nvml {

/// nvmlReturn_t.
enum ReturnCode : int { kSuccess = 0, kNotSupported = 3, kNotFound = 6, kDriverNotLoaded = 9 };

struct DeviceState;
using Device = DeviceState*;

inline constexpr unsigned kClockSm = 1;
inline constexpr unsigned kNameBytes = 96;
inline constexpr unsigned kUuidBytes = 96;
inline constexpr unsigned kVersionBytes = 80;

/// nvmlMemory_t, in bytes.
struct Memory {
  unsigned long long total, free, used;
};

// Name in the table; needed, or wanted: null if the library lacks it, and the value stays unknown;
// name in the library; arguments.
#define BUBBLESIM_NVML(CALL)                                                                      \
  CALL(init, needed, "nvmlInit_v2", ())                                                           \
  CALL(shutdown, needed, "nvmlShutdown", ())                                                      \
  CALL(device_count, needed, "nvmlDeviceGetCount_v2", (unsigned*))                                \
  CALL(device_by_index, needed, "nvmlDeviceGetHandleByIndex_v2", (unsigned, Device*))             \
  CALL(uuid, needed, "nvmlDeviceGetUUID", (Device, char*, unsigned bytes))                        \
  CALL(name, wanted, "nvmlDeviceGetName", (Device, char*, unsigned bytes))                        \
  CALL(driver_version, wanted, "nvmlSystemGetDriverVersion", (char*, unsigned bytes))             \
  CALL(cores, wanted, "nvmlDeviceGetNumGpuCores", (Device, unsigned* cores))                      \
  CALL(compute_capability, wanted, "nvmlDeviceGetCudaComputeCapability",                          \
       (Device, int* major, int* minor))                                                          \
  CALL(memory, wanted, "nvmlDeviceGetMemoryInfo", (Device, Memory*))                              \
  CALL(clock, wanted, "nvmlDeviceGetClockInfo", (Device, unsigned clock, unsigned* mhz))          \
  CALL(max_clock, wanted, "nvmlDeviceGetMaxClockInfo", (Device, unsigned clock, unsigned* mhz))   \
  CALL(power_limit, wanted, "nvmlDeviceGetEnforcedPowerLimit", (Device, unsigned* milliwatts))    \
  CALL(compute_mode, wanted, "nvmlDeviceGetComputeMode", (Device, unsigned* mode))                \
  CALL(mig_mode, wanted, "nvmlDeviceGetMigMode",                                                  \
       (Device, unsigned* current, unsigned* pending))                                            \
  CALL(persistence, wanted, "nvmlDeviceGetPersistenceMode", (Device, unsigned* enabled))

struct Api {
#define BUBBLESIM_NVML_CALL(name, presence, symbol, args) ReturnCode(*name) args = nullptr;
  BUBBLESIM_NVML(BUBBLESIM_NVML_CALL)
#undef BUBBLESIM_NVML_CALL
  const char* (*error_string)(ReturnCode) = nullptr;
};

}  // namespace nvml

namespace {

/// The name of an nvmlComputeMode_t; only old drivers have 1.
std::string compute_mode_name(unsigned mode) {
  static constexpr std::array<const char*, 4> kNames{"Default", "ExclusiveThread", "Prohibited",
                                                     "ExclusiveProcess"};
  return mode < kNames.size() ? kNames[mode] : "mode " + std::to_string(mode);
}
std::string switch_name(unsigned value) { return value != 0 ? "Enabled" : "Disabled"; }

template <class Function, class... Args>
std::optional<std::uint32_t> number(Function* function, Args... args) {
  unsigned value = 0;
  if (function == nullptr || function(args..., &value) != nvml::kSuccess) return std::nullopt;
  return value;
}

template <std::size_t kBytes, class Function, class... Args>
std::string text(Function* function, Args... args) {
  std::array<char, kBytes> buffer{};
  if (function == nullptr || function(args..., buffer.data(), kBytes - 1) != nvml::kSuccess)
    return {};
  return buffer.data();
}

template <class Name>
std::optional<std::string> named(std::optional<std::uint32_t> value, Name name) {
  if (!value) return std::nullopt;
  return name(*value);
}

std::optional<std::uint32_t> mig_of(const nvml::Api& api, nvml::Device device) {
  unsigned pending = 0;
  unsigned current = 0;
  if (api.mig_mode == nullptr || api.mig_mode(device, &current, &pending) != nvml::kSuccess)
    return std::nullopt;
  return current;
}

/// CUDA cores of an SM (NVIDIA's cuda-samples, Common/helper_cuda.h); 0: not known. NVML counts
/// cores, not SMs.
unsigned cores_of_sm(int major, int minor) {
  if (major < 5 || major > 12) return 0;
  const bool half = major == 7 || (major == 6 && minor == 0) || (major == 8 && minor == 0);
  return half ? 64 : 128;
}

std::optional<std::uint32_t> sm_count_of(const nvml::Api& api, nvml::Device device) {
  const auto cores = number(api.cores, device);
  int major = 0;
  int minor = 0;
  if (!cores || api.compute_capability == nullptr ||
      api.compute_capability(device, &major, &minor) != nvml::kSuccess) {
    return std::nullopt;
  }
  const unsigned of_sm = cores_of_sm(major, minor);
  if (of_sm == 0 || *cores % of_sm != 0) return std::nullopt;
  return *cores / of_sm;
}

CardState state_of(const nvml::Api& api, nvml::Device device) {
  CardState state;
  state.name = text<nvml::kNameBytes>(api.name, device);
  state.uuid = text<nvml::kUuidBytes>(api.uuid, device);
  state.driver = text<nvml::kVersionBytes>(api.driver_version);
  state.sm_count = sm_count_of(api, device);
  nvml::Memory memory{};
  if (api.memory != nullptr && api.memory(device, &memory) == nvml::kSuccess) {
    state.memory_bytes = memory.total;
    state.free_bytes = memory.free;
  }
  state.compute_mode = named(number(api.compute_mode, device), compute_mode_name);
  state.mig = named(mig_of(api, device), switch_name);
  state.persistence = named(number(api.persistence, device), switch_name);
  state.power_limit_mw = number(api.power_limit, device);
  state.max_sm_clock_mhz = number(api.max_clock, device, nvml::kClockSm);
  state.sm_clock_mhz = number(api.clock, device, nvml::kClockSm);
  return state;
}

void compare(std::vector<std::string>& changes, const char* what, const std::string& before,
             const std::string& after) {
  if (before != after)
    changes.push_back(fmt::format("{} was {}, is now {}", what, before, after));
}
void compare(std::vector<std::string>& changes, const char* what,
             const std::optional<std::string>& before, const std::optional<std::string>& after) {
  if (before && after) compare(changes, what, *before, *after);
}
void compare(std::vector<std::string>& changes, const char* what, const char* unit,
             std::optional<std::uint32_t> before, std::optional<std::uint32_t> after) {
  if (before && after)
    compare(changes, what, fmt::format("{} {}", *before, unit), fmt::format("{} {}", *after, unit));
}

}  // namespace

std::vector<std::string> setting_changes(const CardState& before, const CardState& after) {
  std::vector<std::string> changes;
  compare(changes, "GPU", before.uuid, after.uuid);
  compare(changes, "driver", before.driver, after.driver);
  compare(changes, "compute mode", before.compute_mode, after.compute_mode);
  compare(changes, "MIG", before.mig, after.mig);
  compare(changes, "persistence mode", before.persistence, after.persistence);
  compare(changes, "power limit", "mW", before.power_limit_mw, after.power_limit_mw);
  compare(changes, "highest SM clock", "MHz", before.max_sm_clock_mhz, after.max_sm_clock_mhz);
  return changes;
}

Result<void> settings_unchanged(const CardState& before, const CardState& after) {
  std::string all;
  for (const std::string& change : setting_changes(before, after))
    all += (all.empty() ? "" : "; ") + change;
  if (all.empty()) return {};
  return fail(before.name + " (" + before.uuid + "): settings changed during the run: " + all);
}

namespace {

/// An NVML that has been initialised; shut down with the object.
class NvmlReader final : public CardReader {
 public:
  ~NvmlReader() override {
    if (initialised_) (void)api_.shutdown();
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  [[nodiscard]] Result<void> load(const std::string& path) {
    handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) {
      return fail(path, {}, "cannot be loaded; NVML comes with NVIDIA's driver");
    }
    FunctionFinder bind(handle_);
#define BUBBLESIM_NVML_BIND(name, presence, symbol, args) bind.presence(api_.name, symbol);
    BUBBLESIM_NVML(BUBBLESIM_NVML_BIND)
#undef BUBBLESIM_NVML_BIND
    bind.wanted(api_.error_string, "nvmlErrorString");
    if (bind.missing() != nullptr) return fail(path, {}, std::string("has no ") + bind.missing());
    const nvml::ReturnCode status = api_.init();
    if (status != nvml::kSuccess) {
      const auto& text = api_.error_string;
      return fail(path, {}, "nvmlInit_v2 gave " + std::to_string(status) +
                                (text == nullptr ? "" : std::string(": ") + text(status)));
    }
    initialised_ = true;
    return {};
  }
  [[nodiscard]] Result<CardState> read(const std::string& device) const override {
    unsigned count = 0;
    if (api_.device_count(&count) != nvml::kSuccess) return fail("NVML does not count its GPUs");
    std::string there;
    for (unsigned index = 0; index < count; ++index) {
      nvml::Device handle = nullptr;
      if (api_.device_by_index(index, &handle) != nvml::kSuccess) continue;
      const std::string uuid = text<nvml::kUuidBytes>(api_.uuid, handle);
      const bool begins = device.starts_with("GPU-") && uuid.starts_with(device);
      if (begins || device == uuid || device == std::to_string(index)) {
        return state_of(api_, handle);
      }
      there += (there.empty() ? "" : ", ") + std::to_string(index) + " (" + uuid + ")";
    }
    return fail("no GPU '" + device + "'; there are: " + (there.empty() ? "none" : there));
  }

 private:
  void* handle_ = nullptr;
  bool initialised_ = false;
  nvml::Api api_;
};

}  // namespace

Result<std::unique_ptr<CardReader>> CardReader::open(const std::string& library) {
  auto reader = std::make_unique<NvmlReader>();
  BUBBLESIM_RETURN_IF_ERROR(reader->load(library));
  return reader;
}

}  // namespace bubblesim::capture
