#include "sim/measure/calibrate/part_fit.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/divide.hpp"
#include "sim/gpu/contention.hpp"
#include "sim/schedule/gpu_plan.hpp"

namespace bubblesim::measure {
namespace {

constexpr int kRounds = 4;
constexpr double kCoarse = 2e-2;
constexpr double kFine = 1e-3;

double squares(const std::vector<PartTime>& parts, const hardware::GpuSpec& spec) {
  const gpu::Contention contention(spec.contention, spec.sm_count, spec.part);
  double sum = 0;
  for (const PartTime& part : parts) {
    const double share = static_cast<double>(part.sms) / spec.sm_count;
    const gpu::Confinement confined{share, share, 1 / (share * part.waves)};
    const double modelled = part.waves / contention.rate({}, 0, part.kernel_class, confined);
    const double error = modelled / part.relative - 1;
    sum += error * error;
  }
  return sum;
}

/// The best value of one constant in a range, the other as it is.
void improve(const std::vector<PartTime>& parts, hardware::GpuSpec& spec,
             double hardware::PartSpec::*constant, double least, double most, double step) {
  double best = spec.part.*constant;
  double error = squares(parts, spec);
  for (double value = least; value <= most + step / 2; value += step) {
    spec.part.*constant = value;
    const double tried = squares(parts, spec);
    if (tried >= error) continue;
    error = tried;
    best = value;
  }
  spec.part.*constant = best;
}

void improve_around(const std::vector<PartTime>& parts, hardware::GpuSpec& spec,
                    double hardware::PartSpec::*constant, double least, double most) {
  improve(parts, spec, constant, least, most, kCoarse);
  const double found = spec.part.*constant;
  improve(parts, spec, constant, std::max(least, found - kCoarse), std::min(most, found + kCoarse),
          kFine);
}

}  // namespace

std::uint32_t sms_of(std::uint32_t percentage, const hardware::GpuSpec& spec) {
  return std::min(spec.sm_count, schedule::sm_cap(percentage, spec));
}

double relative_waves(std::uint64_t blocks, std::uint32_t sms, const hardware::GpuSpec& spec) {
  return static_cast<double>(divide_up(blocks, sms)) /
         static_cast<double>(divide_up(blocks, spec.sm_count));
}

double part_error(const std::vector<PartTime>& parts, const hardware::GpuSpec& spec) {
  return std::sqrt(squares(parts, spec) / static_cast<double>(parts.size()));
}

PartFit fit_parts(const std::vector<PartTime>& parts, hardware::GpuSpec spec) {
  spec.part = {0.5, 1.2};
  for (int round = 0; round < kRounds; ++round) {
    improve_around(parts, spec, &hardware::PartSpec::dram_saturating_sms, 0.01, 1);
    improve_around(parts, spec, &hardware::PartSpec::dark_clock_gain, 1, 2);
  }
  return {spec.part, part_error(parts, spec)};
}

}  // namespace bubblesim::measure
