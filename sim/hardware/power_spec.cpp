#include "sim/hardware/power_spec.hpp"

#include <algorithm>
#include <cmath>

namespace bubblesim::hardware {
namespace {

double voltage(const PowerSpec& spec, double mhz) {
  return 1 + spec.voltage_slope * std::max(0.0, mhz / spec.voltage_floor_mhz - 1);
}

int steps_of(const PowerSpec& spec) {
  return static_cast<int>(
      std::floor((spec.full_clock_mhz - spec.least_clock_mhz) / spec.clock_step_mhz));
}

}  // namespace

double dynamic_share(const PowerSpec& spec, double mhz) {
  const double relative = voltage(spec, mhz) / voltage(spec, spec.full_clock_mhz);
  return mhz / spec.full_clock_mhz * relative * relative;
}

double lowest_clock(const PowerSpec& spec) {
  return spec.full_clock_mhz - steps_of(spec) * spec.clock_step_mhz;
}

// s(f) rises with f: halving the steps between the least clock and the full one finds the highest
// that fits.
double clock_under(const PowerSpec& spec, double cap_w, double fixed_w, double following_w) {
  const auto fits = [&](int steps) {
    const double mhz = spec.full_clock_mhz - steps * spec.clock_step_mhz;
    return spec.idle_w + fixed_w + following_w * dynamic_share(spec, mhz) <= cap_w;
  };
  if (fits(0)) return spec.full_clock_mhz;
  int too_fast = 0;
  int slow = steps_of(spec);
  while (slow - too_fast > 1) {
    const int middle = (slow + too_fast) / 2;
    (fits(middle) ? slow : too_fast) = middle;
  }
  return spec.full_clock_mhz - slow * spec.clock_step_mhz;
}

}  // namespace bubblesim::hardware
