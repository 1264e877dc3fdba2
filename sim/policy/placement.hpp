// Which fillers run on which GPUs of a cluster, and when queued fill jobs begin: the other half of
// a policy. One placer decides for all GPUs of a run; a policy object decides on each of them.
//
// It sees what a cluster's scheduler sees: memory, the share of time that training leaves idle as
// profiled, what is placed where, and what a job says of itself. It knows no simulated time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policy {

/// A GPU that a rank of training runs on.
struct GpuState {
  GpuId id;
  Bytes memory;               ///< of the device
  Bytes used;                 ///< by training and by what is placed on it
  Bytes bubble_memory;        ///< least that training leaves free during its bubbles; 0: not known
  Duration iteration{};       ///< of training alone; 0: not known
  Duration bubble_time{};     ///< part in bubbles; only if the policy declared bubbles
  Duration pipeline_time{};   ///< of that, waits for pipeline peers
  double request = 0;         ///< sum of JobInfo::request of what is placed on it
  double limit = 0;           ///< sum of JobInfo::limit of the same
  std::uint32_t jobs = 0;     ///< placed on it and not ended
};

/// Something to be placed: an instance of a filler that serves requests, or a fill job of finite
/// work from a queue.
struct JobInfo {
  std::uint32_t id = 0;       ///< in order of submission
  std::uint32_t kind = 0;     ///< equal for instances, and for jobs, of one filler
  std::string name;
  Role role = Role::kOffline;
  Bytes memory;               ///< on a device; 0: not known
  bool memory_known = false;
  double request = 0;         ///< SM share that it asks for, 0..1; 0: not said
  double limit = 0;           ///< SM share that it can use, 0..1; 0: not said
  Duration work{};            ///< on a GPU of its own; 0: endless
  std::optional<Instant> deadline;
  Instant submitted{};
};

struct Placement {
  std::uint32_t job = 0;
  GpuId gpu;
};

class Placer {
 public:
  virtual ~Placer() = default;
  /// Returns which of the waiting jobs begin now, and where. Asked at the start, and whenever a job
  /// is submitted or has ended; jobs in order of submission, GPUs by id. A job is placed at most
  /// once; one that is not placed waits. Checked: unknown jobs or GPUs, a job placed twice, and
  /// memory beyond the device's (unless the policy's memory is unified) end the run.
  virtual std::vector<Placement> place(std::span<const JobInfo> waiting,
                                       std::span<const GpuState> gpus, Instant now) = 0;

  /// Asked once, at the end. The default adds nothing.
  virtual void add_counts(CounterSet&) const {}
};

}  // namespace bubblesim::policy
