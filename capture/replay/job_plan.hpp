// What one process of a rig launches: host threads with think time between calls, streams in
// order, edges between operations; each operation with the shape and the solo time that a stand-in
// must have. Made from a run config by sim/measure, or by a calibration probe; handed from process
// to process as JSON (job_plan_file.hpp).
//
// The same ideas as sim/workload/program.hpp, in a form of its own: a plan is a file, has no
// simulated time, and says nothing of ranks that are not there. A collective is an operation that
// lasts its time with so many blocks resident, whatever else runs.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/policy.hpp"
#include "sim/program/batching.hpp"
#include "traces/trace.hpp"

namespace bubblesim::capture {

/// No index.
inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// What a kernel's stand-in must be like.
struct KernelForm {
  traces::LaunchShape shape;
  program::KernelClass bound = program::KernelClass::kUnknown;
  bool tensor = false;     ///< its work is matrix multiplications
  double dram_share = 0;   ///< of the device's DRAM bandwidth that it takes alone, [0, 1]
  double issue_share = 0;  ///< of the issue slots of the SMs that it sits on, [0, 1]
  friend auto operator<=>(const KernelForm&, const KernelForm&) = default;
};

enum class CopyPath : std::uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice };

struct PlanEdge {
  std::uint32_t before = 0;  ///< into JobPlan::ops; of the same pass
  Duration lag{};            ///< fake devices only: hardware has its own
};

/// A device operation.
struct PlanOp {
  program::WorkKind kind = program::WorkKind::kKernel;
  std::uint32_t stream = 0;
  std::uint32_t form = kNone;      ///< into JobPlan::forms; copies and memsets: none
  std::uint32_t name = 0;          ///< into JobPlan::names
  Duration solo{};                 ///< alone on the GPU
  Bytes bytes;                     ///< copies and memsets; 0: `solo` says how many
  CopyPath path = CopyPath::kHostToDevice;
  std::uint32_t first_edge = 0;    ///< into JobPlan::edges
  std::uint32_t edge_count = 0;
  Duration launch_lag{};           ///< fake devices only: earliest start after the call's start
  Duration gap{};                  ///< fake devices only: after the stream's previous operation

  [[nodiscard]] bool is_kernel() const {
    return kind == program::WorkKind::kKernel || kind == program::WorkKind::kCollective;
  }
};

enum class PlanStepKind : std::uint8_t {
  kPause,          ///< thinks, then does nothing
  kLaunch,         ///< launches `count` operations from `target` on; several: one CUDA graph
  kLaunchAndWait,  ///< and returns when the last of them has ended
  kWaitStream,     ///< everything launched on stream `target`
  kWaitDevice,     ///< everything that the process launched
  kWaitOp,         ///< operation `target` of this pass
  kIteration,      ///< iteration `target` of the pass begins
  kEnd,            ///< the marked thread's last step: the pass's last iteration ends
};

struct PlanStep {
  PlanStepKind kind = PlanStepKind::kPause;
  Duration think{};        ///< host time after the previous step, or after what it waits for
  Duration cost{};         ///< fake devices only: of the call itself, without waiting
  std::uint32_t target = 0;
  std::uint32_t count = 0;
  Duration return_lag{};   ///< fake devices only: from what was waited for to the return
  std::uint32_t after_thread = kNone;  ///< think starts when this thread has done...
  std::uint32_t after_step = 0;        ///< ...this step in this pass
};

struct PlanThread {
  std::string name;
  std::vector<PlanStep> steps;
};

/// A bubble of a training job that a policy is told of: it begins when `after_op` ends, and ends
/// when the next operation other than a collective starts.
struct PlanBubble {
  std::uint32_t after_op = 0;
  policy::BubbleInfo info;
};

/// A job that trains: its threads go on with the next pass at once.
struct LoopMode {
  std::uint64_t iterations = 0;  ///< after so many it stops; 0: when it is told to
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
  std::uint32_t rank = 0;
  std::vector<PlanThread> threads;
  std::vector<PlanOp> ops;
  std::vector<PlanEdge> edges;
  std::vector<KernelForm> forms;
  std::vector<std::string> names;
  std::uint32_t stream_count = 0;
  std::uint32_t iterations = 1;         ///< a pass
  std::uint32_t marked_thread = 0;      ///< that has kIteration and kEnd steps
  Duration start_offset{};
  std::vector<PlanBubble> bubbles;      ///< by after_op
  std::optional<LoopMode> loop;         ///< one of the two
  std::optional<ServeMode> serve;
  Bytes memory;                         ///< of the device, to be held; 0: none beyond what it needs
  std::int32_t priority = 0;            ///< of its streams; larger first
  std::uint32_t sms = 0;                ///< green context of so many SMs; 0: all
  bool report_completions = false;      ///< to the gate
  bool report_classes = false;          ///< LaunchInfo::bound is filled in
  bool report_durations = false;        ///< LaunchInfo::profiled is filled in
  bool record_operations = false;       ///< JobRecord::operations
  std::uint64_t seed = 0;
  /// Fake devices only: kernels of its streams do not compete with each other for room, since their
  /// recorded starts and durations contain it (program::OwnKernels::kAsRecorded). On hardware they
  /// do.
  bool as_recorded = false;
  /// A probe: the plan's lags, gaps and shares of forms say nothing, and a fake device applies its
  /// own: GpuSpec::launch_latency from the end of a launch call to the start on an idle stream,
  /// stream_gap after the stream's previous operation, sync_latency after what was waited for,
  /// the shares of each kernel's class; copies whose `solo` is 0 last as long as their bytes take
  /// (host_bandwidth; device to device: twice the bytes by dram_bandwidth). Hardware always does.
  bool device_lags = false;
};

}  // namespace bubblesim::capture
