// A check sum of what a run left, stored beside it: damage that the database does not notice (a bit
// inside a number) is found when the whole record is read.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/store/run_record.hpp"

namespace bubblesim::store {

/// The digest of everything that a store keeps of the record; FNV-1a with 64 bits (Fowler, Noll,
/// Vo: draft-eastlake-fnv), no defence against forgery. NaN is as if absent, -0 as 0. Rows have as
/// many cells as there are columns.
[[nodiscard]] std::uint64_t record_digest(const RunRecord& record);

/// The digest of a record whose histograms of `latencies` are encoded already.
using EncodedHistograms = std::vector<std::vector<std::uint8_t>>;
[[nodiscard]] std::uint64_t record_digest(const RunRecord& record,
                                          const EncodedHistograms& histograms);

/// The digest of what a sweep says of a run: sweep, key, index, point, repetition, settings.
[[nodiscard]] std::uint64_t membership_digest(std::string_view sweep, const PlannedRun& run);

[[nodiscard]] EncodedHistograms encode_histograms(const RunRecord& record);

}  // namespace bubblesim::store
