// The functions of NVML that read a card, found at run time, and the few types that they take.
//
// The types mirror NVIDIA's nvml.h (values and signatures from the NVML API reference, r580); none
// of these functions sets anything.
#pragma once

#include <memory>
#include <string>

#include "sim/base/result.hpp"

namespace bubblesim::capture::nvml {

/// nvmlReturn_t.
enum ReturnCode : int { kSuccess = 0, kNotSupported = 3, kNotFound = 6, kDriverNotLoaded = 9 };

struct DeviceState;
using Device = DeviceState*;

enum Clock : unsigned { kClockSm = 1, kClockMemory = 2 };
inline constexpr unsigned kTemperatureGpu = 0;
inline constexpr unsigned kNameBytes = 96;
inline constexpr unsigned kUuidBytes = 96;
inline constexpr unsigned kVersionBytes = 80;

/// nvmlMemory_t, in bytes.
struct Memory {
  unsigned long long total, free, used;
};

/// A null pointer: the library lacks this function, and the value stays unknown.
struct Api {
  ReturnCode (*init)() = nullptr;
  ReturnCode (*shutdown)() = nullptr;
  const char* (*error_string)(ReturnCode) = nullptr;
  ReturnCode (*device_count)(unsigned*) = nullptr;
  ReturnCode (*device_by_index)(unsigned, Device*) = nullptr;
  ReturnCode (*name)(Device, char*, unsigned bytes) = nullptr;
  ReturnCode (*uuid)(Device, char*, unsigned bytes) = nullptr;
  ReturnCode (*driver_version)(char*, unsigned bytes) = nullptr;
  ReturnCode (*cores)(Device, unsigned* cores) = nullptr;
  ReturnCode (*compute_capability)(Device, int* major, int* minor) = nullptr;
  ReturnCode (*memory)(Device, Memory*) = nullptr;
  ReturnCode (*clock)(Device, unsigned clock, unsigned* mhz) = nullptr;
  ReturnCode (*max_clock)(Device, unsigned clock, unsigned* mhz) = nullptr;
  ReturnCode (*power)(Device, unsigned* milliwatts) = nullptr;
  ReturnCode (*power_limit)(Device, unsigned* milliwatts) = nullptr;
  ReturnCode (*temperature)(Device, unsigned sensor, unsigned* celsius) = nullptr;
  ReturnCode (*compute_mode)(Device, unsigned* mode) = nullptr;
  ReturnCode (*mig_mode)(Device, unsigned* current, unsigned* pending) = nullptr;
  ReturnCode (*persistence)(Device, unsigned* enabled) = nullptr;
  ReturnCode (*throttle_reasons)(Device, unsigned long long* reasons) = nullptr;
};

/// An NVML that has been initialised; shut down with the object.
class Library {
 public:
  /// Faults: no such library; a library without the functions of every NVML; no driver.
  [[nodiscard]] static Result<std::unique_ptr<Library>> open(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  [[nodiscard]] const Api& api() const { return api_; }

 private:
  Library() = default;
  void* handle_ = nullptr;
  bool initialised_ = false;
  Api api_;
};

}  // namespace bubblesim::capture::nvml
