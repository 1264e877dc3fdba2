// Runs jobs side by side on one GPU, each in a process of its own, under a policy or none, for
// `measure` and `calibrate`.
//
// A rig starts the processes (replay/: bubblesim_replay) in the environment that the substrate asks
// for, makes the gate, waits until all are ready, lets them start at one moment, drives the policy,
// ends them, and reads their records. A process that dies or hangs ends neither the others nor the
// rig: its client is gone, and the result says so.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/policy_host/policy_host.hpp"
#include "capture/replay/job_plan.hpp"
#include "capture/replay/job_record.hpp"
#include "capture/substrate/process_environment.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::capture {

/// How jobs share a GPU under `mode`. Modes that a real GPU cannot have (partitions, bounds) become
/// streams: only fake devices take them, and share as the mode says.
[[nodiscard]] constexpr Substrate substrate_for(policy::SharingMode mode) {
  switch (mode) {
    case policy::SharingMode::kTimeSliced: return Substrate::kTimeSliced;
    case policy::SharingMode::kMps: return Substrate::kMps;
    default: return Substrate::kStreams;
  }
}

/// One run of the rig. Pointed-to objects outlive it.
struct RigSetup {
  Substrate substrate = Substrate::kAlone;
  policy::Sharing sharing;
  std::vector<JobPlan> jobs;             ///< by client
  std::vector<policy::ClientSharing> shares;  ///< of all clients
  std::optional<PolicyHostSetup> host;   ///< nothing: no gate; refused clients have no job
  Duration limit{};                      ///< fillers and training are stopped then; 0: never
  Duration patience = std::chrono::seconds(60);  ///< machine's time without progress: hung
};

struct JobOutcome {
  std::optional<JobRecord> record;  ///< nothing: it died or hung
  std::string end;                  ///< "exited with 0", "killed by signal 9", ...
};

struct RigResult {
  std::vector<JobOutcome> jobs;     ///< by RigSetup::jobs
  /// The time from the common start until training (without training, all jobs) had done its work;
  /// at most RigSetup::limit.
  Duration length{};
  std::optional<PolicyHostCounts> host;
  CounterSet counters;
};

/// Stands for the driver and the GPU behind a clock of turns; runs in a thread of the rig's own
/// process.
class FakeGpu {
 public:
  virtual ~FakeGpu() = default;
  /// Before a run. Returns the address that bubblesim_replay opens.
  [[nodiscard]] virtual Result<std::string> begin(HostClock& clock, const RigSetup& setup) = 0;
  /// Runs in a thread that takes part in the clock, until stop().
  virtual void run() = 0;
  virtual void stop() = 0;
};

/// What rigs need of their machine.
struct RigPlace {
  std::string worker;               ///< path of bubblesim_replay
  std::string folder;               ///< for plans and records; exists, is left as found
  FakeGpu* fake = nullptr;          ///< null: the GPU of the machine
  /// File in which fits of stand-ins are kept from run to run; empty: none. A process with a part
  /// of the GPU cannot measure fits, so jobs that share have run alone before.
  std::string fits;
  /// How long a thread that waits for another process polls before it sleeps; machine's time.
  Duration spin = kDefaultSpin;
  std::string gpu;                  ///< index or UUID; empty: as CUDA_VISIBLE_DEVICES says
  Variables environment;            ///< of the calling program
  std::function<void(const std::string&)> progress;  ///< may be empty
  const std::atomic<bool>* stop = nullptr;  ///< once true, the run ends soon with a fault
};

/// Fault: a setup that failed; a policy's illegal decision. Jobs that died are no fault.
[[nodiscard]] Result<RigResult> run_rig(const RigPlace& place, const RigSetup& setup);

}  // namespace bubblesim::capture
