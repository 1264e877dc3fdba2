#include "sim/sweep/remaining.hpp"

#include <unordered_set>
#include <utility>

#include "sim/base/nearest.hpp"

namespace bubblesim::sweep {
namespace {

using observe::Cell;
using observe::CellType;

std::size_t index_of(std::string_view name) {
  const auto columns = observe::result_columns();
  std::size_t index = 0;
  while (index < columns.size() && columns[index].name != name) ++index;
  return index;
}

std::optional<double> number_in(const observe::ResultRow& row, std::size_t column) {
  if (column >= row.cells.size()) return std::nullopt;
  if (const auto* whole = std::get_if<std::int64_t>(&row.cells[column])) {
    return static_cast<double>(*whole);
  }
  if (const auto* number = std::get_if<double>(&row.cells[column])) return *number;
  return std::nullopt;
}

std::string text_in(const observe::ResultRow& row, std::string_view name) {
  const std::size_t column = index_of(name);
  if (column >= row.cells.size()) return {};
  const auto* text = std::get_if<std::string>(&row.cells[column]);
  return text == nullptr ? std::string() : *text;
}

bool comes_before(double value, const store::PlannedRun& run, const std::optional<BestRun>& best,
                  Better better) {
  if (!best || value == best->value) return !best || run.index < best->index;
  return better == Better::kMore ? value > best->value : value < best->value;
}

BestRun run_of(double value, const store::PlannedRun& run, const observe::ResultRow& row) {
  return {value,        text_in(row, "policy"), text_in(row, "policy_parameters"),
          text_in(row, "filler"), run.settings,           run.index,
          text_in(row, "losses")};
}

}  // namespace

Result<BestGoal> parse_best_goal(const std::string& text) {
  BestGoal goal;
  goal.column = text;
  if (text.starts_with("min:") || text.starts_with("max:")) {
    goal.better = text.starts_with("min:") ? Better::kLess : Better::kMore;
    goal.column = text.substr(4);
  }
  std::vector<std::string_view> names;
  for (const observe::ResultColumn& column : observe::result_columns()) {
    if (column.type != CellType::kText) names.push_back(column.name);
  }
  for (const std::string_view name : names) {
    if (name == goal.column) return goal;
  }
  return fail("--best", {}, unknown_name_message("column of numbers", goal.column, names));
}

BestSoFar::BestSoFar(BestGoal goal) : goal_(std::move(goal)), column_(index_of(goal_.column)) {}

void BestSoFar::look_at(const store::RunRecord& record) {
  for (const observe::ResultRow& row : record.rows) look_at(record.run, row);
}

void BestSoFar::look_at(const store::PlannedRun& run, const observe::ResultRow& row) {
  const auto value = number_in(row, column_);
  static const std::size_t oracle_column = index_of("oracle");
  if (!value || number_in(row, oracle_column).value_or(0) != 0) return;
  static const std::size_t kept_column = index_of("training_normalised_fraction");
  const double kept = number_in(row, kept_column).value_or(0);
  if (kept < goal_.training_kept) {
    if (comes_before(kept, run, closest_, Better::kMore)) closest_ = run_of(kept, run, row);
  } else if (comes_before(*value, run, best_, goal_.better)) {
    best_ = run_of(*value, run, row);
  }
}

Result<RemainingRuns> remaining_runs(const std::vector<store::PlannedRun>& plan,
                                     const std::string& sweep, store::ResultsStore& store,
                                     FailedRuns failed, BestSoFar& best) {
  RemainingRuns out;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto done, store.done());
  std::unordered_set<std::string> planned;
  for (const store::PlannedRun& run : plan) planned.insert(run.key);
  std::unordered_set<std::string> kept;
  if (failed == FailedRuns::kKeep) {
    BUBBLESIM_ASSIGN_OR_RETURN(kept, store.failed());
  }
  store::RowFilter of_sweep;
  of_sweep.sweeps = {sweep};
  BUBBLESIM_RETURN_IF_ERROR(store.each_run(of_sweep, [&](const store::StoredRun& run) {
    if (run.status != store::RunStatus::kDone) return;
    out.cpu += run.cpu;
    ++out.timed;
  }));
  BUBBLESIM_RETURN_IF_ERROR(store.each_row(of_sweep, [&](const store::StoredRow& row) {
    if (!planned.contains(row.key)) return;
    store::PlannedRun run;
    run.index = row.index;
    run.settings = row.settings;
    best.look_at(run, row.row);
  }));
  for (const store::PlannedRun& run : plan) {
    if (done.contains(run.key)) {
      ++out.done;
    } else if (kept.contains(run.key)) {
      ++out.failed;
    } else {
      out.runs.push_back(run);
    }
  }
  return out;
}

}  // namespace bubblesim::sweep
