// The power that a GPU draws, and how its SM clock changes time and power.
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
// power is taken as the same at every clock, copies as drawing none, and a collective as drawing
// the power of a kernel that DRAM bounds, whatever its links.
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

/// The factor on a kernel's time if the clock is `clock` times the full one, (0, 1], and DRAM
/// bounds the share `memory_boundness` of its time.
[[nodiscard]] constexpr double clock_stretch(double memory_boundness, double clock) {
  return memory_boundness + (1 - memory_boundness) / clock;
}

/// The lowest clock that is a whole number of steps below the full one.
[[nodiscard]] double lowest_clock(const PowerSpec& spec);

/// The highest clock, a whole number of steps below the full one, at which
/// idle + fixed_w + following_w x s(f) <= cap_w; lowest_clock() if even that exceeds the cap.
[[nodiscard]] double clock_under(const PowerSpec& spec, double cap_w, double fixed_w,
                                 double following_w);

}  // namespace bubblesim::hardware
