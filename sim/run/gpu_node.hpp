// One GPU of a simulation: a rank of training, or none, with instances of fillers beside it, under
// a policy or none; and their measurements.
//
// Made in this order: instances (add_instance), the GPU with its policy's settings (open), the
// programs on it (add_training, then add_services), start. The node is a domain of its own
// (sim/engine): of itself it calls into others only where its rank ends the run's last iteration.
// The class is not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/engine/conductor.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/observe/timeline.hpp"
#include "sim/observe/usage_series.hpp"
#include "sim/run/filler_instance.hpp"
#include "sim/run/gpu_power.hpp"
#include "sim/run/loaded_run.hpp"
#include "sim/schedule/shared_gpu.hpp"
#include "sim/workload/arrivals/request_lengths.hpp"
#include "sim/workload/program_run.hpp"

namespace bubblesim::run {

// Observes the program of one client on a simulated GPU: it reports events to the policy, the GPU's
// meters and the timeline, ends of passes to a filler's service, and ends of iterations to the
// run's goal.

/// The measurements of a GPU, over all of its clients.
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
  observe::TimelineRecorder* timeline = nullptr;  ///< null: not recorded
  std::optional<observe::UsageSeries> usage{};    ///< nothing: no usage over time
  std::optional<GpuPower> power{};                ///< nothing: not metered
  observe::ActivityMeter activity{warmup};
};

/// Ends a simulation when every rank has done a given number of iterations; nothing: never.
class IterationGoal {
 public:
  IterationGoal(std::optional<std::uint64_t> iterations, std::size_t ranks)
      : iterations_(iterations), ranks_left_(ranks) {}

  /// A rank in `engine`'s domain has done `done` iterations.
  void on_iteration(std::uint64_t done, engine::Engine& engine);
  /// Iterations left to a rank after `done`; nothing: it has no goal ahead.
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

  workload::ProgramRun* run = nullptr;  ///< the observed one, once it exists

 protected:
  /// `filler`: null for training.
  ClientMonitor(GpuMeters& meters, ClientId client, FillerInstance* filler)
      : meters_(meters), client_(client), filler_(filler) {}
  [[nodiscard]] observe::Activity activity_of(const program::Op& op) const;

  GpuMeters& meters_;
  ClientId client_;  ///< in the policy's numbering
  FillerInstance* filler_;

 private:
  void record(const workload::ProgramRun& watched, std::uint32_t op, observe::SliceKind kind,
              SimTime until);

  std::unordered_map<std::uint32_t, NameId> timeline_names_;  ///< by the program's NameId
  std::unordered_map<std::uint32_t, SimTime> since_;  ///< since when each operation is in its
                                                      ///< present state; for timelines
};

class TrainingMonitor final : public ClientMonitor {
 public:
  /// `goal` outlives this.
  TrainingMonitor(GpuMeters& meters, const program::Program& rank, IterationGoal& goal)
      : ClientMonitor(meters, ClientId{0}, nullptr), goal_(goal),
        least_iteration_(workload::least_iteration(rank)) {}

  void on_iteration(workload::ProgramRun& watched, std::uint32_t index, SimTime now) override;
  /// The earliest instant at which the rank may reach the goal; max(): no goal ahead.
  [[nodiscard]] SimTime earliest_goal(SimTime now) const;

  std::vector<Duration> iterations;  ///< times of finished ones

 private:
  IterationGoal& goal_;
  Duration least_iteration_;
  SimTime last_iteration_end_ = kSimStart;
};

class FillerMonitor : public ClientMonitor {
 public:
  FillerMonitor(GpuMeters& meters, FillerInstance& filler)
      : ClientMonitor(meters, filler.client, &filler) {}

  void on_op_paused(workload::ProgramRun& watched, std::uint32_t op, SimTime now) override;
  void on_op_resumed(workload::ProgramRun& watched, std::uint32_t op, SimTime now) override;
  void on_pass_finished(workload::ProgramRun& watched, SimTime now) override;
};

/// Lengths of servers' requests, by RunConfig::fillers; nothing: not an engine's server.
using ServerRequests = std::vector<std::optional<workload::RequestLengths>>;

class GpuNode final : private engine::ContactBound, private schedule::HoldListener {
 public:
  explicit GpuNode(GpuMeters meters) : meters_(std::move(meters)) {}

  void add_instance(std::uint32_t filler, observe::FillerMode mode);
  /// The policy decides about the clients: training, then the instances in their order.
  Result<void> open(workload::Machine& machine, schedule::Decider decider,
                    std::vector<policy::ClientInfo> clients);
  /// Null: no rank runs here. `goal` outlives this.
  void add_training(const program::Program* rank, workload::RunSetup setup, IterationGoal& goal);
  /// Adds programs and services of the admitted instances. `requests`: of engines' servers, by
  /// RunConfig::fillers. The first GPU of a server over several GPUs comes first. `next_read`: if
  /// nobody follows the events here, when meters are read next after the warm-up; else null.
  void add_services(const LoadedRun& loaded, const ServerRequests& requests,
                    const SimTime* next_read);
  /// Starts the rank's first pass and the policy's session.
  void start();

  [[nodiscard]] GpuId id() const { return meters_.gpu; }
  /// Null: not metered.
  [[nodiscard]] GpuPower* power() { return meters_.power ? &*meters_.power : nullptr; }
  [[nodiscard]] const schedule::SharedGpu& gpu() const { return *gpu_; }
  /// Null: no rank runs here.
  [[nodiscard]] const TrainingMonitor* training() const { return training_.get(); }
  [[nodiscard]] const std::vector<std::unique_ptr<FillerInstance>>& instances() const {
    return instances_;
  }

  /// Ends the warm-up.
  void end_warmup() { at_warmup_ = sm_seconds(); }
  /// Ends an interval of usage over time. `workers`: memory that workers of fill jobs hold now.
  void close_usage(SimTime now, Bytes workers);
  [[nodiscard]] std::vector<observe::UsageInterval> take_usage() { return meters_.usage->take(); }
  /// The use in the measured window, which ends at `end`. `workers`: the most that workers held.
  [[nodiscard]] observe::GpuUse use(SimTime end, Bytes workers);
  /// Energy above idle of an instance's operations in the measured window; nothing: not metered.
  /// After use().
  [[nodiscard]] std::optional<double> energy_of(ClientId client) const;
  /// Kernels of fillers that were killed and started over.
  [[nodiscard]] std::uint64_t resets() const;

 private:
  /// Integrals over time of SMs covered by blocks.
  struct SmSeconds {
    double training = 0;
    double fillers = 0;
  };

  [[nodiscard]] bool repeats(const LoadedRun& loaded, const FillerInstance& instance) const;
  [[nodiscard]] SmSeconds sm_seconds() const;
  [[nodiscard]] SimTime next_contact(SimTime now) const override;
  void on_hold_ended(ClientId client, SimTime since, SimTime now) override;

  GpuMeters meters_;
  std::unique_ptr<schedule::SharedGpu> gpu_;
  std::unique_ptr<TrainingMonitor> training_;
  std::vector<std::unique_ptr<FillerInstance>> instances_;
  std::vector<std::unique_ptr<FillerMonitor>> fillers_;  ///< of the admitted ones
  std::uint32_t sm_count_ = 0;
  SmSeconds at_warmup_;
};

/// The GPUs of a simulation, by id.
using Nodes = std::vector<std::unique_ptr<GpuNode>>;

/// A filler's instances, by GPU.
[[nodiscard]] std::vector<FillerInstance*> instances_of(const Nodes& nodes, std::uint32_t filler);

}  // namespace bubblesim::run
