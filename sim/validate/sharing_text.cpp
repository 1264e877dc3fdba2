#include "sim/validate/sharing_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "sim/base/add_once.hpp"
#include "sim/base/json.hpp"
#include "sim/text/csv_text.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::validate {
namespace {

std::string row_line(const JudgedRow& row) {
  std::string line = fmt::format("{:<5} {:<13}", role_name(row.row.role), row.row.system);
  if (row.outcome != RowOutcome::kPredicted) {
    return fmt::format("{} {}: {}\n", line, outcome_name(row.outcome), row.note);
  }
  for (const SharingFigure& figure : row.row.figures) {
    line += fmt::format(" | {} {:.4g} {:.4g} {:+.1f}%", figure.metric, figure.measured,
                        figure.simulated, 100 * figure.error());
  }
  line += "\n";
  if (!row.note.empty()) line += "      " + row.note + "\n";
  if (!row.over_time.empty()) {
    line += fmt::format("      passes/s over time: {:.3g}\n", fmt::join(row.over_time, " "));
  }
  return line;
}

Json row_json(const JudgedRow& row) {
  Json out = {{"table", row.row.table},
              {"role", role_name(row.row.role)},
              {"subject", row.row.subject},
              {"system", row.row.system},
              {"outcome", outcome_name(row.outcome)}};
  if (!row.note.empty()) out["note"] = row.note;
  if (row.outcome != RowOutcome::kPredicted) return out;
  for (const SharingFigure& figure : row.row.figures) {
    out["figures"][figure.metric] = {{"measured", figure.measured},
                                     {"simulated", figure.simulated},
                                     {"error", figure.error()}};
  }
  if (!row.row.left_out.empty()) out["left_out"] = row.row.left_out;
  return out;
}

TextTable sharing_table() {
  constexpr Align kLeft = Align::kLeft;
  constexpr Align kRight = Align::kRight;
  return {{"system", "metric", "role", "rows", "|error|", "bias", "worst", "aim"},
          {kLeft, kLeft, kLeft, kRight, kRight, kRight, kRight, kLeft},
          ""};
}

std::string aim_text(const SharingSummary& summary) {
  if (summary.aim <= 0) return {};
  return fmt::format("{} <= {:.0f} {}: {}; {:.0f} % of rows within",
                     summary.points ? "each" : "mean", 100 * summary.aim,
                     summary.points ? "points" : "%", summary.met() ? "met" : "missed",
                     100 * summary.within_aim);
}

std::vector<std::string> summary_row(const SharingSummary& summary) {
  return {summary.system,
          summary.metric,
          summary.role,
          fmt::to_string(summary.rows),
          fmt::format("{:.1f}%", 100 * summary.mean_absolute),
          fmt::format("{:+.1f}%", 100 * summary.bias),
          fmt::format("{:+.1f}%", 100 * summary.worst),
          aim_text(summary)};
}

}  // namespace

std::vector<TableNote> sharing_table_notes(const std::vector<JudgedRow>& rows,
                                            const SharingStage& stage) {
  std::vector<TableNote> out;
  for (const auto& [table, setting] : stage.settings) {
    TableNote note{table, setting.path, {}, stage.unread.at(table), {}};
    for (const JudgedRow& row : rows) {
      if (row.row.table != table) continue;
      if (row.outcome != RowOutcome::kStated) add_once(note.devices, stage.device_of(row.row));
      for (const std::string& metric : row.row.left_out) ++note.left_out[metric];
    }
    if (note.devices.empty()) note.devices = {setting.device};
    out.push_back(std::move(note));
  }
  return out;
}

std::string sharing_rows_text(const std::vector<JudgedRow>& rows) {
  std::string out;
  std::string subject;
  for (const JudgedRow& row : rows) {
    const std::string name = row.row.table + ": " + row.row.subject;
    if (name != subject) {
      out += fmt::format("{}{} (measured, simulated, error)\n", out.empty() ? "" : "\n", name);
      subject = name;
    }
    out += row_line(row);
  }
  return out;
}

std::string sharing_summary_text(const std::vector<SharingSummary>& summaries) {
  std::string out;
  for (auto summary = summaries.begin(); summary != summaries.end();) {
    const std::string name = summary->table;
    TextTable table = sharing_table();
    for (; summary != summaries.end() && summary->table == name; ++summary) {
      table.row(summary_row(*summary));
    }
    out += fmt::format("{}{}\n{}", out.empty() ? "" : "\n", name, table.text());
  }
  return out;
}

std::string unjudged_text(const std::vector<UnjudgedRows>& unjudged) {
  if (unjudged.empty()) return {};
  TextTable table({"table", "rows", "", "why"},
                  {Align::kLeft, Align::kRight, Align::kLeft, Align::kLeft}, "");
  for (const UnjudgedRows& group : unjudged) {
    table.row({group.table, fmt::to_string(group.rows),
               std::string(outcome_name(group.outcome)), group.reason});
  }
  return "rows that are not judged\n" + table.text() + "\n";
}

std::string sharing_order_text(const std::vector<SharingOrder>& orders) {
  if (orders.empty()) return {};
  std::string out = "order of the systems\n";
  for (const SharingOrder& order : orders) {
    out += fmt::format("{}, {}: {} ({} of {} comparisons)\n", order.subject, order.metric,
                       order.right == order.compared ? "right" : "wrong", order.right,
                       order.compared);
    if (order.right == order.compared) continue;
    out += fmt::format("  measured:  {}\n  simulated: {}\n", order.measured, order.simulated);
  }
  return out;
}

std::string sharing_csv(const std::vector<JudgedRow>& rows) {
  std::string out = "table,role,subject,system,outcome,metric,measured,simulated,error,note\n";
  for (const JudgedRow& row : rows) {
    const std::string head =
        fmt::format("{},{},{},{},{}", csv_quoted(row.row.table), role_name(row.row.role),
                    csv_quoted(row.row.subject), csv_quoted(row.row.system),
                    outcome_name(row.outcome));
    if (row.outcome != RowOutcome::kPredicted) {
      out += fmt::format("{},,,,,{}\n", head, csv_quoted(row.note));
      continue;
    }
    for (const SharingFigure& figure : row.row.figures) {
      out += fmt::format("{},{},{},{},{},{}\n", head, figure.metric, figure.measured,
                         figure.simulated, figure.error(), csv_quoted(row.note));
    }
    for (const std::string& metric : row.row.left_out) {
      out += fmt::format("{},{},,,,blank or 0 in the table\n", head, metric);
    }
  }
  return out;
}

std::string sharing_json(const std::vector<JudgedRow>& rows,
                         const std::vector<SharingSummary>& summaries,
                         const std::vector<SharingOrder>& orders) {
  Json out = {{"rows", Json::array()},
              {"summary", Json::array()},
              {"unjudged", Json::array()},
              {"order", Json::array()}};
  for (const JudgedRow& row : rows) out["rows"].push_back(row_json(row));
  for (const SharingSummary& summary : summaries) {
    Json cell = {{"table", summary.table},
                 {"system", summary.system},
                 {"metric", summary.metric},
                 {"role", summary.role},
                 {"rows", summary.rows},
                 {"unit", summary.points ? "share" : "relative"},
                 {"mean_absolute_error", summary.mean_absolute},
                 {"bias", summary.bias},
                 {"worst", summary.worst}};
    if (summary.aim > 0) {
      cell["aim"] = {{"bound", summary.aim},
                     {"met", summary.met()},
                     {"rows_within", summary.within_aim}};
    }
    out["summary"].push_back(std::move(cell));
  }
  for (const UnjudgedRows& group : unjudged_sharing(rows)) {
    out["unjudged"].push_back({{"table", group.table},
                               {"outcome", outcome_name(group.outcome)},
                               {"reason", group.reason},
                               {"rows", group.rows}});
  }
  for (const SharingOrder& system_order : orders) {
    out["order"].push_back({{"table", system_order.table},
                            {"subject", system_order.subject},
                            {"metric", system_order.metric},
                            {"right", system_order.right == system_order.compared},
                            {"compared", system_order.compared},
                            {"concordant", system_order.right},
                            {"measured", system_order.measured},
                            {"simulated", system_order.simulated}});
  }
  return indented_text(out, 1) + "\n";
}

}  // namespace bubblesim::validate
