// Merges stores (of job arrays or several machines, for example) into one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim::store {

struct MergeCount {
  std::uint64_t runs = 0;      ///< distinct keys in the inputs
  std::uint64_t stored = 0;    ///< number of these stored now
};

/// Stores one run for each key: a finished rather than a failed one; the first of several finished
/// ones, the last of several failed ones. A finished run in the output stays. A run belongs to all
/// the sweeps of its inputs. The output's content does not depend on the order of the inputs, and
/// merging again changes nothing. All inputs are opened before the output is made. `progress` is
/// called with the number of records read so far.
[[nodiscard]] Result<MergeCount> merge_stores(
    const std::vector<std::string>& inputs, const std::string& output,
    const std::function<void(std::uint64_t done, std::uint64_t all)>& progress);

}  // namespace bubblesim::store
