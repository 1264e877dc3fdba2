#include "sim/validate/report.hpp"

namespace bubblesim::validate {

std::string_view outcome_name(RowOutcome outcome) {
  if (outcome == RowOutcome::kPredicted) return "predicted";
  return outcome == RowOutcome::kStated ? "stated" : "failed";
}

}  // namespace bubblesim::validate
