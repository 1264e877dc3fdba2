#include "sim/validate/error_summary.hpp"

#include <algorithm>
#include <cmath>

namespace bubblesim::validate {

ErrorSummary summarise_errors(const std::vector<LabelledError>& errors) {
  ErrorSummary out;
  for (const LabelledError& one : errors) {
    ++out.rows;
    out.mean_absolute += std::abs(one.error);
    out.bias += one.error;
    if (out.rows > 1 && std::abs(one.error) <= std::abs(out.worst)) continue;
    out.worst = one.error;
    out.worst_label = one.label;
  }
  if (out.rows == 0) return out;
  out.mean_absolute /= static_cast<double>(out.rows);
  out.bias /= static_cast<double>(out.rows);
  return out;
}

double share_within(const std::vector<LabelledError>& errors, double bound) {
  const auto within = std::count_if(errors.begin(), errors.end(), [&](const LabelledError& one) {
    return std::abs(one.error) <= bound;
  });
  return errors.empty() ? 0 : static_cast<double>(within) / static_cast<double>(errors.size());
}

}  // namespace bubblesim::validate
