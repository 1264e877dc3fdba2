// A program whose passes are the steps of a language-model engine.
#pragma once

#include <cstdint>

#include "sim/program/program.hpp"
#include "sim/serving/step.hpp"

namespace bubblesim::workload {

/// Its threads are alternatives, of which one runs at a time (ProgramRun::start_thread). One object
/// belongs to one run: between two passes it changes what the operations of a thread take.
class StepProgram {
 public:
  virtual ~StepProgram() = default;
  /// Stays where it is. Its operations change in set() only, in duration and profile.
  [[nodiscard]] virtual const program::Program& program() const = 0;
  /// Makes a thread the step, and returns its index. A `queued` step was prepared while another
  /// ran. Precondition: no pass runs.
  [[nodiscard]] virtual std::uint32_t set(const serving::Step& step, bool queued) = 0;
};

}  // namespace bubblesim::workload
