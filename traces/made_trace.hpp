// How a trace that a simulation wrote (sim/synth) is told from a recording.
#pragma once

#include <string_view>

namespace bubblesim::traces {

/// Provenance::format of such a trace.
inline constexpr std::string_view kMadeFormat = "bubblesim-synth";

}  // namespace bubblesim::traces
