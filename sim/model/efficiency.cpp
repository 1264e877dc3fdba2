#include "sim/model/efficiency.hpp"

namespace bubblesim::model {

Precision computed_in(const Efficiency& efficiency, Precision precision) {
  if (precision == Precision::kFp32 || efficiency.peak_flops[index_of(precision)] > 0) {
    return precision;
  }
  if (precision == Precision::kFp8) return computed_in(efficiency, Precision::kFp16);
  return Precision::kFp32;
}

double peak_flops(const Efficiency& efficiency, Precision precision) {
  return efficiency.peak_flops[index_of(computed_in(efficiency, precision))];
}

}  // namespace bubblesim::model
