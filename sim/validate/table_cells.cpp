#include "sim/validate/table_cells.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/validate/job_name.hpp"

namespace bubblesim::validate {
namespace {

std::string file_named(const DeviceNames& names, std::string_view called) {
  for (const auto& [name, device] : names) {
    if (letters_of(name) == letters_of(called)) return device;
  }
  return {};
}

}  // namespace

std::string optional_column(const CsvTable& table, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    for (const std::string& column : table.columns()) {
      if (letters_of(column) == name) return column;
    }
  }
  return {};
}

std::vector<std::string> columns_besides(const CsvTable& table,
                                         std::span<const std::string_view> read) {
  std::vector<std::string> out;
  for (const std::string& column : table.columns()) {
    if (std::find(read.begin(), read.end(), column) == read.end()) out.push_back(column);
  }
  return out;
}

void keep_reason(std::string& reason, std::string because) {
  if (reason.empty()) reason = std::move(because);
}

Result<std::optional<double>> measured_figure(const CsvTable& table, std::size_t row,
                                              std::string_view column) {
  const auto value = table.figure(row, column);
  if (value && *value > 0) return value;
  if (table.text(row, column).empty() || value == 0.0) return std::optional<double>{};
  return table.fault(row, column, "a number above 0");
}

Result<std::uint32_t> stated_count(const CsvTable& table, std::size_t row, std::string_view column,
                                   std::uint32_t most, std::string& reason) {
  const std::string expected = "a whole number from 1 to " + std::to_string(most);
  const std::string text(table.text(row, column));
  const auto value = table.figure(row, column);
  if (!value && !text.empty()) return table.fault(row, column, expected);
  if (value && *value >= 1 && *value <= most && *value == std::floor(*value)) {
    return static_cast<std::uint32_t>(*value);
  }
  keep_reason(reason, std::string(column) + ": found \"" + text + "\"; expected " + expected);
  return 1;
}

CheckedResult<void> add_device_files(DeviceNames& names, const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto files, hardware::read_device_folder(configs + "/devices"));
  for (const hardware::DeviceFile& file : files) {
    std::vector<std::string> called = file.recorded_names;
    called.push_back(file.id);
    for (const std::string& name : called) {
      if (file_named(names, name).empty()) names[name] = file.id;
    }
  }
  return {};
}

std::string measured_device(const CsvTable& table, std::size_t row, const DeviceNames& names,
                            std::string& reason) {
  const std::string called(table.text(row, optional_column(table, kDeviceColumns)));
  if (called.empty()) return {};
  std::string out = file_named(names, called);
  if (out.empty()) keep_reason(reason, "no device file stands for " + called);
  return out;
}

}  // namespace bubblesim::validate
