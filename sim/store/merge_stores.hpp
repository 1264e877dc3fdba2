// Several stores into one: what job arrays and other machines wrote.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim::store {

struct MergeCount {
  std::uint64_t runs = 0;      ///< distinct keys in the inputs
  std::uint64_t stored = 0;    ///< of these, stored now
};

/// Every key once: done before failed; of several that are done the first that finished, of
/// failures the last. What the output has as done stays; a run belongs to every sweep that it
/// belongs to in some input. The output's content does not depend on
/// the order of the inputs, and merging again changes nothing. All inputs are opened before the
/// output is made. `progress` is told of the records read so far.
[[nodiscard]] Result<MergeCount> merge_stores(
    const std::vector<std::string>& inputs, const std::string& output,
    const std::function<void(std::uint64_t done, std::uint64_t all)>& progress);

}  // namespace bubblesim::store
