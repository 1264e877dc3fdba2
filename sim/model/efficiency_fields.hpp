// Inside of efficiency files and fits: every number of an Efficiency by its path in the file.
#pragma once

#include <span>
#include <string_view>

#include "sim/model/efficiency.hpp"

namespace bubblesim::model {

struct EfficiencyField {
  std::string_view path;  ///< "gemm/math_share"
  std::string_view unit;
  double low;             ///< least value that a file or a fit may give
  double high;
  double& (*value)(Efficiency&);
};

/// All fields, in the order of a file.
[[nodiscard]] std::span<const EfficiencyField> efficiency_fields();

}  // namespace bubblesim::model
