#include "sim/synth/precision_check.hpp"

#include "sim/model/precision_names.hpp"

namespace bubblesim::synth {
namespace {

using model::Precision;

constexpr CounterSpec kBf16AsFp16{
    "precision_bf16_as_fp16", Severity::kNotice,
    "programs in bf16, which the device has no units for: computed in fp16 with loss scaling, as "
    "frameworks do"};
constexpr CounterSpec kBf16AsFp32{
    "precision_bf16_as_fp32", Severity::kNotice,
    "programs in bf16, which the device has no units for, nor for fp16: computed in fp32"};
constexpr CounterSpec kFp16AsFp32{
    "precision_fp16_as_fp32", Severity::kNotice,
    "programs in fp16, which the device has no units for: computed in fp32"};
constexpr CounterSpec kTf32AsFp32{
    "precision_tf32_as_fp32", Severity::kNotice,
    "programs in tf32, which the device has no units for: computed in fp32, as frameworks do"};

}  // namespace

std::optional<std::string> precision_fault(const model::Efficiency& efficiency,
                                           Precision precision, const std::string& device) {
  if (precision != Precision::kFp8 || model::computed_in(efficiency, precision) == precision) {
    return std::nullopt;
  }
  std::string has;
  for (const auto& [name, value] : model::kPrecisionNames) {
    if (efficiency.peak_flops[index_of(value)] <= 0) continue;
    has += (has.empty() ? "" : ", ") + std::string(name);
  }
  return "found fp8, which " + device + " has no units for; it has " + has;
}

void count_replaced_precision(const model::Efficiency& efficiency, Precision precision,
                              CounterSet& counters) {
  const Precision used = model::computed_in(efficiency, precision);
  if (used == precision) return;
  const bool single = used == Precision::kFp32;
  if (precision == Precision::kBf16) counters.add(single ? kBf16AsFp32 : kBf16AsFp16);
  if (precision == Precision::kFp16) counters.add(kFp16AsFp32);
  if (precision == Precision::kTf32) counters.add(kTf32AsFp32);
}

}  // namespace bubblesim::synth
