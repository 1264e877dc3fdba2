#include "sim/validate/error_summary.hpp"

#include <cmath>

namespace bubblesim::validate {

ErrorSummary summarise_errors(const std::vector<LabelledError>& errors) {
  ErrorSummary out;
  for (const LabelledError& labelled : errors) {
    ++out.rows;
    out.mean_absolute += std::abs(labelled.error);
    out.bias += labelled.error;
    if (out.rows > 1 && std::abs(labelled.error) <= std::abs(out.worst)) continue;
    out.worst = labelled.error;
    out.worst_label = labelled.label;
  }
  if (out.rows == 0) return out;
  out.mean_absolute /= static_cast<double>(out.rows);
  out.bias /= static_cast<double>(out.rows);
  return out;
}

}  // namespace bubblesim::validate
