// What watches the program of one client on a simulated GPU: it tells the policy, the GPU's meters
// and the timeline what happens, a filler's service when a pass ends, the run's goal when an
// iteration does.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/engine/conductor.hpp"
#include "sim/observe/activity_meter.hpp"
#include "sim/observe/timeline.hpp"
#include "sim/observe/usage_series.hpp"
#include "sim/run/filler_instance.hpp"
#include "sim/run/gpu_power.hpp"
#include "sim/schedule/shared_gpu.hpp"
#include "sim/workload/program_run.hpp"

namespace bubblesim::run {

/// What is measured of a GPU, by all of its clients.
struct GpuMeters {
  void started(observe::Activity what, SimTime now) {
    activity.started(what, now);
    if (usage) usage->started(what, now);
  }
  void ended(observe::Activity what, SimTime now) {
    activity.ended(what, now);
    if (usage) usage->ended(what, now);
  }

  GpuId gpu{};
  SimTime warmup{};
  observe::TimelineRecorder* timeline = nullptr;  ///< null: not drawn
  std::optional<observe::UsageSeries> usage{};    ///< nothing: usage over time was not asked for
  std::optional<GpuPower> power{};                ///< nothing: not metered
  observe::ActivityMeter activity{warmup};
};

/// Ends a simulation when every rank has done so many iterations; nothing: it never does.
class IterationGoal {
 public:
  IterationGoal(std::optional<std::uint64_t> iterations, std::size_t ranks)
      : iterations_(iterations), ranks_left_(ranks) {}

  /// A rank that `engine` drives has done so many.
  void on_iteration(std::uint64_t done, engine::Engine& engine);
  /// Iterations that a rank which has done so many still has to do; nothing: it has no goal ahead.
  [[nodiscard]] std::optional<std::uint64_t> left(std::uint64_t done) const;

 private:
  std::optional<std::uint64_t> iterations_;
  std::size_t ranks_left_;
};

class ClientMonitor : public schedule::ClientWatch {
 public:
  void on_op_started(workload::ProgramRun& run, std::uint32_t op, SimTime now) override;
  void on_op_paused(workload::ProgramRun& run, std::uint32_t op, SimTime now) override;
  void on_op_resumed(workload::ProgramRun& run, std::uint32_t op, SimTime now) override;
  void on_op_finished(const workload::OpRecord& record) override;

  workload::ProgramRun* run = nullptr;  ///< that it watches, once it is there

 protected:
  /// `filler`: null for training.
  ClientMonitor(GpuMeters& meters, ClientId client, FillerInstance* filler)
      : meters_(meters), client_(client), filler_(filler) {}
  [[nodiscard]] observe::Activity activity_of(const program::Op& op) const;

  GpuMeters& meters_;
  ClientId client_;  ///< the policy's
  FillerInstance* filler_;

 private:
  void record(const workload::ProgramRun& watched, std::uint32_t op, observe::SliceKind kind,
              SimTime until);

  std::unordered_map<std::uint32_t, NameId> timeline_names_;  ///< by the program's NameId
  std::unordered_map<std::uint32_t, SimTime> since_;  ///< what each operation does now; timelines
};

class TrainingMonitor final : public ClientMonitor {
 public:
  /// `goal` outlives this.
  TrainingMonitor(GpuMeters& meters, const program::Program& rank, IterationGoal& goal)
      : ClientMonitor(meters, ClientId{0}, nullptr), goal_(goal),
        least_iteration_(workload::least_iteration(rank)) {}

  void on_iteration(workload::ProgramRun& watched, std::uint32_t index, SimTime now) override;
  /// The earliest instant at which the rank may reach the goal; max(): it has none ahead.
  [[nodiscard]] SimTime earliest_goal(SimTime now) const;

  std::vector<Duration> iterations;  ///< times of finished ones

 private:
  IterationGoal& goal_;
  Duration least_iteration_;
  SimTime last_iteration_end_ = kSimStart;
};

class FillerMonitor final : public ClientMonitor {
 public:
  FillerMonitor(GpuMeters& meters, FillerInstance& filler)
      : ClientMonitor(meters, filler.client, &filler) {}

  void on_op_paused(workload::ProgramRun& watched, std::uint32_t op, SimTime now) override;
  void on_op_resumed(workload::ProgramRun& watched, std::uint32_t op, SimTime now) override;
  void on_pass_finished(workload::ProgramRun& watched, SimTime now) override;
};

}  // namespace bubblesim::run
