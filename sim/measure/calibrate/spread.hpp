// What many measurements of one thing say: their median and quartiles.
#pragma once

#include <cstddef>
#include <vector>

namespace bubblesim::measure {

struct Spread {
  std::size_t count = 0;
  double low = 0;     ///< first quartile
  double middle = 0;  ///< median
  double high = 0;    ///< third quartile
  friend bool operator==(const Spread&, const Spread&) = default;
};

/// The value below which this share of the ascending values lies, [0, 1]; between two values,
/// linear (Hyndman and Fan 1996, type 7). 0 where there are none.
[[nodiscard]] double quantile(const std::vector<double>& ascending, double share);

[[nodiscard]] Spread spread_of(std::vector<double> values);

}  // namespace bubblesim::measure
