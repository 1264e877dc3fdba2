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

tl::unexpected<Errors> fault(std::string file, std::string message) {
  return tl::make_unexpected(Errors{Error{std::move(file), {}, std::move(message)}});
}

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
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load_file(path));
  Errors errors;
  ObjectReader root = document.root(errors);
  DeviceFile device = read_constants(root);
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  device.id = data_file_id(path);
  device.path = path;
  return device;
}

CheckedResult<GpuSpec> read_gpu_spec(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(DeviceFile device, read_device_file(path));
  return std::move(device.spec);
}

CheckedResult<std::vector<DeviceFile>> read_device_folder(const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto files, list_data_files(folder, "device"));
  std::vector<DeviceFile> devices;
  Errors errors;
  for (const std::string& file : files) {
    auto device = read_device_file(file);
    if (device) {
      devices.push_back(std::move(*device));
    } else {
      errors.insert(errors.end(), device.error().begin(), device.error().end());
    }
  }
  report_shared_names(devices, errors);
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return devices;
}

CheckedResult<GpuSpec> find_gpu_spec(std::string_view name, const std::string& folder) {
  if (is_file_path(name)) return read_gpu_spec(std::string(name));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto files, list_data_files(folder, "device"));
  std::vector<std::string> ids;
  for (const std::string& file : files) {
    ids.push_back(data_file_id(file));
    if (ids.back() == name) return read_gpu_spec(file);
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const auto devices, read_device_folder(folder));
  if (const auto match = match_recorded_name(name, devices)) return (*match)->spec;
  return fault(folder, unknown_name_message("device", name, ids));
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
