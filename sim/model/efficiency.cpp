#include "sim/model/efficiency.hpp"

namespace bubblesim::model {

Precision computed_in(const Efficiency& efficiency, Precision precision) {
  if (precision == Precision::kFp32 || efficiency.peak_flops[index_of(precision)] > 0) {
    return precision;
  }
  switch (precision) {
    case Precision::kFp8: return computed_in(efficiency, Precision::kBf16);
    case Precision::kBf16: return computed_in(efficiency, Precision::kFp16);
    default: return Precision::kFp32;
  }
}

double peak_flops(const Efficiency& efficiency, Precision precision) {
  return efficiency.peak_flops[index_of(computed_in(efficiency, precision))];
}

}  // namespace bubblesim::model
