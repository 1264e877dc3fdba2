// Decides which fillers run on which GPUs of a cluster, and when queued fill jobs begin: the other
// half of a policy. One placer decides for all GPUs of a run; a policy object decides on each of
// them.
//
// A placer sees what a cluster's scheduler sees: memory, training's profiled idle share, placed
// jobs, and each job's declaration. It does not know simulated time.
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

/// A GPU with a rank of training.
struct GpuState {
  GpuId id;
  Bytes memory;               ///< of the device
  Bytes used;                 ///< by training and by placed jobs
  Bytes bubble_memory;        ///< least memory that training leaves free during its bubbles; 0: not
                              ///< known
  Duration iteration{};       ///< of training alone; 0: not known
  Duration bubble_time{};     ///< time of an iteration in bubbles; only if the policy declared
                              ///< bubbles
  Duration pipeline_time{};   ///< part of the time that waits for pipeline peers
  double request = 0;         ///< sum of JobInfo::request over placed jobs
  double limit = 0;           ///< sum of JobInfo::limit over placed jobs
  std::uint32_t jobs = 0;     ///< placed on it and not ended
};

/// A job to be placed: an instance of a filler that serves requests, or a fill job of finite work
/// from a queue.
struct JobInfo {
  std::uint32_t id = 0;       ///< in order of submission
  std::uint32_t kind = 0;     ///< equal for instances, or jobs, of one filler
  std::string name;
  Role role = Role::kOffline;
  Bytes memory;               ///< on a device; 0: not known
  bool memory_known = false;
  double request = 0;         ///< requested SM share, 0..1; 0: not said
  double limit = 0;           ///< usable SM share, 0..1; 0: not said
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
  /// Returns the waiting jobs that begin now, with their GPUs. Called at the start, and whenever a
  /// job is submitted or has ended; jobs in order of submission, GPUs by id. A job is placed at
  /// most once; the others wait. Checked: unknown jobs or GPUs, a job placed twice, and memory
  /// beyond the device's (unless the policy's memory is unified) end the run.
  virtual std::vector<Placement> place(std::span<const JobInfo> waiting,
                                       std::span<const GpuState> gpus, Instant now) = 0;

  /// Called once, at the end. The default adds nothing.
  virtual void add_counts(CounterSet&) const {}
};

}  // namespace bubblesim::policy
