// Turns a recording into a timeline: sorts records, ties operations to their launches, turns waits
// into edges, attaches announced collectives to their kernels. traces/join/README.md has the rules.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Provenance::format of a file as the recorder writes it, and once it is joined.
inline constexpr std::string_view kRecordingFormat = "bubblesim-recording";
inline constexpr std::string_view kCaptureFormat = "bubblesim-capture";

/// Bit of SyncRecord::event: the call writes a value into memory, or waits for one; the bits below
/// are a hash of address and value.
inline constexpr std::uint64_t kMemoryValue = std::uint64_t{1} << 62U;

/// Whether `trace` is as the recorder wrote it.
[[nodiscard]] bool is_recording(const RankTrace& trace);

/// Before: records are in any order, operations name their launch by correlation only, ids are
/// valid. After: `syncs` and `notes` are empty, and a recording's format is kCaptureFormat.
/// Counters: traces/join/join_parts.hpp. Complexity: O(n log n) in records.
void join_recording(RankTrace& trace);

/// The same, and a process that used several GPUs becomes a rank for each GPU, all with one process
/// number (split_devices.hpp). Ranks without a launcher's number get the number in NCCL's largest
/// communicator. Other traces are unchanged.
[[nodiscard]] std::vector<RankTrace> join_process(RankTrace trace);

}  // namespace bubblesim::traces
