// One run of a rig while it lasts; included by rig_run.cpp and rig_workers.cpp only.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/policy_host/policy_host.hpp"
#include "capture/replay/control_segment.hpp"
#include "capture/rig/rig.hpp"
#include "capture/rig/worker_process.hpp"
#include "capture/substrate/mps_daemon.hpp"
#include "capture/substrate/process_environment.hpp"

namespace bubblesim::capture {

inline constexpr CounterSpec kJobsDied{"rig_jobs_died", Severity::kError,
    "jobs whose process died, or was killed because it was stuck, before it had ended"};

inline constexpr CounterSpec kMpsNotQuit{"rig_mps_did_not_quit", Severity::kNotice,
    "runs after which the MPS daemon did not quit as told; what ran had ended before that"};

class RigRun {
 public:
  /// `clock`: the calling thread takes part in it.
  RigRun(const RigPlace& place, const RigSetup& setup, HostClock& clock);
  ~RigRun();

  [[nodiscard]] Result<RigResult> run(const policy::Sharing& sharing,
                                      const std::vector<policy::ClientSharing>& shares);

 private:
  /// The process of one job, or of all of them.
  struct Worker {
    WorkerProcess process;
    std::vector<std::size_t> jobs;  ///< into RigSetup::jobs
    bool gone = false;              ///< its end was handled
    TurnHolder seen{};              ///< the turn when the watchdog last looked
  };

  Result<void> begin_fake(const policy::Sharing& sharing,
                          const std::vector<policy::ClientSharing>& shares);
  Result<void> begin_mps();
  Result<void> make_gate(policy::SharingMode sharing);
  Result<void> write_plans();
  Result<void> start_workers();
  Result<void> start_worker(std::vector<std::size_t> jobs);
  void await_part(Worker& worker, std::uint32_t parts);
  [[nodiscard]] WorkerSettings settings_of(std::size_t job) const;
  [[nodiscard]] Result<Variables> environment_of(std::size_t job) const;
  [[nodiscard]] std::string mps_text(std::size_t job) const;
  Result<void> await_ready();
  void start_all();
  Result<void> await_end();
  Result<void> end_all();
  void end_mps(RigResult& result);
  Result<void> collect(RigResult& result);

  /// Handles processes that have ended. True: one has ended since the last call.
  bool reap();
  [[nodiscard]] WorkerStatus status(std::size_t job) const;
  [[nodiscard]] bool alive(std::size_t job) const;
  [[nodiscard]] bool finished(std::size_t job) const;
  [[nodiscard]] bool all_finished() const;
  [[nodiscard]] bool any_trains() const;
  [[nodiscard]] bool training_over() const;
  [[nodiscard]] std::string plan_path(std::size_t job) const;
  [[nodiscard]] std::string record_path(std::size_t job) const;
  [[nodiscard]] std::string end_of(std::size_t job) const;
  [[nodiscard]] Result<void> stopped_by_user() const;
  void say(const std::string& text) const;
  void watch();
  [[nodiscard]] bool held_up(Worker& worker) const;
  [[nodiscard]] std::uint64_t progress_of(const Worker& worker) const;

  const RigPlace& place_;
  const RigSetup& setup_;
  HostClock& clock_;
  std::unique_ptr<MpsDaemon> mps_;  ///< ends after the workers do
  std::unique_ptr<ControlBoard> board_;
  std::unique_ptr<PolicyHost> host_;
  std::atomic<bool> host_ended_{false};  ///< its run() has returned
  std::string device_;            ///< address that workers open
  mutable std::mutex mutex_;      ///< of workers_: the watchdog kills
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<Crew> crew_;
  HostTime origin_{};
  HostTime ended_{};
};

}  // namespace bubblesim::capture
