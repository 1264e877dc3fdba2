// An inspection as JSON: every number at full precision, nanoseconds as integers with `_ns` in
// the key, shares as fractions of 1. README.md lists the keys. Format: "bubblesim.inspect/1".
#pragma once

#include <string>

#include "traces/inspect/inspection.hpp"

namespace bubblesim::traces {

/// Two spaces an indent, a newline at the end; the same inspection gives the same bytes.
/// Bytes of names that are not UTF-8 are replaced by U+FFFD.
[[nodiscard]] std::string render_json(const JobInspection& job);

}  // namespace bubblesim::traces
