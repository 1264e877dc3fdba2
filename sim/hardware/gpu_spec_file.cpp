#include "sim/hardware/gpu_spec_file.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/data_file.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/nearest.hpp"
#include "sim/hardware/gpu_spec_reader.hpp"

namespace bubblesim::hardware {
namespace {

void report_shared_names(const std::vector<DeviceFile>& devices, Errors& errors) {
  std::map<std::string, std::string> owner;
  for (const DeviceFile& device : devices) {
    for (std::size_t i = 0; i < device.recorded_names.size(); ++i) {
      const auto [at, fresh] = owner.try_emplace(device.recorded_names[i], device.path);
      if (fresh) continue;
      errors.push_back(Error{device.path, "/recorded_names/value/" + std::to_string(i),
                             quote_found(device.recorded_names[i]) + " is also in " + at->second});
    }
  }
}

bool equal_names(std::string_view a, std::string_view b) {
  const auto lower = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

CheckedResult<DeviceFile> read_device_file(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(DeviceFile device, read_whole_file(path, read_constants));
  device.id = data_file_id(path);
  device.path = path;
  return device;
}

CheckedResult<GpuSpec> read_gpu_spec(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(DeviceFile device, read_device_file(path));
  return std::move(device.spec);
}

CheckedResult<std::vector<DeviceFile>> read_device_folder(const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(std::vector<DeviceFile> devices,
                             read_data_folder(folder, "device", read_device_file));
  Errors errors;
  report_shared_names(devices, errors);
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return devices;
}

CheckedResult<GpuSpec> find_gpu_spec(std::string_view name, const std::string& folder) {
  const auto path = find_data_file(name, folder, "device");
  if (path) return read_gpu_spec(*path);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto devices, read_device_folder(folder));
  if (const auto match = match_recorded_name(name, devices)) return (*match)->spec;
  return tl::make_unexpected(path.error());
}

Result<const DeviceFile*> match_recorded_name(std::string_view recorded,
                                              std::span<const DeviceFile> devices) {
  std::vector<std::string> names;
  for (const DeviceFile& device : devices) {
    for (const std::string& name : device.recorded_names) {
      if (equal_names(name, recorded)) return &device;
      names.push_back(name);
    }
  }
  return fail(unknown_name_message("recorded device", recorded, names));
}

}  // namespace bubblesim::hardware
