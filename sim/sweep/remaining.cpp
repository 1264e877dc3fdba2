#include "sim/sweep/remaining.hpp"

#include <unordered_set>

namespace bubblesim::sweep {

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
