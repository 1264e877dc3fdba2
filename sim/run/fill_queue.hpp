// Fill jobs of a run: each is submitted, waits for a GPU, and runs there; a worker on each GPU runs
// a filler's jobs one after another. Workers of different fillers run in parallel; a placer that
// wants one job a GPU places no more.
//
// The placer is called at each instant at which jobs were submitted or have ended, after all ends
// of the instant. Fillers that may use different GPUs are asked for separately, in the order of
// their first waiting jobs; unplaced jobs wait.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/engine/engine.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/observe/timeline.hpp"
#include "sim/policy/placement.hpp"
#include "sim/run/filler_instance.hpp"
#include "sim/run/run_config.hpp"

namespace bubblesim::run {

// Tracks the jobs on each GPU of a run, placed by the policy's placer, or first come, first served.
// Keeps the state that a placer sees, and checks its decisions.

class ClusterPlacement {
 public:
  /// `gpus` by id, with training's use. No placer: a fill job goes to the GPU of the lowest number
  /// with memory for it and no fill job; jobs that fit nowhere are passed over.
  ClusterPlacement(std::string policy, std::unique_ptr<policy::Placer> placer,
                   std::vector<policy::GpuState> gpus);

  [[nodiscard]] bool has_placer() const { return placer_ != nullptr; }
  [[nodiscard]] const std::vector<policy::GpuState>& gpus() const { return gpus_; }

  /// Memory may be oversubscribed, so it is not checked.
  void allow_oversubscription() { unified_ = true; }
  /// A worker on each GPU runs jobs of this kind one after another: several of them on one GPU need
  /// no more memory.
  void add_worker_kind(std::uint32_t kind) { worker_kinds_.insert(kind); }
  /// Sets how much of the worker's memory the policy keeps on the device; by default all.
  void set_worker_resident(GpuId gpu, std::uint32_t kind, Bytes resident) {
    worker_resident_[{gpu, kind}] = resident;
  }

  /// Adds a job that stays on the GPU whatever the policy decides. GpuState's jobs do not count it.
  void add_fixed(const policy::JobInfo& job, GpuId gpu);
  /// Removes a job that is fixed, was placed and refused, or has ended.
  void remove(const policy::JobInfo& job, GpuId gpu);

  /// Asks for places on `allowed` GPUs (ascending), checks them and books the placed jobs. Fault:
  /// an illegal decision. Precondition: neither is empty.
  [[nodiscard]] Result<std::vector<policy::Placement>> place(
      std::span<const policy::JobInfo> waiting, std::span<const std::uint32_t> allowed,
      policy::Instant now);
  /// Checks that the booked memory fits every device. Fault: the placer's.
  [[nodiscard]] Result<void> check_memory(policy::Instant now) const;

  /// Device memory that workers of fill jobs hold now, and the most that they held at once.
  [[nodiscard]] Bytes workers_now(GpuId gpu) const { return workers_now_[gpu.index()]; }
  [[nodiscard]] Bytes workers_most(GpuId gpu) const { return workers_most_[gpu.index()]; }
  void add_counts(CounterSet& counters) const;

 private:
  struct Booked {
    policy::JobInfo job;
    bool placed = false;  ///< by the placer; false: fixed
  };

  void book(const policy::JobInfo& job, GpuId gpu, bool placed);
  void update(GpuId gpu);
  [[nodiscard]] bool fits(const policy::JobInfo& job, GpuId gpu) const;
  std::vector<policy::Placement> first_come(std::span<const policy::JobInfo> waiting,
                                            std::span<const std::uint32_t> allowed) const;
  [[nodiscard]] Result<void> check(std::span<const policy::Placement> placements,
                                   std::span<const policy::JobInfo> waiting,
                                   std::span<const std::uint32_t> allowed,
                                   policy::Instant now) const;
  [[nodiscard]] tl::unexpected<Error> illegal(policy::Instant now,
                                              const std::string& reason) const;

  std::string policy_;
  std::unique_ptr<policy::Placer> placer_;
  std::vector<policy::GpuState> gpus_;
  std::vector<Bytes> training_;               ///< by GPU
  std::vector<std::vector<Booked>> booked_;   ///< by GPU, in order
  bool unified_ = false;
  std::set<std::uint32_t> worker_kinds_;
  std::map<std::pair<GpuId, std::uint32_t>, Bytes> worker_resident_;
  std::vector<Bytes> workers_now_;            ///< by GPU
  std::vector<Bytes> workers_most_;
};

/// Known properties of a filler before the run, on a GPU of its own.
struct FillerProfile {
  Duration pass{};            ///< of its program once; 0: not known
  double requests_per_s = 0;  ///< 0: not known
  /// Whether one pass more or less changes `requests_per_s` by over 10 %, since few passes (all
  /// alike) ended on one GPU.
  bool few_passes = false;
  /// True for an online filler that serves its arrivals (observe::keeps_up), in a run without a
  /// given length: `requests_per_s` is then the arrival rate, not the greatest rate.
  bool keeps_up = false;
  observe::UseAlone use{};
};

/// Time for this many requests on a GPU of their own; 0: not known.
[[nodiscard]] Duration work_of(std::uint64_t requests, const FillerConfig& filler,
                               const FillerProfile& profile);

/// The filler as a placer sees it; the caller sets id, work, deadline and submission.
[[nodiscard]] policy::JobInfo job_of(std::uint32_t kind, const FillerConfig& filler);

class FillQueue final : public engine::EventHandler, public FillWorkListener {
 public:
  /// All outlive the queue; `profiles` by filler, or empty; ids begin at `first_id`.
  FillQueue(engine::Engine& engine, const RunConfig& config,
            const std::vector<FillerProfile>& profiles, ClusterPlacement& placement,
            std::uint32_t first_id, observe::TimelineRecorder* timeline);

  /// Adds a worker for its filler's jobs on its GPU. Before the start; by GPU, admitted ones only.
  void add_worker(FillerInstance& worker);
  /// Schedules the first submission.
  void start();

  void on_event(SimTime now) override;
  void on_work_done(FillerInstance& worker, std::uint64_t requests, SimTime now) override;

  /// The illegal placement that stopped the run.
  [[nodiscard]] const std::optional<Error>& fault() const { return fault_; }
  /// The filler's jobs at the end of the run.
  [[nodiscard]] observe::FillJobs results(std::uint32_t filler, SimTime end) const;

 private:
  struct Job {
    policy::JobInfo info;
    observe::FillJob state;
  };
  struct Worker {
    FillerInstance* instance = nullptr;
    std::deque<std::size_t> queue;  ///< into jobs_; the first one runs if it has started
    std::uint64_t next_request = 0;
  };

  void submit(SimTime now);
  void place(SimTime now);
  [[nodiscard]] bool place_group(const std::vector<std::uint32_t>& gpus, SimTime now);
  void start_next(Worker& worker, SimTime now);
  void end_job(Worker& worker, SimTime now);
  [[nodiscard]] Job& job(std::uint32_t id) { return jobs_[id - first_id_]; }
  [[nodiscard]] Worker& worker_of(std::uint32_t filler, GpuId gpu);

  engine::Engine& engine_;
  ClusterPlacement& placement_;
  std::uint32_t first_id_;
  observe::TimelineRecorder* timeline_;
  engine::EntityId entity_;
  std::vector<Job> jobs_;             ///< in order of submission
  std::size_t next_ = 0;              ///< not yet submitted
  std::vector<std::size_t> waiting_;  ///< into jobs_, ascending
  std::map<std::uint32_t, std::vector<std::uint32_t>> gpus_;  ///< by filler, the GPUs with a worker
  std::deque<Worker> workers_;
  std::optional<Error> fault_;
};

}  // namespace bubblesim::run
