#include "sim/synth/roofline_ratio.hpp"

#include <array>
#include <cmath>
#include <utility>

namespace bubblesim::synth {
namespace {

using model::Precision;

// The first word found decides: "bf16" stands before "f16", which it contains.
constexpr std::array<std::pair<std::string_view, Precision>, 14> kWords{{
    {"bf16", Precision::kBf16},
    {"bfloat16", Precision::kBf16},
    {"e4m3", Precision::kFp8},
    {"fp8", Precision::kFp8},
    {"tf32", Precision::kTf32},
    {"s1688", Precision::kTf32},
    {"fp16", Precision::kFp16},
    {"f16", Precision::kFp16},
    {"half", Precision::kFp16},
    {"hgemm", Precision::kFp16},
    {"h884", Precision::kFp16},
    {"s884", Precision::kFp16},
    {"sgemm", Precision::kFp32},
    {"ffma", Precision::kFp32},
}};

double math_rate(const RooflineDevice& device, Precision precision) {
  const model::GemmEfficiency& gemm = device.efficiency.gemm;
  const bool cuda_cores =
      model::computed_in(device.efficiency, precision) == Precision::kFp32;
  return model::peak_flops(device.efficiency, precision) *
         (cuda_cores ? gemm.fp32_math_share : gemm.math_share);
}

double memory_rate(const RooflineDevice& device) {
  return device.gpu.dram_bandwidth.value *
         device.efficiency.streams[model::index_of(model::KernelKind::kElementwise)].dram_share;
}

}  // namespace

std::optional<Precision> precision_of(std::string_view kernel_name) {
  for (const auto& [word, precision] : kWords) {
    if (kernel_name.find(word) != std::string_view::npos) return precision;
  }
  return std::nullopt;
}

KernelRatio roofline_ratio(RooflineDevice from, RooflineDevice to) {
  return [from = std::move(from), to = std::move(to)](std::string_view name,
                                                      gpu::KernelClass kernel_class) {
    const Precision precision = precision_of(name).value_or(Precision::kBf16);
    const double compute = math_rate(from, precision) / math_rate(to, precision);
    const double memory = memory_rate(from) / memory_rate(to);
    switch (kernel_class) {
      case gpu::KernelClass::kCompute: return compute;
      case gpu::KernelClass::kMemory: return memory;
      case gpu::KernelClass::kUnknown: return std::sqrt(compute * memory);
    }
    return memory;
  };
}

}  // namespace bubblesim::synth
