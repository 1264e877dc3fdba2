// A budget of power that the GPUs of a node share, and the one clock that keeps it.
//
// At the end of each period the clock of all of them becomes the highest at which the mean work of
// that period, summed over the GPUs, keeps the budget. So a GPU that waits leaves watts to those
// that compute, and a filler in its bubbles takes them back. A GPU's own cap comes on top: the
// lower clock counts. Power exceeds the budget, as under a single GPU's governor (gpu_power.hpp),
// for a period when work grows, and periods that the lowest clock does not keep are counted.
//
// It reads what every GPU of the node did in a period: simulated events must run in one order over
// all of them (engine::Windows::kNever).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/run/gpu_power.hpp"

namespace bubblesim::run {

class NodePower {
 public:
  /// Preconditions: spec.power.known(), config.node_cap_w. Periods that begin before the end of the
  /// warm-up are not counted.
  NodePower(const hardware::GpuSpec& spec, const PowerConfig& config, SimTime warmup);

  /// Call before any time passes. `gpu` outlives this object; once this object is gone, no time may
  /// pass on it.
  void add(GpuPower& gpu);

  /// Ends the periods that have ended by now, on every GPU.
  void advance(SimTime now);

  /// Periods in the measured window in which the lowest clock exceeded the budget.
  [[nodiscard]] std::uint64_t periods_over_cap() const { return periods_over_cap_; }
  /// The highest mean of such a period; 0: there is none.
  [[nodiscard]] double over_cap_w() const { return over_cap_w_; }
  [[nodiscard]] std::size_t gpus() const { return gpus_.size(); }
  /// Over the measured window, summed over the GPUs; up to the last call.
  [[nodiscard]] double mean_w() const;

 private:
  void end_period();

  const hardware::PowerSpec& power_;
  double cap_w_;
  Duration period_;
  SimTime warmup_;
  std::vector<GpuPower*> gpus_;
  SimTime period_start_ = kSimStart;
  bool at_lowest_clock_ = false;
  std::uint64_t periods_over_cap_ = 0;
  double over_cap_w_ = 0;
};

}  // namespace bubblesim::run
