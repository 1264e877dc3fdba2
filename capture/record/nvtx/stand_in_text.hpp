// The text that a stand-in of a process group announces a collective with: the message of an NVTX
// range, "bubblesim.collective op=all_reduce bytes=4096 ..." (grammar: capture/torch/README.md).
#pragma once

#include <optional>
#include <string_view>

#include "capture/record/host/host_event.hpp"

namespace bubblesim::capture {

/// Is `text` an announcement? Cheap: every range is asked.
[[nodiscard]] bool announces_collective(std::string_view text);

/// What an announcement says; unknown keys are skipped, values that are no numbers are as absent.
/// `source` is kStandIn; start, duration and thread are left to the caller.
[[nodiscard]] CollectiveEvent read_announcement(std::string_view text);

}  // namespace bubblesim::capture
