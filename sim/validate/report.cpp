#include "sim/validate/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

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

bool is_met(const Summary& it) {
  if (!it.aim) return true;
  if (it.rows == 0) return false;
  const double reached =
      it.aim->measure == AimMeasure::kMean ? it.mean_absolute : std::abs(it.worst);
  return it.failed == 0 && reached <= it.aim->bound;
}

void add(const ReportRow& row, Summary& out) {
  if (row.outcome == Outcome::kStated) ++out.stated;
  if (row.outcome == Outcome::kFailed) ++out.failed;
  if (row.outcome != Outcome::kPredicted) return;
  const double error = row.error();
  ++out.rows;
  out.mean_absolute += std::abs(error);
  out.bias += error;
  if (std::abs(error) <= kNear) ++out.within_5_percent;
  if (out.rows == 1 || std::abs(error) > std::abs(out.worst)) {
    out.worst = error;
    out.worst_label = row.label;
  }
}

template <class Takes>
Summary summary_of(const std::vector<ReportRow>& rows, const std::string& table,
                   std::string role, const Takes& takes) {
  Summary out;
  out.table = table;
  out.role = std::move(role);
  for (const ReportRow& row : rows) {
    if (row.table == table && takes(row)) add(row, out);
  }
  if (out.rows > 0) {
    const double n = static_cast<double>(out.rows);
    out.mean_absolute /= n;
    out.bias /= n;
    out.within_5_percent /= n;
  }
  out.aim = aim_of(table);
  out.met = is_met(out);
  return out;
}

}  // namespace

std::optional<Aim> aim_of(std::string_view table) {
  for (const TableAim& it : kTableAims) {
    if (it.table == table) return it.aim;
  }
  return std::nullopt;
}

std::vector<Summary> summarise(const std::vector<ReportRow>& rows) {
  std::vector<std::string> tables;
  for (const ReportRow& row : rows) {
    if (std::find(tables.begin(), tables.end(), row.table) == tables.end()) {
      tables.push_back(row.table);
    }
  }
  std::vector<Summary> out;
  for (const std::string& table : tables) {
    std::size_t roles = 0;
    for (const Role role : {Role::kFit, Role::kJudge}) {
      Summary one = summary_of(rows, table, std::string(role_name(role)),
                               [&](const ReportRow& row) { return row.role == role; });
      if (one.rows + one.stated + one.failed == 0) continue;
      out.push_back(std::move(one));
      ++roles;
    }
    if (roles < 2) continue;
    out.push_back(summary_of(rows, table, "all", [](const ReportRow&) { return true; }));
  }
  return out;
}

std::string_view role_name(Role role) { return role == Role::kFit ? "fit" : "judge"; }

std::string_view outcome_name(Outcome outcome) {
  if (outcome == Outcome::kPredicted) return "predicted";
  return outcome == Outcome::kStated ? "stated" : "failed";
}

}  // namespace bubblesim::validate
