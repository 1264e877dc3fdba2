// Measured all-reduce tables of one node, row by row.
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/validate/report.hpp"

namespace bubblesim::validate {

/// Where the tables lie in the folder of public data, and the cluster that they are of.
inline constexpr const char* kAllReduceFolder = "VIA-Research+vTrain/trace/a100";
inline constexpr const char* kAllReduceCluster = "dgx-a100-80gb";

/// Rings, as network::judge_all_reduce() takes them; `fit` rows are network::is_fit_row(). Sizes
/// that are powers of two are brief. `data`: the folder of public data.
[[nodiscard]] CheckedResult<std::vector<ReportRow>> judge_all_reduces(const std::string& data,
                                                                      const std::string& configs);

}  // namespace bubblesim::validate
