#include "sim/validate/report.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "sim/base/add_once.hpp"

namespace bubblesim::validate {
namespace {

constexpr double kNear = 0.05;

struct TableAim {
  std::string_view table;
  Aim aim;
};

constexpr std::array<TableAim, 7> kTableAims{{
    {"megatron_deepspeed_a100_multi_node", {AimMeasure::kMean, 0.05}},
    {"megatron_deepspeed_a100_single_node", {AimMeasure::kMean, 0.03}},
    {"published_training_runs", {AimMeasure::kEach, 0.05}},
    {"all_reduce", {AimMeasure::kMean, 0.05}},
    {"schedules", {AimMeasure::kEach, 0}},
    {"pipefill", {AimMeasure::kEach, 0.05}},
    {"graphpipe", {AimMeasure::kEach, 0.02}},
}};

bool is_met(const Summary& summary) {
  if (!summary.aim) return true;
  if (summary.rows == 0) return false;
  const double reached =
      summary.aim->measure == AimMeasure::kMean ? summary.mean_absolute : std::abs(summary.worst);
  return summary.failed == 0 && reached <= summary.aim->bound;
}

/// Of one role, or of all.
Summary summary_of(const std::vector<ReportRow>& rows, const std::string& table,
                   std::optional<RowRole> role) {
  Summary out;
  std::vector<LabelledError> errors;
  for (const ReportRow& row : rows) {
    if (row.table != table || (role && row.role != *role)) continue;
    if (row.outcome == RowOutcome::kStated) ++out.stated;
    if (row.outcome == RowOutcome::kFailed) ++out.failed;
    if (row.outcome == RowOutcome::kPredicted) errors.push_back({row.error(), row.label});
  }
  static_cast<ErrorSummary&>(out) = summarise_errors(errors);
  out.table = table;
  out.role = role ? role_name(*role) : "all";
  out.within_5_percent = share_within(errors, kNear);
  out.aim = aim_of(table);
  out.met = is_met(out);
  return out;
}

}  // namespace

std::optional<Aim> aim_of(std::string_view table) {
  for (const TableAim& table_aim : kTableAims) {
    if (table_aim.table == table) return table_aim.aim;
  }
  return std::nullopt;
}

std::vector<Summary> summarise(const std::vector<ReportRow>& rows) {
  std::vector<std::string> tables;
  for (const ReportRow& row : rows) add_once(tables, row.table);
  std::vector<Summary> out;
  for (const std::string& table : tables) {
    std::size_t roles = 0;
    for (const RowRole role : {RowRole::kFit, RowRole::kJudge}) {
      Summary summary = summary_of(rows, table, role);
      if (summary.rows + summary.stated + summary.failed == 0) continue;
      out.push_back(std::move(summary));
      ++roles;
    }
    if (roles == 2) out.push_back(summary_of(rows, table, std::nullopt));
  }
  return out;
}

std::string_view outcome_name(RowOutcome outcome) {
  if (outcome == RowOutcome::kPredicted) return "predicted";
  return outcome == RowOutcome::kStated ? "stated" : "failed";
}

}  // namespace bubblesim::validate
