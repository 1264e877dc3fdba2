#include "sim/validate/report_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/json.hpp"
#include "sim/text/csv_text.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::validate {
namespace {

std::string row_line(const ReportRow& row) {
  const std::string head = fmt::format("{:<5} {:<72}", role_name(row.role), row.label);
  if (row.outcome != RowOutcome::kPredicted) {
    return fmt::format("{} {}: {}\n", head, outcome_name(row.outcome), row.note);
  }
  std::string line = fmt::format("{} {:>11.5g} {:>11.5g} {:<8} {:>+7.1f}%", head, row.measured,
                                 row.simulated, row.unit, 100 * row.error());
  if (!row.note.empty()) line += "  " + row.note;
  return line + "\n";
}

std::string aim_text(const Summary& summary) {
  if (!summary.aim) return "";
  const char* verdict = summary.met ? "met" : "missed";
  if (summary.aim->bound == 0) return fmt::format("exact: {}", verdict);
  return fmt::format("{} <= {:.0f} %: {}",
                     summary.aim->measure == AimMeasure::kMean ? "mean" : "each",
                     100 * summary.aim->bound, verdict);
}

Json row_json(const ReportRow& row) {
  Json out = {{"table", row.table},     {"role", role_name(row.role)},
              {"row", row.label},       {"unit", row.unit},
              {"outcome", outcome_name(row.outcome)}};
  if (row.outcome == RowOutcome::kPredicted) {
    out["measured"] = row.measured;
    out["simulated"] = row.simulated;
    out["error"] = row.error();
  }
  if (!row.note.empty()) out["note"] = row.note;
  return out;
}

Json summary_json(const Summary& summary) {
  Json out = {{"table", summary.table},
              {"role", summary.role},
              {"rows", summary.rows},
              {"stated", summary.stated},
              {"failed", summary.failed},
              {"mean_absolute_error", summary.mean_absolute},
              {"bias", summary.bias},
              {"worst", summary.worst},
              {"worst_row", summary.worst_label},
              {"within_5_percent", summary.within_5_percent}};
  if (summary.aim) {
    out["aim"] = {{"of", summary.aim->measure == AimMeasure::kMean ? "mean" : "each"},
                  {"bound", summary.aim->bound},
                  {"met", summary.met}};
  }
  return out;
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

std::string rows_text(const std::vector<ReportRow>& rows) {
  std::string out;
  std::string table;
  std::size_t hidden = 0;
  const auto close = [&] {
    if (hidden > 0) out += fmt::format("      and {} rows between these (--csv has all)\n", hidden);
    hidden = 0;
  };
  for (const ReportRow& row : rows) {
    if (row.table != table) {
      close();
      table = row.table;
      out += fmt::format("{}{}\n{:<5} {:<72} {:>11} {:>11} {:<8} {:>8}\n", out.empty() ? "" : "\n",
                         table, "role", "row", "measured", "simulated", "unit", "error");
    }
    if (row.brief || row.outcome != RowOutcome::kPredicted) {
      out += row_line(row);
    } else {
      ++hidden;
    }
  }
  close();
  return out;
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

std::string rows_csv(const std::vector<ReportRow>& rows) {
  std::string out = "table,role,row,unit,outcome,measured,simulated,error,note\n";
  for (const ReportRow& row : rows) {
    const bool predicted = row.outcome == RowOutcome::kPredicted;
    out += fmt::format("{},{},{},{},{},{},{}\n", row.table, role_name(row.role),
                       csv_quoted(row.label), row.unit, outcome_name(row.outcome),
                       predicted ? fmt::format("{},{},{}", row.measured, row.simulated, row.error())
                                 : std::string(",,"),
                       csv_quoted(row.note));
  }
  return out;
}

std::string report_json(const std::vector<ReportRow>& rows,
                        const std::vector<Summary>& summaries) {
  Json out = {{"rows", Json::array()}, {"summary", Json::array()}};
  for (const ReportRow& row : rows) out["rows"].push_back(row_json(row));
  for (const Summary& summary : summaries) out["summary"].push_back(summary_json(summary));
  return indented_text(out, 1) + "\n";
}

}  // namespace bubblesim::validate
