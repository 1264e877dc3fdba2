// Runs a training program and an inference program, neither changed, side by side on one GPU, the
// second gated by a policy.
//
// Both are preloaded with the gate's shared object (interpose/); the policy is driven in this
// process by the machine's clock. When training has ended the gate is open, and the filler is
// stopped or left to run on. No program waits for another's death: the filler's end leaves training
// alone; so does this program's, and the filler then goes on ungated.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capture/control/job_environment.hpp"
#include "capture/live/live_folder.hpp"
#include "capture/live/live_plan.hpp"
#include "capture/policy_host/policy_host.hpp"
#include "sim/base/child_process.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::capture {

/// What becomes of the filler.
enum class FillerThen : std::uint8_t {
  kStop,  ///< SIGTERM to its process group, SIGKILL after `grace`
  kKeep,  ///< goes on ungated; it is waited for
};

struct FillSetup {
  std::string train;   ///< a line for /bin/sh
  std::string fill;
  const policy::PolicySpec* spec = nullptr;
  policy::Policy* policy = nullptr;  ///< as plan_live() left it
  LivePlan plan;
  std::vector<policy::ClientInfo> clients;  ///< training, filler
  Variables environment;             ///< inherited
  std::string library;               ///< libbubblesim_gate.so
  std::string folder = "/tmp";       ///< where a folder for the run can be made
  std::string fill_log;              ///< the filler's outputs; empty: both to standard error
  std::string device;                ///< that both programs see: UUID or index; empty: inherited
  bool one_gpu = true;               ///< PolicyHostSetup::one_gpu
  std::uint32_t window = 0;          ///< launches of the filler on the GPU at once; 0: any
  bool ask_training = false;         ///< training waits for verdicts, whatever the policy
  FillerThen after_end = FillerThen::kStop;    ///< training exited with 0, or was interrupted
  FillerThen after_death = FillerThen::kKeep;  ///< it exited otherwise, or was killed
  Duration grace = std::chrono::seconds(10);
  std::function<void(const std::string&)> say;  ///< what happens meanwhile; may be empty
};

/// What one job did, all its processes together.
struct LiveJobReport : LiveTotals {
  std::optional<ChildEnd> end;  ///< nothing: could not be started, or lives on
  Duration ran{};

  [[nodiscard]] std::uint64_t launches() const { return kernels + collectives + copies; }
};

struct FillReport {
  LiveJobReport training, filler;
  bool interrupted = false;       ///< by a signal to this program
  bool filler_stopped = false;    ///< by this program
  bool filler_killed = false;     ///< it did not end when it was told to
  PolicyHostCounts host;
  CounterSet counters;
  std::optional<Error> fault;     ///< of the policy: from then on the gate was open
  std::vector<std::string> notes;
};

/// Uses SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD of the calling thread, as JobProcess does;
/// each job leads a process group, and signals to this program go to both groups. Training has this
/// program's input, unless that is a terminal. Faults: what could not be set up; nothing runs then.
[[nodiscard]] Result<FillReport> run_fill(const FillSetup& setup);

}  // namespace bubblesim::capture
