// What came of judging tables of measured sharing, as text, CSV and JSON.
#pragma once

#include <string>
#include <vector>

#include "sim/validate/judge_sharing.hpp"

namespace bubblesim::validate {

/// For tables_text().
[[nodiscard]] std::vector<TableNote> sharing_table_notes(const std::vector<JudgedRow>& rows,
                                                         const SharingStage& stage);
[[nodiscard]] std::string sharing_rows_text(const std::vector<JudgedRow>& rows);
[[nodiscard]] std::string sharing_summary_text(const std::vector<SharingSummary>& summaries);
/// Empty if every row is judged.
[[nodiscard]] std::string unjudged_text(const std::vector<UnjudgedRows>& unjudged);
[[nodiscard]] std::string sharing_order_text(const std::vector<SharingOrder>& orders);

/// A line a figure, also of one that is blank or 0 in the table; a row that was not predicted has
/// one line.
[[nodiscard]] std::string sharing_csv(const std::vector<JudgedRow>& rows);
[[nodiscard]] std::string sharing_json(const std::vector<JudgedRow>& rows,
                                       const std::vector<SharingSummary>& summaries,
                                       const std::vector<SharingOrder>& orders);

}  // namespace bubblesim::validate
