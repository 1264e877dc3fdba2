// The plan of one process of a rig: a program (sim/program), the form of each kernel's stand-in,
// the bytes of copies, the job's role, its reports. Made from a run config by sim/measure, or by a
// calibration probe; handed from process to process as a file (job_files.hpp).
//
// A plan leaves out the other ranks: a collective holds its blocks for its duration, whatever else
// runs. Op::profile is into JobPlan::forms or, of a copy or memset, into JobPlan::copies. Lags,
// gaps and costs are for fake devices only: hardware has its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/policy.hpp"
#include "sim/policy/session/bubble_watch.hpp"
#include "sim/program/batching.hpp"
#include "sim/program/program.hpp"
#include "traces/trace.hpp"

namespace bubblesim::capture {

/// How to build a kernel's stand-in.
struct KernelForm {
  traces::LaunchShape shape;
  program::KernelClass bound = program::KernelClass::kUnknown;
  bool tensor = false;     ///< its work is matrix multiplications
  double dram_share = 0;   ///< of the device's DRAM bandwidth that it takes alone, [0, 1]
  double issue_share = 0;  ///< of the issue slots of the SMs that it sits on, [0, 1]
  friend auto operator<=>(const KernelForm&, const KernelForm&) = default;
};

enum class CopyPath : std::uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice };

/// A copy or memset.
struct CopyForm {
  Bytes bytes;  ///< 0: the operation's duration says how many
  CopyPath path = CopyPath::kHostToDevice;
  friend auto operator<=>(const CopyForm&, const CopyForm&) = default;
};

/// A job that trains: its threads go on with the next pass at once.
struct LoopMode {
  std::uint64_t iterations = 0;  ///< the job stops after this many; 0: when told to
};

/// A service: passes for batches of requests.
struct ServeMode {
  bool online = false;                  ///< false: there is always a next batch
  std::vector<Duration> arrivals;       ///< online: ascending, since the start
  program::Batching batching;
};

struct JobPlan {
  std::string name;
  ClientId client;                      ///< of the gate
  policy::Role role = policy::Role::kTraining;
  program::Program program;
  std::vector<KernelForm> forms;
  std::vector<CopyForm> copies;
  std::vector<policy::MeasuredBubble> bubbles;  ///< by after_op; reported to the policy
  std::optional<LoopMode> loop;         ///< either this or `serve`
  std::optional<ServeMode> serve;
  Bytes memory;                         ///< device memory to hold; 0: only as needed
  std::int32_t priority = 0;            ///< of its streams; larger first
  std::uint32_t sms = 0;                ///< green context of this many SMs; 0: all
  bool report_completions = false;      ///< to the gate
  bool record_operations = false;       ///< JobRecord::operations
  /// A probe: the plan's lags, gaps and shares of forms are ignored; a fake device applies its own:
  /// GpuSpec::launch_latency from the end of a launch call to the start on an idle stream,
  /// stream_gap after the stream's previous operation, sync_latency after the awaited operation,
  /// the shares of each kernel's class; copies whose duration is 0 last as long as their bytes take
  /// (host_bandwidth; device to device: twice the bytes by dram_reach of dram_bandwidth). Hardware
  /// always applies its own.
  bool device_lags = false;
};

/// The copy of a copy operation. Precondition: it is not a kernel.
[[nodiscard]] inline CopyForm copy_of(const JobPlan& plan, const program::Op& op) {
  return op.profile == program::kNoIndex ? CopyForm{} : plan.copies[op.profile];
}

[[nodiscard]] inline bool launches(const program::Step& step) {
  return step.kind == program::StepKind::kLaunch || step.kind == program::StepKind::kLaunchAndWait;
}

/// The index of `value` in the table, which it joins if it is new.
template <class T>
[[nodiscard]] std::uint32_t index_in(std::vector<T>& table, const T& value) {
  const auto known = std::find(table.begin(), table.end(), value);
  const auto index = static_cast<std::uint32_t>(known - table.begin());
  if (known == table.end()) table.push_back(value);
  return index;
}

}  // namespace bubblesim::capture
