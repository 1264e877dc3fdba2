#include "sim/validate/sharing_text.hpp"

#include <fmt/format.h>

#include "sim/base/json.hpp"
#include "sim/text/csv_text.hpp"

namespace bubblesim::validate {
namespace {

std::string row_line(const JudgedRow& it) {
  std::string line = fmt::format("{:<5} {:<13}", role_name(it.row.role), it.row.system);
  if (it.outcome != Outcome::kPredicted) {
    return fmt::format("{} {}: {}\n", line, outcome_name(it.outcome), it.note);
  }
  for (const SharingFigure& figure : it.row.figures) {
    line += fmt::format(" | {} {:.4g} {:.4g} {:+.1f}%", figure.metric, figure.measured,
                        figure.simulated, 100 * figure.error());
  }
  return line + "\n";
}

Json row_json(const JudgedRow& it) {
  Json out = {{"table", it.row.table},
              {"role", role_name(it.row.role)},
              {"subject", it.row.subject},
              {"system", it.row.system},
              {"outcome", outcome_name(it.outcome)}};
  if (!it.note.empty()) out["note"] = it.note;
  if (it.outcome != Outcome::kPredicted) return out;
  for (const SharingFigure& figure : it.row.figures) {
    out["figures"][figure.metric] = {{"measured", figure.measured},
                                     {"simulated", figure.simulated},
                                     {"error", figure.error()}};
  }
  return out;
}

}  // namespace

std::string sharing_rows_text(const std::vector<JudgedRow>& rows) {
  std::string out;
  std::string subject;
  for (const JudgedRow& it : rows) {
    const std::string name = it.row.table + ": " + it.row.subject;
    if (name != subject) {
      out += fmt::format("{}{} (measured, simulated, error)\n", out.empty() ? "" : "\n", name);
      subject = name;
    }
    out += row_line(it);
  }
  return out;
}

std::string sharing_summary_text(const std::vector<SharingSummary>& summaries) {
  std::string out;
  std::string table;
  for (const SharingSummary& it : summaries) {
    if (it.table != table) {
      table = it.table;
      out += fmt::format("{}{}\n{:<13} {:<25} {:<5} {:>4} {:>8} {:>7} {:>7}  {}\n",
                         out.empty() ? "" : "\n", table, "system", "metric", "role", "rows",
                         "|error|", "bias", "worst", "aim");
    }
    out += fmt::format("{:<13} {:<25} {:<5} {:>4} {:>7.1f}% {:>+6.1f}% {:>+6.1f}%", it.system,
                       it.metric, it.role, it.rows, 100 * it.mean_absolute, 100 * it.bias,
                       100 * it.worst);
    if (it.aim > 0) {
      out += fmt::format("  {} <= {:.0f} {}: {}; {:.0f} % of rows within",
                         it.points ? "each" : "mean", 100 * it.aim, it.points ? "points" : "%",
                         (it.points ? it.within_aim >= 1 : it.mean_absolute <= it.aim) ? "met"
                                                                                       : "missed",
                         100 * it.within_aim);
    }
    out += "\n";
  }
  return out;
}

std::string sharing_order_text(const std::vector<SharingOrder>& orders) {
  if (orders.empty()) return {};
  std::string out = "order of the systems\n";
  for (const SharingOrder& it : orders) {
    out += fmt::format("{}, {}: {} ({} of {} comparisons)\n", it.subject, it.metric,
                       it.right == it.compared ? "right" : "wrong", it.right, it.compared);
    if (it.right == it.compared) continue;
    out += fmt::format("  measured:  {}\n  simulated: {}\n", it.measured, it.simulated);
  }
  return out;
}

std::string sharing_csv(const std::vector<JudgedRow>& rows) {
  std::string out = "table,role,subject,system,outcome,metric,measured,simulated,error,note\n";
  for (const JudgedRow& it : rows) {
    const std::string head =
        fmt::format("{},{},{},{},{}", csv_quoted(it.row.table), role_name(it.row.role),
                    csv_quoted(it.row.subject), csv_quoted(it.row.system),
                    outcome_name(it.outcome));
    if (it.outcome != Outcome::kPredicted) {
      out += fmt::format("{},,,,,{}\n", head, csv_quoted(it.note));
      continue;
    }
    for (const SharingFigure& figure : it.row.figures) {
      out += fmt::format("{},{},{},{},{},{}\n", head, figure.metric, figure.measured,
                         figure.simulated, figure.error(), csv_quoted(it.note));
    }
  }
  return out;
}

std::string sharing_json(const std::vector<JudgedRow>& rows,
                         const std::vector<SharingSummary>& summaries,
                         const std::vector<SharingOrder>& orders) {
  Json out = {{"rows", Json::array()}, {"summary", Json::array()}, {"order", Json::array()}};
  for (const JudgedRow& it : rows) out["rows"].push_back(row_json(it));
  for (const SharingSummary& it : summaries) {
    Json summary = {{"table", it.table},
                    {"system", it.system},
                    {"metric", it.metric},
                    {"role", it.role},
                    {"rows", it.rows},
                    {"unit", it.points ? "share" : "relative"},
                    {"mean_absolute_error", it.mean_absolute},
                    {"bias", it.bias},
                    {"worst", it.worst}};
    if (it.aim > 0) {
      summary["aim"] = {{"bound", it.aim},
                        {"met", it.points ? it.within_aim >= 1 : it.mean_absolute <= it.aim},
                        {"rows_within", it.within_aim}};
    }
    out["summary"].push_back(std::move(summary));
  }
  for (const SharingOrder& it : orders) {
    out["order"].push_back({{"table", it.table},
                            {"subject", it.subject},
                            {"metric", it.metric},
                            {"right", it.right == it.compared},
                            {"compared", it.compared},
                            {"concordant", it.right},
                            {"measured", it.measured},
                            {"simulated", it.simulated}});
  }
  return out.dump(1) + "\n";
}

}  // namespace bubblesim::validate
