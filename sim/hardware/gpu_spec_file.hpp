// Reads device files (configs/devices/*.json; each key is explained in configs/devices/README.md)
// and finds the file for a name. In a device file every constant is an object:
//
//   "sm_count": {"value": 132, "unit": "SMs", "source": "H100 data sheet"}
//   "time_slice": {"value": "1.024ms", "source": "NVIDIA open kernel modules, ..."}
//
// so that each number carries its unit (beside it, or inside the text) and its source. A constant
// without a source, without its unit or with another unit is a fault, and so is a missing one:
// nothing about a device is assumed in silence. All faults of a file are reported at once.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"

namespace bubblesim::hardware {

/// A device file as read.
struct DeviceFile {
  std::string path;
  GpuSpec spec;
  std::vector<std::string> recorded_names;  ///< names of this device in recordings
};

[[nodiscard]] CheckedResult<DeviceFile> read_device_file(const std::string& path);

/// All "*.json" of a folder, ordered by id. A recorded name in two files is a fault.
[[nodiscard]] CheckedResult<std::vector<DeviceFile>> read_device_folder(const std::string& folder);

/// `name` is a path (it has a "/" or ends in ".json"), else the id of a device file in `folder`
/// ("h100"), else a name that a profiler recorded.
[[nodiscard]] CheckedResult<DeviceFile> find_device_file(std::string_view name,
                                                         const std::string& folder);
[[nodiscard]] CheckedResult<GpuSpec> find_gpu_spec(std::string_view name,
                                                   const std::string& folder);

/// The device file that lists `recorded` ("NVIDIA H100 80GB HBM3") among its recorded names,
/// upper and lower case counting as equal. Never a guess: an unlisted name is a fault that names
/// the nearest. The pointer points into `devices`.
[[nodiscard]] Result<const DeviceFile*> match_recorded_name(std::string_view recorded,
                                                            std::span<const DeviceFile> devices);

/// Reads every constant; faults go to the reader's error list. Ends with root.finish().
[[nodiscard]] DeviceFile read_constants(ObjectReader& root);

}  // namespace bubblesim::hardware
