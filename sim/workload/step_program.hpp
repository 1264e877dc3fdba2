// A program whose passes are the steps of a language-model engine.
#pragma once

#include <cstdint>

#include "sim/program/program.hpp"
#include "sim/serving/step.hpp"

namespace bubblesim::workload {

/// Tokens that go through the model in a step, including padding to a graph.
struct StepTokens {
  std::uint32_t own = 1;
  std::uint32_t group = 1;  ///< of all data-parallel members, which step together; without others,
                            ///< its own
  /// The most that the steps of all members have.
  serving::StepGraphs graphs = serving::StepGraphs::kWhole;
};

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
  /// another ran. `tokens.own` counts the step's tokens, or those of its captured graph.
  /// Precondition: no pass runs.
  [[nodiscard]] virtual std::uint32_t set(const serving::ScheduledStep& step, StepTokens tokens,
                                          bool queued) = 0;
};

}  // namespace bubblesim::workload
