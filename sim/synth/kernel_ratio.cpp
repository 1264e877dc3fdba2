#include "sim/synth/kernel_ratio.hpp"

#include <array>
#include <utility>

#include "sim/model/roofline_ratio.hpp"

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

model::BoundBy bound_by(program::KernelClass kernel_class) {
  switch (kernel_class) {
    case program::KernelClass::kCompute: return model::BoundBy::kCompute;
    case program::KernelClass::kMemory: return model::BoundBy::kMemory;
    case program::KernelClass::kUnknown: return model::BoundBy::kUnknown;
  }
  return model::BoundBy::kUnknown;
}

}  // namespace

std::optional<Precision> precision_of(std::string_view kernel_name) {
  for (const auto& [word, precision] : kWords) {
    if (kernel_name.find(word) != std::string_view::npos) return precision;
  }
  return std::nullopt;
}

KernelRatio kernel_ratio(RooflineDevice from, RooflineDevice to) {
  return [from = std::move(from), to = std::move(to)](std::string_view name,
                                                      program::KernelClass kernel_class) {
    return model::roofline_ratio(bound_by(kernel_class),
                                 precision_of(name).value_or(Precision::kBf16),
                                 {from.gpu, from.efficiency}, {to.gpu, to.efficiency});
  };
}

}  // namespace bubblesim::synth
