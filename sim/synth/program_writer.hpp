// Writes one rank's program, operation by operation: each is launched by the one host thread as
// soon as it is added.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/kernel_time.hpp"
#include "sim/program/program.hpp"
#include "sim/synth/timed_model.hpp"

namespace bubblesim::synth {

/// An operation to be added.
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
  Duration think{};  ///< before the call
  Duration call{};   ///< of the call
};

/// A modelled launch in the form of traces and programs.
[[nodiscard]] traces::LaunchShape shape_of(const model::Launch& launch);

/// Adds a kernel's profile and shape to a program; returns its index.
std::uint32_t add_profile(const program::KernelProfile& profile, const model::Launch& launch,
                          program::Program& program);

class ProgramWriter {
 public:
  ProgramWriter(std::uint32_t rank, const hardware::GpuSpec& gpu);

  [[nodiscard]] NameId name(std::string_view text) { return program_.names.intern(text); }
  std::uint32_t add_profile(const program::KernelProfile& profile, const model::Launch& launch) {
    return synth::add_profile(profile, launch, program_);
  }
  /// The operation of a kernel, whose name and profile are added to the program.
  [[nodiscard]] OpDraft prepare(const TimedKernel& kernel);

  /// Adds an operation that also waits for the operations `after`, and launches it.
  std::uint32_t launch(const OpDraft& draft, std::span<const std::uint32_t> after, CallCost cost);
  /// Adds operations in order and launches them by one call (a CUDA graph), or by as few as a step
  /// can hold (65,535 each). Returns the last; kNoIndex: there are none.
  std::uint32_t launch_graph(std::span<const OpDraft> drafts, CallCost cost);
  /// The host waits until the operation has ended (wait_for), or until the device is empty.
  void wait_for(std::uint32_t op);
  void wait_for_device();
  /// Reserves a wait in the present thread, without effect until set_wait() names its operation: of
  /// this pass, or of an earlier one (StepDetail::passes_back).
  [[nodiscard]] std::size_t reserve_wait();
  void set_wait(std::size_t wait, std::uint32_t op, std::uint32_t passes_back);
  void pause(Duration span);
  void begin_iteration();
  /// Sets the device memory that the rank holds from the next operation on.
  void mark_memory(std::uint64_t bytes);

  /// Ends a thread: steps written since the last end are a thread of their own, in a program whose
  /// threads are alternatives.
  void end_thread(std::string name);
  /// Ends the last thread, if it has steps.
  [[nodiscard]] program::Program finish();

 private:
  void keep_result(std::uint32_t op);
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

/// The kernel profiles of a program under construction: equal ones are stored once.
class ProfileTable {
 public:
  /// The index of the kernel's profile; `add(profile, launch)` appends one and returns its index.
  template <class Add>
  [[nodiscard]] std::uint32_t index_of(const TimedKernel& kernel, Add&& add) {
    const auto [place, fresh] = known_.try_emplace(key_of(kernel), 0);
    if (fresh) place->second = add(kernel.profile, kernel.launch);
    return place->second;
  }

 private:
  /// The fields by which profiles are equal: blocks, warps, registers, shared memory, blocks an SM,
  /// class, shares, and the shape as launched.
  using Key = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint64_t, std::uint32_t,
                         program::KernelClass, double, double, std::array<std::uint32_t, 3>,
                         std::array<std::uint32_t, 3>>;

  static Key key_of(const TimedKernel& kernel) {
    const program::KernelProfile& profile = kernel.profile;
    return {profile.blocks,
            profile.residency.warps,
            profile.residency.registers,
            profile.residency.shared_memory_bytes,
            profile.residency.blocks_per_sm,
            profile.kernel_class,
            profile.dram_share,
            profile.issue_share,
            kernel.launch.grid,
            kernel.launch.block};
  }

  std::map<Key, std::uint32_t> known_;
};

}  // namespace bubblesim::synth
