// Writes one rank's program, operation by operation: each is launched by the one host thread as
// soon as it is added.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/kernel_time.hpp"
#include "sim/program/program.hpp"

namespace bubblesim::synth {

/// An operation to come.
struct OpDraft {
  program::WorkKind kind = program::WorkKind::kKernel;
  std::uint16_t stream = 0;
  NameId name{};
  std::uint32_t profile = program::kNoIndex;
  Duration duration{};                             ///< alone; collectives: after the transfer
  std::uint32_t collective = program::kNoIndex;   ///< into JobProgram::collectives
};

/// Host time around a call.
struct CallCost {
  Duration think{};  ///< before it
  Duration call{};   ///< of it
};

/// A modelled launch as traces and programs state it.
[[nodiscard]] traces::LaunchShape shape_of(const model::Launch& launch);

class ProgramWriter {
 public:
  ProgramWriter(std::uint32_t rank, const hardware::GpuSpec& gpu);

  [[nodiscard]] NameId name(std::string_view text) { return program_.names.intern(text); }
  std::uint32_t add_profile(const program::KernelProfile& profile, const model::Launch& launch);

  /// Adds an operation that waits for the operations `after` too, and launches it.
  std::uint32_t launch(const OpDraft& draft, std::span<const std::uint32_t> after, CallCost cost);
  /// Adds operations in order and launches them by one call (a CUDA graph), or by as few as a step
  /// can hold (65,535 each). Returns the last. Precondition: not empty.
  std::uint32_t launch_graph(std::span<const OpDraft> drafts, CallCost cost);
  /// The host waits until the operation has ended; until the device is empty.
  void wait_for(std::uint32_t op);
  void wait_for_device();
  /// A wait whose operation is not known yet. It waits for nothing until set_wait() says which, in
  /// the same thread: one of this pass, or of a pass so far back (StepDetail::passes_back).
  [[nodiscard]] std::size_t reserve_wait();
  void set_wait(std::size_t wait, std::uint32_t op, std::uint32_t passes_back);
  void pause(Duration span);
  void begin_iteration();
  /// Sets the device memory that the rank holds from the next operation on.
  void mark_memory(std::uint64_t bytes);

  /// What was written since the last thread's end is a thread of its own: of a program whose
  /// threads are alternatives.
  void end_thread(std::string name);
  /// Ends the last thread, if anything was written since.
  [[nodiscard]] program::Program finish();

 private:
  void add_step(program::Step step);
  [[nodiscard]] std::vector<std::uint32_t> last_of_streams(
      std::span<const std::uint32_t> ops) const;
  std::uint32_t add_op(const OpDraft& draft, std::span<const std::uint32_t> after, Duration call);
  void add_launch(std::uint32_t first, std::uint16_t count, CallCost cost);
  std::uint32_t return_detail();

  program::Program program_;
  const hardware::GpuSpec& gpu_;
  std::vector<program::Step> steps_;
  std::uint32_t iterations_ = 0;
  std::uint32_t return_detail_ = program::kNoIndex;
};

}  // namespace bubblesim::synth
