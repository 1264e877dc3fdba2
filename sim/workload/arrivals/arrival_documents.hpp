// Arrivals in formats that are one JSON document: a list of gaps, a list of queries.
#pragma once

#include <string>
#include <string_view>

#include "sim/workload/arrivals/arrival_file.hpp"

namespace bubblesim::workload {

/// [0.031, 0.012, ...]: seconds from each arrival to the next; the first counts from zero.
[[nodiscard]] Result<RecordedArrivals> parse_gaps(std::string_view text, const std::string& label);

/// {"queries": [{"timestamp": 0.023, ...}, ...]}: seconds.
[[nodiscard]] Result<RecordedArrivals> parse_queries(std::string_view text,
                                                     const std::string& label);

}  // namespace bubblesim::workload
