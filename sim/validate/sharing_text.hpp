// What came of judging co-location pairs as text, CSV and JSON. The same rows give the same bytes.
#pragma once

#include <string>
#include <vector>

#include "sim/validate/judge_sharing.hpp"

namespace bubblesim::validate {

/// A line a row and metric: measured, simulated, error.
[[nodiscard]] std::string sharing_rows_text(const std::vector<JudgedPair>& rows);
[[nodiscard]] std::string sharing_summary_text(const std::vector<SharingSummary>& summaries);
[[nodiscard]] std::string sharing_order_text(const std::vector<SharingOrder>& orders);

[[nodiscard]] std::string sharing_csv(const std::vector<JudgedPair>& rows);
[[nodiscard]] std::string sharing_json(const std::vector<JudgedPair>& rows,
                                       const std::vector<SharingSummary>& summaries,
                                       const std::vector<SharingOrder>& orders);

}  // namespace bubblesim::validate
