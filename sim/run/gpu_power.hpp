// The power of a simulated GPU, and the clock that keeps it below a cap.
//
// Operations draw power by hardware/power_spec.hpp from their start to their end, including
// collectives that wait: by class and by the share of the SMs that they cover (their blocks over
// the GPU's SMs, at most 1). If they cover more than all SMs together, each draws less in
// proportion, so that a GPU never draws more than one kernel on all SMs.
//
// The governor: at the end of each period the clock becomes the highest at which the mean work of
// that period keeps the cap. So power exceeds a cap for a period when work grows. If even the
// lowest clock exceeds the cap, the period is counted. Work that changes with the periods may
// exceed the cap even on average (unmet_config.hpp reports it). Periods end between events: the
// meter handles ended periods at its next call, at the latest when a kernel is submitted.
//
// Power is in whole milliwatts and times are whole nanoseconds, so that energies do not depend on
// how often they are read. The meter belongs to one GPU's domain; it shares at most a budget with
// others of its node (NodePower).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/time.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/program/program.hpp"
#include "sim/run/run_config.hpp"

namespace bubblesim::run {

/// A sum of milliwatts times nanoseconds, exact for any run.
class EnergySum {
 public:
  /// Precondition: the product of the two is below 9e18, for example 10 s at 900 kW.
  void add(std::int64_t milliwatts, Duration time);
  [[nodiscard]] double joules() const {
    return static_cast<double>(joules_) + static_cast<double>(picojoules_) * 1e-12;
  }

 private:
  std::int64_t joules_ = 0;
  std::int64_t picojoules_ = 0;  ///< below a joule
};

/// The power of an operation above idle while it is alone on its SMs at the full clock.
struct OpDraw {
  std::int64_t following_mw = 0;  ///< the part that follows the clock
  std::int64_t fixed_mw = 0;
  std::int64_t cover_ppm = 0;     ///< of the GPU's SMs
};

/// Means over a period, in W.
struct PeriodWork {
  double mean_w = 0;       ///< including idle power
  double fixed_w = 0;      ///< above idle, independent of the clock
  double following_w = 0;  ///< above idle, following the clock, scaled to the full clock

  PeriodWork& operator+=(const PeriodWork& other);
};

class NodePower;

class GpuPower final : public gpu::Governor {
 public:
  /// Precondition: spec.power.known(). Energies and the peak count from `warmup` on.
  GpuPower(const hardware::GpuSpec& spec, const PowerConfig& config, SimTime warmup);

  double clock_at(SimTime now) override {
    advance(now);
    return mhz_ / spec_.power.full_clock_mhz;
  }

  /// An operation of the client starts or resumes; ended(): it ends or stands still. Calls come in
  /// order of time.
  void started(ClientId client, const program::Program& program, std::uint32_t op, SimTime now);
  void ended(ClientId client, const program::Program& program, std::uint32_t op, SimTime now);
  /// Lets time pass; on the other GPUs, too, if periods of a shared budget have ended.
  void advance(SimTime now);

  /// From now on `node` ends this GPU's periods. Call before any time passes.
  void share_budget(NodePower& node) { node_ = &node; }
  /// Lets time pass on this GPU alone. Precondition: no period of a shared budget ends earlier.
  void pass(SimTime now);
  [[nodiscard]] const PeriodWork& last_period() const { return last_period_; }
  /// Bounds the clock until the end of the present period.
  void limit_clock(double mhz);

  [[nodiscard]] double clock_mhz() const { return mhz_; }
  /// Counted up to the last call.
  [[nodiscard]] observe::PowerUse use() const;
  /// Energy above idle of a client's operations.
  [[nodiscard]] double energy_of(ClientId client) const;
  /// The power since the last call, or since the start, regardless of the warm-up.
  [[nodiscard]] observe::UsagePower take_interval(SimTime now);

 private:
  struct Client {
    OpDraw running;
    std::int64_t draws_mw = 0;  ///< present power above idle
    EnergySum energy;
  };

  void change(ClientId client, const OpDraw& draw, int sign, SimTime now);
  void integrate(SimTime to);
  void end_period();
  [[nodiscard]] bool misses_cap() const;
  void set_draws();

  const hardware::GpuSpec& spec_;
  PowerConfig config_;
  NodePower* node_ = nullptr;      ///< null: no budget is shared
  SimTime warmup_;
  std::vector<Client> clients_;
  double mhz_;
  std::int64_t total_mw_ = 0;      ///< present power
  std::int64_t following_mw_ = 0;  ///< the part that follows the clock, at the full clock
  std::int64_t fixed_mw_ = 0;
  SimTime last_ = kSimStart;       ///< time up to which power is counted
  SimTime period_start_ = kSimStart;
  EnergySum period_energy_, period_following_, period_fixed_;
  PeriodWork last_period_;
  EnergySum energy_, interval_energy_;
  EnergySum clock_time_, interval_clock_time_;  ///< kHz times ns
  SimTime interval_start_ = kSimStart;
  double peak_w_ = 0;
  std::uint64_t periods_over_cap_ = 0;  ///< at the lowest clock, in the measured window
  double over_cap_w_ = 0;               ///< the highest mean power of such a period
};

// A budget of power that the GPUs of a node share, and the one clock that keeps it.
//
// At the end of each period the clock of all of them becomes the highest at which the mean work of
// that period, summed over the GPUs, keeps the budget. So a waiting GPU leaves watts to computing
// ones, and a filler in its bubbles uses them itself. A GPU's own cap comes on top: the lower clock
// counts. Power exceeds the budget, as under a single GPU's governor (gpu_power.hpp), for a period
// when work grows, and periods that the lowest clock does not keep are counted.
//
// It reads the work of every GPU of the node in a period, so that simulated events must run in one
// order over all of them (engine::Windows::kNever).

class NodePower {
 public:
  /// Preconditions: spec.power.known(), config.node_cap_w. Periods that begin in the warm-up are
  /// not counted.
  NodePower(const hardware::GpuSpec& spec, const PowerConfig& config, SimTime warmup);

  /// Call before any time passes. `gpu` outlives this, and no time passes on it after this object's
  /// end.
  void add(GpuPower& gpu);

  /// Ends the periods that are over by now, on every GPU.
  void advance(SimTime now);

  /// Periods in the measured window in which the lowest clock exceeded the budget.
  [[nodiscard]] std::uint64_t periods_over_cap() const { return periods_over_cap_; }
  /// The highest mean power of a period that exceeded the budget; 0: none.
  [[nodiscard]] double over_cap_w() const { return over_cap_w_; }
  [[nodiscard]] std::size_t gpus() const { return gpus_.size(); }
  /// Mean power of all GPUs together, from the end of the warm-up to the last call.
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
