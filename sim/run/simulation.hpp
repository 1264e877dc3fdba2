// One simulation: a job, fillers, or both, under a policy or none.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/engine/conductor.hpp"
#include "sim/network/rendezvous.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/observe/timeline.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/run/cluster_placement.hpp"
#include "sim/run/fill_queue.hpp"
#include "sim/run/gpu_node.hpp"
#include "sim/run/job_meetings.hpp"
#include "sim/run/loaded_run.hpp"
#include "sim/schedule/bubble_table.hpp"

namespace bubblesim::run {

/// What runs. Nothing set: the training job alone.
struct Scenario {
  const policy::PolicySpec* policy = nullptr;  ///< null: nobody decides, everything is admitted
  const policy::ParameterSet* parameters = nullptr;
  const std::vector<schedule::BubbleTable>* bubbles = nullptr;  ///< if the policy needs them
  std::vector<std::uint32_t> fillers;   ///< into RunConfig::fillers
  /// On GPUs of their own, by RunConfig::fillers; null: not measured.
  const std::vector<FillerProfile>* profiles = nullptr;
  Duration iteration{};                 ///< of training alone; 0: not measured
  bool training = true;
  Duration limit = Duration::max();     ///< a run for iterations is cut here (and counted)
  observe::TimelineRecorder* timeline = nullptr;
  observe::UsageSetup usage{};          ///< recorded in PolicyResult::usage; changes nothing else
  const std::atomic<bool>* stop = nullptr;  ///< once true, run() is a fault soon; null: never
  /// Where simulated time is added as it passes, up to `expected`; null: nowhere.
  std::atomic<std::int64_t>* passed_ns = nullptr;
  Duration expected{};
  /// How its GPUs run beside each other. Changes no result. A timeline sees every event in order.
  engine::ConductorSetup gpus{};
};

inline constexpr CounterSpec kIterationsNotReached{
    "run_iterations_not_reached", Severity::kError,
    "the run was cut before training had done its iterations: the policy starves training"};
inline constexpr CounterSpec kTrainingStoodStill{
    "run_training_without_iteration", Severity::kError,
    "ranks that ended no iteration in the measured window: the window is too short, or the policy "
    "starves training"};
inline constexpr CounterSpec kUnfinishedRequests{
    "run_requests_unfinished", Severity::kNotice,
    "online requests that waited or ran when the run ended; percentiles count the age of those "
    "that arrived in the measured window"};
inline constexpr CounterSpec kPreemptions{
    "policy_preemptions", Severity::kInfo, "times that the policy drove a client off a GPU"};
inline constexpr CounterSpec kKernelResets{
    "kernels_reset", Severity::kInfo, "kernels of fillers that were killed and began anew"};
inline constexpr CounterSpec kReshapedLaunches{
    "launches_reshaped", Severity::kInfo, "launches that the policy gave another form"};
inline constexpr CounterSpec kMemoryMigrated{
    "memory_migrated_bytes", Severity::kInfo, "bytes that the policy moved to or from a device"};
inline constexpr CounterSpec kHeldAtEnd{
    "run_launches_held_at_end", Severity::kInfo, "filler launches that the policy held at the end"};
inline constexpr CounterSpec kUnfinishedJobs{
    "run_fill_jobs_unfinished", Severity::kNotice,
    "fill jobs that waited or ran when the run ended; they are in no mean, and in no makespan"};
inline constexpr CounterSpec kUnplacedInstances{
    "run_instances_unplaced", Severity::kNotice,
    "instances of fillers that the policy found no GPU for at the start"};

/// Set up, run once, read. `loaded` outlives it.
class Simulation final : private IterationListener {
 public:
  Simulation(const LoadedRun& loaded, Scenario scenario);
  ~Simulation() override;

  /// Fault: an illegal decision of the policy, arrivals that cannot be read, or a job whose
  /// dependencies are never met.
  [[nodiscard]] Result<observe::PolicyResult> run();

  /// Of the run: how far its GPUs ran beside each other.
  [[nodiscard]] const engine::Conductor& conductor() const { return conductor_; }

 private:
  /// How a client is set up on its GPU.
  struct ClientPlace {
    gpu::ClientSetup setup;
    Bytes memory;    ///< 0: not known
    Bytes resident;  ///< of it, on the device
  };
  /// A filler's process on a GPU, and what the placement books for it.
  struct PlacedFiller {
    std::uint32_t filler = 0;
    policy::JobInfo job;
  };
  class WarmupSnapshot;

  Result<void> build();
  Result<void> place_fillers();
  Result<void> place_instances(const std::vector<PlacedFiller>& waiting);
  [[nodiscard]] std::vector<policy::GpuState> gpu_states() const;
  [[nodiscard]] std::vector<std::uint32_t> gpus_of(std::uint32_t filler) const;
  [[nodiscard]] observe::FillerMode mode_of(std::uint32_t filler) const;
  [[nodiscard]] std::optional<Bytes> training_memory(std::size_t rank) const;
  Result<void> build_queue();
  Result<void> build_node(std::uint32_t gpu_index);
  std::vector<policy::ClientInfo> client_infos(const GpuNode& node) const;
  void add_training(GpuNode& node, const ClientPlace& client);
  void add_filler(GpuNode& node, std::size_t index, const ClientPlace& client);
  Result<void> build_arrivals();
  Result<void> advance();
  Result<void> run_until(SimTime last);
  Result<void> run_stretch(SimTime last);
  void note_passed(Duration until);
  [[nodiscard]] std::optional<Error> policy_fault() const;
  void on_iteration_ended(std::uint32_t rank_index) override;

  observe::PolicyResult collect();
  observe::TrainingResult collect_training();
  [[nodiscard]] std::string why_still(const std::vector<const GpuNode*>& nodes) const;
  observe::FillerResult collect_filler(std::uint32_t filler);
  [[nodiscard]] std::uint64_t batch_of(std::uint32_t filler) const;
  observe::GpuUse collect_gpu(const GpuNode& node) const;
  [[nodiscard]] bool records_usage() const { return scenario_.usage.interval > Duration::zero(); }
  void close_usage(SimTime now);
  void collect_usage(observe::PolicyResult& result);

  const LoadedRun& loaded_;
  Scenario scenario_;
  engine::Conductor conductor_;
  SimTime warmup_;
  SimTime end_{};
  Duration passed_{};  ///< of it, what is in Scenario::passed_ns
  network::Rendezvous rendezvous_;
  std::vector<std::unique_ptr<GpuNode>> nodes_;
  JobMeetings meetings_{nodes_, rendezvous_};
  std::vector<std::unique_ptr<ArrivalRouter>> routers_;
  std::unique_ptr<ClusterPlacement> placement_;
  std::vector<std::vector<PlacedFiller>> placed_;  ///< by GPU
  std::vector<std::uint64_t> unplaced_;            ///< instances, by RunConfig::fillers
  std::uint32_t next_job_ = 0;                     ///< id of the placement's
  bool unified_memory_ = false;
  std::unique_ptr<FillQueue> queue_;               ///< if there are fill jobs
  std::unique_ptr<WarmupSnapshot> snapshot_;
  std::uint64_t ranks_at_goal_ = 0;
  CounterSet counters_;
};

}  // namespace bubblesim::run
