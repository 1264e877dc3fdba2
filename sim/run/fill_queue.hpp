// Fill jobs of a run: they are submitted, wait until they are placed on a GPU, and run there, each
// filler's one after another by its worker on that GPU. Workers of different fillers run beside
// each other; a placer that wants one job a GPU places no more.
//
// The placer is asked at each instant at which jobs were submitted or have ended, after all that
// ended then. Fillers that may use different GPUs are asked for apart, in the order of their first
// waiting jobs; what is left waits.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/engine/engine.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/observe/timeline.hpp"
#include "sim/policy/placement.hpp"
#include "sim/run/cluster_placement.hpp"
#include "sim/run/filler_instance.hpp"
#include "sim/run/run_config.hpp"

namespace bubblesim::run {

/// What is known of a filler before the run, on a GPU of its own.
struct FillerProfile {
  Duration pass{};            ///< of its program once; 0: not known
  double requests_per_s = 0;  ///< 0: not known
  /// So few passes of its program, which are alike, ended on one GPU that a pass more or less moves
  /// `requests_per_s` by over 10 %.
  bool few_passes = false;
  /// True for an online filler of a run without a given length that serves what arrives
  /// (observe::keeps_up): `requests_per_s` is then the arrival rate, not the most that it can
  /// serve.
  bool keeps_up = false;
  observe::UseAlone use{};
};

/// How long so many requests take on a GPU of their own; 0: not known.
[[nodiscard]] Duration work_of(std::uint64_t requests, const FillerConfig& filler,
                               const FillerProfile& profile);

/// The filler as a placer sees it; id, work, deadline and submission are the caller's.
[[nodiscard]] policy::JobInfo job_of(std::uint32_t kind, const FillerConfig& filler);

class FillQueue final : public engine::EventHandler, public FillWorkListener {
 public:
  /// All outlive the queue; `profiles` by filler, or empty; ids begin at `first_id`.
  FillQueue(engine::Engine& engine, const RunConfig& config,
            const std::vector<FillerProfile>& profiles, ClusterPlacement& placement,
            std::uint32_t first_id, observe::TimelineRecorder* timeline);

  /// A worker for its filler's jobs on its GPU. Before the start; by GPU, admitted ones only.
  void add_worker(FillerInstance& worker);
  /// Schedules the first submission.
  void start();

  void on_event(SimTime now) override;
  void on_work_done(FillerInstance& worker, std::uint64_t requests, SimTime now) override;

  /// The illegal placement that stopped the run.
  [[nodiscard]] const std::optional<Error>& fault() const { return fault_; }
  /// The filler's jobs when the run ended at `end`.
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
  std::map<std::uint32_t, std::vector<std::uint32_t>> gpus_;  ///< by filler, with a worker
  std::deque<Worker> workers_;
  std::optional<Error> fault_;
};

}  // namespace bubblesim::run
