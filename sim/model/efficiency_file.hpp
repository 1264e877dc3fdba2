// Reads efficiency files (configs/efficiency/*.json; each key is explained in
// configs/efficiency/README.md). As in device files, every constant is an object with its unit
// and its source:
//
//   "gemm": {"math_share": {"value": 0.91, "unit": "share", "source": "fitted: ..."}, ...}
//
// A constant without a source, with another unit, missing or unknown is a fault; all faults of a
// file are reported at once.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"
#include "sim/model/efficiency.hpp"

namespace bubblesim::model {

/// Everything but the id; finishes the root.
[[nodiscard]] Efficiency read_efficiency(ObjectReader& root);

/// `name` is a path (it has a "/" or ends in ".json"), else the id of a file in `folder`: the id
/// of a device ("h100"), or another one that a user made.
[[nodiscard]] CheckedResult<Efficiency> find_efficiency(std::string_view name,
                                                        const std::string& folder);

}  // namespace bubblesim::model
