// A program whose passes are the steps of a language-model engine.
#pragma once

#include <cstdint>

#include "sim/program/program.hpp"
#include "sim/serving/step.hpp"

namespace bubblesim::workload {

/// Its threads are alternatives, of which one runs at a time (ProgramRun::start_thread). Each run
/// has its own object: set() changes durations and profiles between two passes.
class StepProgram {
 public:
  virtual ~StepProgram() = default;
  /// Stays valid. Only set() changes its operations, in duration and profile.
  [[nodiscard]] virtual const program::Program& program() const = 0;
  /// The launch of the step without regard to other members.
  [[nodiscard]] virtual serving::StepShape shape_of(const serving::ScheduledStep& step) const = 0;
  /// Sets up a thread for the step; returns the thread's index. A `queued` step was prepared while
  /// another ran. `shape`: with its group. Precondition: no pass runs.
  [[nodiscard]] virtual std::uint32_t set(const serving::ScheduledStep& step,
                                          const serving::StepShape& shape, bool queued) = 0;
};

}  // namespace bubblesim::workload
