// The files in which a job's processes leave what they count and what the user should know.
#pragma once

#include <string>

#include "capture/live/live_counts.hpp"

namespace bubblesim::capture::interpose {

/// The counts of this client in `folder`; where there is no such file, counts that nobody reads.
/// They stay mapped.
[[nodiscard]] LiveCounts& open_counts(const std::string& folder, const std::string& client);

/// Adds a line to the folder's notes: "client 1: process 4711 (python3) WHAT". No folder: to
/// standard error.
void note(const std::string& folder, const std::string& client, const std::string& what);

}  // namespace bubblesim::capture::interpose
