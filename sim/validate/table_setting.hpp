// Settings of measured tables: configs/validation/*.json, named after the table's file.
#pragma once

#include <string>

#include "sim/base/result.hpp"
#include "sim/validate/training_rows.hpp"

namespace bubblesim::validate {

/// `name` is a path (it has a "/" or ends in ".json"), else the id of a file in
/// `configs`/validation.
[[nodiscard]] CheckedResult<TableSetting> find_setting(const std::string& name,
                                                       const std::string& configs);

/// The setting that a table is read with unless another is asked for: the one of its own name,
/// else the one whose form and size of jobs are the table's. Fault: neither.
[[nodiscard]] CheckedResult<TableSetting> setting_for(const CsvTable& table,
                                                      const std::string& configs);

}  // namespace bubblesim::validate
