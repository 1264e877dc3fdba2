// Makes a timeline of a recording: records sorted, operations tied to their launches, waits made
// edges, announced collectives put on their kernels. traces/join/README.md has the rules.
#pragma once

#include <string_view>

#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Provenance::format of a file as the recorder writes it, and once it is joined.
inline constexpr std::string_view kRecordingFormat = "bubblesim-recording";
inline constexpr std::string_view kCaptureFormat = "bubblesim-capture";

/// Is `trace` as the recorder wrote it?
[[nodiscard]] bool is_recording(const RankTrace& trace);

/// Expects records in any order, operations that name their launch by correlation alone, `syncs`
/// and `notes` with what belongs to them; ids must be valid. Leaves `syncs` and `notes` empty and
/// a recording's format kCaptureFormat. Counters: traces/join/join_parts.hpp.
/// Complexity: O(n log n) in records.
void join_recording(RankTrace& trace);

}  // namespace bubblesim::traces
