// Monitors a filler that has its GPU to itself. Its passes with the same factor on their times are
// copies of the first one: that goes event by event, and a later one is a single event at its end,
// after which meters, requests and SM time are those of its events (tests/laws/domains), while the
// GPU's and the program's own counters, which nobody reads here, stand still. Passes within which
// meters are read go event by event, too.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/program/program.hpp"
#include "sim/run/gpu_node.hpp"
#include "sim/workload/service.hpp"

namespace bubblesim::run {

/// Whether no pass of the program depends on earlier ones.
[[nodiscard]] bool passes_are_alike(const program::Program& program);

class LoneFillerMonitor final : public FillerMonitor,
                                public workload::PassTaker,
                                public engine::EventHandler {
 public:
  /// Meters are read at the end of the instant in which the warm-up ends, and not again before
  /// `next_read`. All references outlive this.
  LoneFillerMonitor(GpuMeters& meters, FillerInstance& filler, const schedule::SharedGpu& gpu,
                    const SimTime& next_read);

  void on_op_started(workload::ProgramRun& watched, std::uint32_t op, SimTime now) override;
  void on_op_finished(const workload::OpRecord& finished) override;
  void on_pass_finished(workload::ProgramRun& watched, SimTime now) override;
  bool take_pass(SimTime now, double factor) override;
  void on_event(SimTime now) override;

 private:
  struct Pass {
    Duration length{};
    Duration busy{};            ///< at least one operation ran
    std::vector<double> sm_ns;  ///< Gpu::log_sm_ns
  };

  const schedule::SharedGpu& gpu_;
  const SimTime& next_read_;
  engine::EntityId entity_;
  std::map<double, Pass> known_;  ///< by factor
  const Pass* taken_ = nullptr;   ///< the present pass
  SimTime begin_{};               ///< of the present pass
  double factor_ = 1;
  // The present pass, event by event.
  Pass seen_;
  std::uint32_t running_ = 0;
  SimTime busy_since_{};
  SimTime last_op_end_{};
};

}  // namespace bubblesim::run
