// A probe: runs of a rig, and the constants of a device that follow from their records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "capture/replay/job_plan.hpp"
#include "capture/rig/rig.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/policy/policy.hpp"
#include "sim/program/kernel_profile.hpp"

namespace bubblesim::measure {

using capture::RigSetup;

/// Median and quartiles of repeated measurements.
struct Spread {
  std::size_t count = 0;
  double low = 0;     ///< first quartile
  double middle = 0;  ///< median
  double high = 0;    ///< third quartile
  friend bool operator==(const Spread&, const Spread&) = default;
};

[[nodiscard]] Spread spread_of(std::vector<double> values);

/// A run of these plans, a client each; every client's share is the default, a whole GPU.
[[nodiscard]] RigSetup probe_run(policy::SharingMode mode, std::vector<capture::JobPlan> plans);

/// A run of each of the probe's kernels once and alone, so that stand-ins are measured while the
/// GPU is otherwise idle, and kept for the processes of the run itself.
[[nodiscard]] RigSetup rehearsal(const RigSetup& run);

/// A probe's result for one constant. Times are in nanoseconds, rates in bytes a second.
struct Finding {
  std::string key;      ///< of the device file
  Spread spread;
  std::string missing;  ///< why there is no result, as half a sentence; empty: there is one
};

/// A finding needs this many measurements.
inline constexpr std::size_t kLeastCount = 8;

/// The finding of these values. Nothing is found if they are fewer than kLeastCount, or if their
/// middle half is wider than half of the median and wider than `grain`.
[[nodiscard]] Finding finding_of(std::string key, std::vector<double> values, double grain);

/// A spread of times up to this, ns, is accepted.
inline constexpr double kTimeGrain = 500;

/// The finding of a span that cannot be negative: the median or 0, whatever the spread, if the
/// measurements' middle half contains zero or the median is negative by less than kTimeGrain.
[[nodiscard]] Finding at_least_zero(Finding finding);

/// Records of one rig's jobs, by client.
using Records = std::vector<capture::JobRecord>;

/// Its duration in nanoseconds.
[[nodiscard]] double length_of(const capture::OperationRecord& operation);

/// A job's operations by their starts.
[[nodiscard]] std::vector<capture::OperationRecord> by_start(const capture::JobRecord& record);

// Builds the plans of probes: one host thread, one stream, kernels of known shape.

/// A kernel that a probe launches.
struct ProbeKernel {
  capture::KernelForm form;
  Duration solo{};
  friend auto operator<=>(const ProbeKernel&, const ProbeKernel&) = default;
};

/// Threads of each block by default: three such blocks of different kernels fit on an SM of any GPU
/// since Volta.
inline constexpr std::uint32_t kProbeThreads = 512;

/// The needs of blocks with kProbeThreads threads in the GPU model.
[[nodiscard]] program::LaunchNeeds probe_needs(std::uint64_t blocks);

/// A form with this many blocks of a class, and with the class's shares of DRAM bandwidth and issue
/// slots in `spec`: stand-ins of real kernels aim at them; a fake device has its own.
[[nodiscard]] capture::KernelForm probe_form(std::uint64_t blocks,
                                             program::KernelClass kernel_class,
                                             const hardware::GpuSpec& spec);

/// This many blocks, one at a time on an SM: each takes more than half of the shared memory.
[[nodiscard]] capture::KernelForm lone_block_form(std::uint64_t blocks,
                                                  program::KernelClass kernel_class,
                                                  const hardware::GpuSpec& spec);

/// A row of kernels of 100 us that each fill the GPU, so long that losing the GPU shows.
[[nodiscard]] std::vector<ProbeKernel> filling_row(const hardware::GpuSpec& spec);

/// Steps of one pass, in order. Every operation is launched by a call of its own, once a pass.
class ProbePlan {
 public:
  ProbePlan(std::string name, std::uint32_t client);

  /// Returns the operation.
  std::uint32_t launch(const ProbeKernel& kernel);
  std::uint32_t copy(capture::CopyPath path, Bytes bytes);
  /// Waits until everything launched has ended.
  void wait();
  void wait_for(std::uint32_t op);
  /// Pauses for up to program::kLongestShortSpan.
  void pause(Duration length);
  /// Launches all kernels in this order again and again without a gap: the host is one round ahead
  /// of the device, so that the stream never runs empty.
  void row(std::span<const ProbeKernel> kernels);

  /// `passes` 0: until told to stop.
  [[nodiscard]] capture::JobPlan take(std::uint64_t passes, Duration start_offset = {});

 private:
  std::uint32_t add(program::Op op, const std::string& name);
  void step(program::StepKind kind, std::uint32_t target, std::uint16_t count = 0,
            Duration think = {});

  capture::JobPlan plan_;
};

}  // namespace bubblesim::measure
