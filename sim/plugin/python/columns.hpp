// Tables on their way to pandas: a list of (name, kind, values, missing), a column each.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/observe/result_rows.hpp"

namespace bubblesim::plugin::python {

namespace py = pybind11;

/// kind "number": float64, NaN where missing; "integer": int64, and a bool array of what is
/// missing or None; "text": a list of str or None.
[[nodiscard]] py::tuple number_column(const std::string& name, std::vector<double> values);
[[nodiscard]] py::tuple integer_column(const std::string& name,
                                       const std::vector<std::optional<std::int64_t>>& values);
[[nodiscard]] py::tuple text_column(const std::string& name, py::list values);

/// The columns of OUTPUTS.md over rows that outlive the call.
[[nodiscard]] py::list result_columns_of(const std::vector<const observe::ResultRow*>& rows);

}  // namespace bubblesim::plugin::python
