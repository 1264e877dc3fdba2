// What many errors come to. Plain numbers in, in whichever unit: a share, percent, points.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace bubblesim::validate {

/// An error with its sign, and what has it.
struct LabelledError {
  double error = 0;
  std::string label;
};

struct ErrorSummary {
  std::size_t rows = 0;
  double mean_absolute = 0;
  double bias = 0;          ///< the mean, with its sign
  double worst = 0;         ///< of the largest magnitude, with its sign
  std::string worst_label;  ///< of the first error that is so large
};

/// All zero where there is no error.
[[nodiscard]] ErrorSummary summarise_errors(const std::vector<LabelledError>& errors);

}  // namespace bubblesim::validate
