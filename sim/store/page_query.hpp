// The question that the reader asks for each page of runs.
#pragma once

#include <string>

#include "sim/store/store_reader.hpp"

namespace bubblesim::store {

inline constexpr std::size_t kPageRuns = 200;

/// The lines after sweep $1, index $2, key $3 in that order. $4 and on: the filter's sweeps, then
/// the keys between which its key lies. Columns: sweep, plan_index and key as shown, 14 of `runs`,
/// then point, repetition, settings and digest of a membership, absent where the run is shown as
/// stored.
[[nodiscard]] std::string page_query(const RowFilter& filter, RunsOf runs_of);

}  // namespace bubblesim::store
