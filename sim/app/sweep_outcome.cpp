#include "sim/app/sweep_outcome.hpp"

#include <fmt/format.h>

#include "sim/app/app.hpp"
#include "sim/base/json.hpp"
#include "sim/sweep/estimate.hpp"

namespace bubblesim::app {
namespace {

void print_text(const SweepOutcome& outcome, const sweep::BestSoFar& best) {
  const SweepCounts& counts = outcome.counts;
  fmt::print("sweep {}: {} runs, {} stored before, {} done now", outcome.sweep,
             counts.planned, counts.stored, counts.done);
  if (counts.failed + outcome.failed_before > 0) {
    fmt::print(", {} failed", counts.failed + outcome.failed_before);
  }
  if (outcome.left > 0) fmt::print(", {} left", outcome.left);
  if (counts.done > 0) {
    fmt::print("; {:.1f} s, {:.3g} runs/s, {:.1f} % of the time in runs", outcome.seconds,
               static_cast<double>(counts.done) / outcome.seconds, 100 * outcome.in_runs);
  }
  const sweep::BestGoal& goal = best.goal();
  fmt::print("\n{} {}", goal.better == sweep::Better::kMore ? "most" : "least", goal.column);
  if (goal.training_kept > 0) fmt::print(", training kept >= {}", goal.training_kept);
  fmt::print(": {}\nresults: {}\n", best_text(best), outcome.store);
}

void print_json(const SweepOutcome& outcome) {
  const SweepCounts& counts = outcome.counts;
  const Json json{{"event", outcome.end == SweepEnd::kAllDone ? "end" : "stopped"},
                  {"sweep", outcome.sweep},
                  {"runs", counts.planned},
                  {"stored", counts.stored},
                  {"done", counts.done},
                  {"failed", counts.failed + outcome.failed_before},
                  {"left", outcome.left},
                  {"seconds", outcome.seconds},
                  {"time_in_runs_fraction", outcome.in_runs},
                  {"peak_memory_bytes", sweep::peak_memory().value},
                  {"store", outcome.store}};
  fmt::print("{}\n", compact_text(json));
}

}  // namespace

void print_outcome(const SweepOutcome& outcome, const sweep::BestSoFar& best, SweepOutput output) {
  output == SweepOutput::kJsonLines ? print_json(outcome) : print_text(outcome, best);
}

int exit_code(const SweepOutcome& outcome) {
  if (outcome.end == SweepEnd::kStopped) return kExitInterrupted;
  if (outcome.counts.failed + outcome.failed_before > 0) return kExitRunsFailed;
  return outcome.untrusted ? kExitUntrusted : kExitOk;
}

}  // namespace bubblesim::app
