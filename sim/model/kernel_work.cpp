#include "sim/model/kernel_work.hpp"

namespace bubblesim::model {

double bytes_of(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
    case Precision::kTf32:
      return 4.0;
    case Precision::kFp16:
    case Precision::kBf16:
      return 2.0;
    case Precision::kFp8:
      return 1.0;
  }
  return 4.0;
}

}  // namespace bubblesim::model
