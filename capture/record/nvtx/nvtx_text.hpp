// Converts names from NVTX to valid UTF-8 of bounded length. Bad input gives U+FFFD, never a fault;
// null gives an empty text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "capture/record/host/host_event.hpp"

namespace bubblesim::capture {

inline constexpr std::size_t kLongestName = 256;          ///< bytes of a range's or mark's name
inline constexpr std::size_t kLongestAnnouncement = 1024; ///< of the text of a stand-in

/// Reads at most `limit` bytes of `text`; cuts between characters.
[[nodiscard]] std::string name_of(const char* text, std::size_t limit = kLongestName);
/// wchar_t is UTF-32 on Linux.
[[nodiscard]] std::string name_of(const wchar_t* text, std::size_t limit = kLongestName);

/// `text` with at most `limit` bytes, cut between characters.
void cut(std::string& text, std::size_t limit);

// The text that a stand-in of a process group announces a collective with: the message of an NVTX
// range, "bubblesim.collective op=all_reduce bytes=4096 ..." (grammar: capture/torch/README.md).

/// Is `text` an announcement? Cheap: every range is tested.
[[nodiscard]] bool announces_collective(std::string_view text);

/// The content of an announcement; unknown keys are skipped, values that are not numbers count as
/// absent. `source` is kStandIn; the caller sets start, duration and thread.
[[nodiscard]] CollectiveEvent read_announcement(std::string_view text);

}  // namespace bubblesim::capture
