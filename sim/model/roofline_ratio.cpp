#include "sim/model/roofline_ratio.hpp"

#include <cmath>

#include "sim/base/time.hpp"
#include "sim/model/kernel_time.hpp"

namespace bubblesim::model {
namespace {

double sustained_flops(const TimedDevice& device, Precision precision) {
  const GemmEfficiency& gemm = device.efficiency.gemm;
  const bool single = computed_in(device.efficiency, precision) == Precision::kFp32;
  return peak_flops(device.efficiency, precision) *
         (single ? gemm.fp32_math_share : gemm.math_share);
}

double sustained_bandwidth(const TimedDevice& device) {
  return device.gpu.dram_bandwidth.value *
         device.efficiency.streams[index_of(KernelKind::kElementwise)].dram_share;
}

}  // namespace

double roofline_ratio(BoundBy bound, Precision precision, const TimedDevice& from,
                      const TimedDevice& to) {
  const double compute = sustained_flops(from, precision) / sustained_flops(to, precision);
  const double memory = sustained_bandwidth(from) / sustained_bandwidth(to);
  switch (bound) {
    case BoundBy::kCompute:
      return compute;
    case BoundBy::kMemory:
      return memory;
    case BoundBy::kUnknown:
      break;
  }
  return std::sqrt(compute * memory);
}

double roofline_ratio(const KernelWork& work, const TimedDevice& from, const TimedDevice& to) {
  return to_seconds(time_kernel(work, to.gpu, to.efficiency).duration) /
         to_seconds(time_kernel(work, from.gpu, from.efficiency).duration);
}

}  // namespace bubblesim::model
