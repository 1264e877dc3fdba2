// Judged servers as text, CSV and JSON. Columns and keys: sim/observe/OUTPUTS.md.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/validate/serving/judge_serving.hpp"

namespace bubblesim::validate {

/// The figures of each bundle, and what they come to.
[[nodiscard]] std::string serving_text(const std::vector<JudgedBundle>& bundles, bool figures);
[[nodiscard]] std::string serving_figures_csv(const std::vector<JudgedBundle>& bundles);
/// Every request of every bundle: what notebooks/tables/latencies.py draws.
[[nodiscard]] std::string serving_requests_csv(const std::vector<JudgedBundle>& bundles);
[[nodiscard]] Json serving_json(const std::vector<JudgedBundle>& bundles);

}  // namespace bubblesim::validate
