// What a GPU draws, and what its clock does to time and power.
//
//   power    = idle + sum over running operations of their dynamic power
//   dynamic  = power at the full clock x (c s(f) + 1 - c)
//   s(f)     = f / F x (V(f) / V(F))^2,  V(f) = 1 + slope x max(0, f / floor - 1)
//   duration = duration at the full clock F x (b + (1 - b) F / f)
//
// f is the SM clock, c the part of a kernel's power that follows it (1, or `memory_clock_share`
// where DRAM bounds the kernel), b the part of its time that DRAM bounds (ContentionSpec). s(f) is
// the switching power C V^2 f of CMOS with a voltage that rises from a floor on; floor and slope
// are fitted to measured clocks and powers (tests/unit/sim/hardware/device_files_test.cpp). Idle
// power is taken as the same at every clock, copies draw nothing, and a collective draws as a
// kernel that DRAM bounds: links are not told apart.
#pragma once

namespace bubblesim::hardware {

struct PowerSpec {
  double idle_w = 0;               ///< 0: nothing is known of the device's power
  double limit_w = 0;              ///< of the board, as shipped
  double full_clock_mhz = 0;       ///< F
  double least_clock_mhz = 0;
  double clock_step_mhz = 0;
  double voltage_floor_mhz = 0;
  double voltage_slope = 0;
  double compute_kernel_w = 0;     ///< above idle, on all SMs at the full clock
  double memory_kernel_w = 0;
  double unknown_kernel_w = 0;
  double memory_clock_share = 0;   ///< [0, 1]

  [[nodiscard]] bool known() const { return idle_w > 0; }
};

/// s(f). Precondition: spec.known(), mhz > 0.
[[nodiscard]] double dynamic_share(const PowerSpec& spec, double mhz);

/// How much longer a kernel takes at this share of the full clock, (0, 1], if DRAM bounds this part
/// of its time.
[[nodiscard]] constexpr double clock_stretch(double memory_boundness, double clock) {
  return memory_boundness + (1 - memory_boundness) / clock;
}

/// The lowest clock that a whole number of steps below the full one gives.
[[nodiscard]] double lowest_clock(const PowerSpec& spec);

/// The clock, in steps below the full one, that is as high as can be while
/// idle + fixed_w + following_w x s(f) <= cap_w; the lowest one where none is low enough.
[[nodiscard]] double clock_under(const PowerSpec& spec, double cap_w, double fixed_w,
                                 double following_w);

}  // namespace bubblesim::hardware
