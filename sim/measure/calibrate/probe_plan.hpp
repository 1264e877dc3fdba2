// Builds the plans of probes: one host thread, one stream, kernels of known shape.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "capture/replay/job_plan.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/kernel_profile.hpp"

namespace bubblesim::measure {

/// A kernel that a probe launches.
struct ProbeKernel {
  capture::KernelForm form;
  Duration solo{};
  friend auto operator<=>(const ProbeKernel&, const ProbeKernel&) = default;
};

/// Threads of each block, if nothing else is said: three such blocks of different kernels fit on
/// an SM of any GPU since Volta.
inline constexpr std::uint32_t kProbeThreads = 512;

/// What the GPU model needs to know of such blocks.
[[nodiscard]] program::LaunchNeeds probe_needs(std::uint64_t blocks);

/// So many blocks of a class. Shares are the base device's for the class: what stand-ins of real
/// kernels aim at; a fake device has its own.
[[nodiscard]] capture::KernelForm probe_form(std::uint64_t blocks,
                                             program::KernelClass kernel_class,
                                             const hardware::GpuSpec& spec);

/// One wave that fills the GPU: nothing else fits beside it.
[[nodiscard]] capture::KernelForm filling_form(const hardware::GpuSpec& spec);

/// So many blocks of which an SM holds one: each takes more than half of its shared memory.
[[nodiscard]] capture::KernelForm lone_block_form(std::uint64_t blocks,
                                                  program::KernelClass kernel_class,
                                                  const hardware::GpuSpec& spec);

/// Kernels of 100 us that each fill the GPU, in a row that is long enough to be seen going away.
[[nodiscard]] std::vector<ProbeKernel> filling_row(const hardware::GpuSpec& spec);

/// Steps of one pass, in order. Every operation is launched by a call of its own, once a pass.
class ProbePlan {
 public:
  ProbePlan(std::string name, std::uint32_t client);

  /// Returns the operation.
  std::uint32_t launch(const ProbeKernel& kernel);
  std::uint32_t copy(capture::CopyPath path, Bytes bytes);
  /// Until everything launched has ended.
  void wait();
  void wait_for(std::uint32_t op);
  /// Up to program::kLongestShortSpan.
  void pause(Duration length);
  /// All kernels in this order again and again without a gap: the host is one round ahead of the
  /// device, so that the stream never runs dry.
  void row(std::span<const ProbeKernel> kernels);

  /// Passes until told to stop if `passes` is 0.
  [[nodiscard]] capture::JobPlan take(std::uint64_t passes, Duration start_offset = {});

 private:
  std::uint32_t add(program::Op op, const std::string& name);
  void step(program::StepKind kind, std::uint32_t target, std::uint16_t count = 0,
            Duration think = {});

  capture::JobPlan plan_;
};

}  // namespace bubblesim::measure
