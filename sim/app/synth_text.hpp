// What `bubblesim synth` found, as text and as JSON.
#pragma once

#include <optional>
#include <string>

#include "sim/synth/lone_iteration.hpp"
#include "sim/synth/synthesise.hpp"
#include "traces/inspect/inspection.hpp"

namespace bubblesim::app {

struct SynthOutcome {
  const synth::ParallelPlan& plan;
  const synth::SynthesisedJob& job;
  synth::LoneIteration alone;
  std::optional<traces::JobInspection> bubbles;  ///< nothing: too large a job to record
  traces::IterationChoice measured;  ///< iterations of the trace whose bubbles these are
};

[[nodiscard]] std::string synth_text(const SynthOutcome& outcome);
[[nodiscard]] std::string synth_json(const SynthOutcome& outcome);

}  // namespace bubblesim::app
