// One GPU of a simulation with everything on it: model, clients, policy, meters.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/engine/conductor.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/observe/activity_meter.hpp"
#include "sim/observe/timeline.hpp"
#include "sim/observe/usage_series.hpp"
#include "sim/policy/policy.hpp"
#include "sim/run/filler_instance.hpp"
#include "sim/schedule/policy_driver.hpp"
#include "sim/workload/program_run.hpp"

namespace bubblesim::run {

struct GpuNode;

/// Told when a rank of the training job ends an iteration.
class IterationListener {
 public:
  virtual ~IterationListener() = default;
  virtual void on_iteration_ended(std::uint32_t rank_index) = 0;
};

/// Watches one program on one GPU and passes on what others need: meters, policy, service,
/// timeline, iteration times.
class ClientMonitor final : public workload::RunObserver {
 public:
  ClientMonitor(GpuNode& node, ClientId policy_client, FillerInstance* filler)
      : node_(node), policy_client_(policy_client), filler_(filler) {}

  void on_iteration(workload::ProgramRun& run, std::uint32_t index, SimTime now) override;
  void on_op_started(workload::ProgramRun& run, std::uint32_t op, SimTime now) override;
  void on_op_paused(workload::ProgramRun& run, std::uint32_t op, SimTime now) override;
  void on_op_resumed(workload::ProgramRun& run, std::uint32_t op, SimTime now) override;
  void on_op_finished(const workload::OpRecord& record) override;
  void on_pass_finished(workload::ProgramRun& run, SimTime now) override;

  std::vector<Duration> iterations;  ///< training: times of finished ones

 private:
  [[nodiscard]] observe::Activity activity_of(const program::Op& op) const;
  void count_started(const program::Op& op, SimTime now);
  void count_ended(const program::Op& op, SimTime now);
  void record(const workload::ProgramRun& run, std::uint32_t op, observe::SliceKind kind,
              SimTime until);

  GpuNode& node_;
  ClientId policy_client_;
  FillerInstance* filler_;  ///< null: the training client
  SimTime last_iteration_end_ = kSimStart;
  std::unordered_map<std::uint32_t, NameId> timeline_names_;  ///< by the program's NameId
  std::unordered_map<std::uint32_t, SimTime> since_;  ///< what each operation does now; timelines
};

/// Puts held launches into the timeline.
class HoldRecorder final : public schedule::HoldListener {
 public:
  HoldRecorder(GpuId gpu, observe::TimelineRecorder& timeline)
      : gpu_(gpu), timeline_(timeline), name_(timeline.intern("launch held")) {}
  void on_hold_ended(ClientId client, SimTime since, SimTime now) override {
    timeline_.add({gpu_, client, name_, observe::SliceKind::kHold, since, now});
  }

 private:
  GpuId gpu_;
  observe::TimelineRecorder& timeline_;
  NameId name_;
};

/// When a GPU reaches out to others by itself: if the run is for iterations, where its rank ends
/// the last of them. Collectives are the job's (JobMeetings).
class GpuContact final : public engine::ContactBound {
 public:
  GpuContact(const GpuNode& node, std::optional<std::uint64_t> iterations)
      : node_(node), iterations_(iterations) {}
  [[nodiscard]] SimTime next_contact(SimTime now) const override;
  /// Of a rank that runs here; before the run.
  void expect(const program::Program& program) {
    least_iteration_ = workload::least_iteration(program);
  }

 private:
  const GpuNode& node_;
  std::optional<std::uint64_t> iterations_;
  Duration least_iteration_{};
};

struct GpuNode {
  std::unique_ptr<GpuContact> contact;
  engine::Engine* engine = nullptr;  ///< the GPU's own domain
  GpuId id{};
  std::uint32_t rank_index = 0;  ///< into the job's ranks, if a rank runs here
  observe::TimelineRecorder* timeline = nullptr;
  IterationListener* iterations = nullptr;
  std::unique_ptr<gpu::Gpu> gpu;
  std::unique_ptr<observe::ActivityMeter> meter;
  std::unique_ptr<observe::UsageSeries> usage;  ///< null: nobody asks for usage over time
  std::unique_ptr<policy::Policy> policy;
  std::unique_ptr<HoldRecorder> holds;
  std::unique_ptr<schedule::PolicyDriver> driver;
  std::vector<std::unique_ptr<ClientMonitor>> monitors;  ///< training first, if there
  std::vector<std::unique_ptr<workload::ProgramRun>> runs;
  bool training = false;                 ///< monitors and runs begin with the training client
  std::vector<std::unique_ptr<FillerInstance>> fillers;
  std::vector<ClientId> filler_clients;  ///< the GPU's, of admitted fillers
  Bytes memory;  ///< of admitted clients at the start, as far as known; not of fill jobs
  bool memory_known = true;  ///< of each of them, fill jobs too
  std::vector<ClientId> memory_of;  ///< the policy's ids of these clients
  double training_sm_seconds_at_warmup = 0;
  double filler_sm_seconds_at_warmup = 0;

  [[nodiscard]] double training_sm_seconds() const;
  [[nodiscard]] double filler_sm_seconds() const;
  /// As `memory`, now: the policy may have moved some of it.
  [[nodiscard]] Bytes memory_now() const;
};

}  // namespace bubblesim::run
