#include "sim/validate/report_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/text/text_table.hpp"

namespace bubblesim::validate {
namespace {

std::string aim_text(const Summary& summary) {
  if (!summary.aim) return "";
  const char* verdict = summary.met ? "met" : "missed";
  if (summary.aim->bound == 0) return fmt::format("exact: {}", verdict);
  return fmt::format("{} <= {:.0f} %: {}",
                     summary.aim->measure == AimMeasure::kMean ? "mean" : "each",
                     100 * summary.aim->bound, verdict);
}

}  // namespace

std::string tables_text(const std::vector<TableNote>& tables) {
  if (tables.empty()) return {};
  std::string out = "tables\n";
  for (const TableNote& note : tables) {
    out += fmt::format("{}: setting {}, device {}\n", note.table, note.setting,
                       fmt::join(note.devices, ", "));
    if (!note.unread.empty()) {
      out += fmt::format("  columns that are not read: {}\n", fmt::join(note.unread, ", "));
    }
    for (const auto& [metric, count] : note.left_out) {
      out += fmt::format("  blank or 0 and left out: {} in {} rows\n", metric, count);
    }
  }
  return out + "\n";
}

std::string summary_text(const std::vector<Summary>& summaries) {
  constexpr Align kLeft = Align::kLeft;
  constexpr Align kRight = Align::kRight;
  TextTable table({"table", "role", "rows", "stated", "failed", "|error|", "bias", "worst",
                   "within 5%", "aim"},
                  {kLeft, kLeft, kRight, kRight, kRight, kRight, kRight, kRight, kRight, kLeft},
                  "");
  for (const Summary& summary : summaries) {
    table.row({summary.table, summary.role, fmt::to_string(summary.rows),
               fmt::to_string(summary.stated), fmt::to_string(summary.failed),
               fmt::format("{:.1f}%", 100 * summary.mean_absolute),
               fmt::format("{:+.1f}%", 100 * summary.bias),
               fmt::format("{:+.1f}%", 100 * summary.worst),
               fmt::format("{:.0f}%", 100 * summary.within_5_percent), aim_text(summary)});
  }
  return table.text();
}

}  // namespace bubblesim::validate
