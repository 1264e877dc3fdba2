#include "sim/measure/calibrate/spread.hpp"

#include <algorithm>

namespace bubblesim::measure {

double quantile(const std::vector<double>& ascending, double share) {
  if (ascending.empty()) return 0;
  const double place = share * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  const double part = place - static_cast<double>(below);
  return ascending[below] + part * (ascending[above] - ascending[below]);
}

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {values.size(), quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75)};
}

}  // namespace bubblesim::measure
