// What tables of measurements have in common, whatever their form: columns that may be there or
// not, cells in which nothing was measured, names of devices, and columns that nobody reads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/csv_table.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::validate {

/// Columns that say on which device a row was measured; the first that is there counts.
inline constexpr std::array<std::string_view, 2> kDeviceColumns{"gpu", "device"};

/// The name of the first of these that the table has, in any case; empty: it has none.
[[nodiscard]] std::string optional_column(const CsvTable& table,
                                          std::span<const std::string_view> names);

/// Columns of the table that are none of these, in their order.
[[nodiscard]] std::vector<std::string> columns_besides(const CsvTable& table,
                                                       std::span<const std::string_view> read);

/// What a row lacks makes it a stated one; the first reason counts.
void keep_reason(std::string& reason, std::string because);

/// Nothing if the cell is blank or 0: then nothing was measured. Fault: text, a negative number.
[[nodiscard]] Result<std::optional<double>> measured_figure(const CsvTable& table, std::size_t row,
                                                            std::string_view column);

/// The count in a cell, or 1 and a reason if it is no whole number from 1 to `most`: the row is
/// then stated. Fault: text.
[[nodiscard]] Result<std::uint32_t> stated_count(const CsvTable& table, std::size_t row,
                                                 std::string_view column, std::uint32_t most,
                                                 std::string& reason);

/// Files of configs/devices by what tables call them, in any case.
using DeviceNames = std::map<std::string, std::string>;

/// Adds ids and recorded names of the files of `configs`/devices that are not named yet.
[[nodiscard]] CheckedResult<void> add_device_files(DeviceNames& names, const std::string& configs);

/// The file of the device that the row's device column names; empty: the cell is blank, or no file
/// stands for it, of which the row is stated.
[[nodiscard]] std::string measured_device(const CsvTable& table, std::size_t row,
                                          const DeviceNames& names, std::string& reason);

}  // namespace bubblesim::validate
