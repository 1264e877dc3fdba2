// Runs an unmodified training program and beside it, on each of its GPUs, an unmodified inference
// program gated by a policy.
//
// All programs are preloaded with the gate's shared object (interpose/). Each GPU has a gate and a
// policy of its own, driven in this process by the machine's clock; the training process on that
// GPU and its filler meet at that gate. When training has ended the gates are open, and fillers are
// stopped or go on. No program's death holds up another: training goes on after a filler's end, and
// all go on ungated after this program's.
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

/// What to do with a filler when training has ended.
enum class FillerThen : std::uint8_t {
  kStop,  ///< SIGTERM to its process group, SIGKILL after `grace`
  kKeep,  ///< goes on ungated; run_fill() waits for its end
};

/// One GPU: its filler, and the policy that decides about it.
struct FillGpu {
  std::string device;                ///< UUID or index; empty: as inherited
  std::string fill;                  ///< a line for /bin/sh
  policy::Policy* policy = nullptr;  ///< as plan_live() left it
  LivePlan plan;
};

/// The variable with a filler's number, from 0, so that one line serves several fillers.
inline constexpr const char* kEnvFiller = "BUBBLESIM_FILLER";

struct FillSetup {
  std::string train;          ///< a line for /bin/sh
  std::vector<FillGpu> gpus;  ///< all share in one way; training sees all these GPUs
  const policy::PolicySpec* spec = nullptr;
  Variables environment;             ///< inherited
  std::string library;               ///< libbubblesim_gate.so
  std::string folder = "/tmp";       ///< where folders for the run can be made
  std::string fill_log;              ///< the fillers' outputs; empty: all to standard error
  bool one_gpu = true;               ///< PolicyHostSetup::one_gpu
  std::uint32_t window = 0;          ///< a filler's launches on the GPU at once; 0: any number
  bool ask_training = false;         ///< training waits for verdicts, whatever the policy
  FillerThen after_end = FillerThen::kStop;    ///< after training exits with 0 or is interrupted
  FillerThen after_death = FillerThen::kKeep;  ///< after any other end of training
  Duration grace = std::chrono::seconds(10);
  std::function<void(const std::string&)> say;  ///< what happens meanwhile; may be empty
};

/// The results of one job, over all its processes.
struct LiveJobReport : LiveCounts {
  std::optional<ChildEnd> end;  ///< nothing: the job could not be started, or lives on
  Duration ran{};

  [[nodiscard]] std::uint64_t launches() const { return kernels + collectives + copies; }
};

struct FillGpuReport {
  LiveJobReport training;         ///< its processes on this GPU
  LiveJobReport filler;
  bool filler_stopped = false;    ///< by this program
  bool filler_killed = false;     ///< the filler did not end when told to
  PolicyHostCounts host;
  CounterSet counters;
  std::optional<Error> fault;     ///< of the policy: from then on the gate was open
  std::vector<std::string> notes;
};

struct FillReport {
  std::vector<FillGpuReport> gpus;
  bool interrupted = false;       ///< by a signal to this program
  std::vector<std::string> notes;
};

/// Uses SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD of the calling thread, as JobProcess does;
/// each job leads a process group, and signals to this program go to all groups. Training has this
/// program's input, unless that is a terminal. Fault: the setup failed; no program runs.
[[nodiscard]] Result<FillReport> run_fill(const FillSetup& setup);

}  // namespace bubblesim::capture
