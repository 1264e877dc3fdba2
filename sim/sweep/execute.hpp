// Executes the runs that a plan has left, on threads of this process. The caller says where runs
// come from and where records go, so one loop serves one machine and many.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "sim/policy/declaration.hpp"
#include "sim/run/baselines.hpp"
#include "sim/store/planned_run.hpp"
#include "sim/store/run_record.hpp"
#include "sim/sweep/input_cache.hpp"

namespace bubblesim::sweep {

/// Called from several threads; all must be thread-safe.
struct SweepPorts {
  std::function<std::optional<store::PlannedRun>()> next;    ///< nothing: no more
  std::function<void(store::RunRecord&&)> done;              ///< once a run, finished or failed
  std::function<bool()> stopped;                      ///< true: take no further run
};

struct ExecuteOptions {
  std::size_t threads = 1;
  std::string sweep;
  std::string device_folder;
  std::string version;
  /// If another thread sets it to true, runs fail soon after. Null: runs are not stopped.
  const std::atomic<bool>* stop = nullptr;
};

/// What the runs of a process share: inputs are loaded once, and each baseline is simulated once,
/// by the thread that needs it first. Thread-safe.
struct SharedWork {
  explicit SharedWork(std::string device_folder) : inputs(std::move(device_folder)) {}
  InputCache inputs;
  run::BaselineCache baselines;
};

/// Returns when `next` is empty or `stopped`, and the runs in flight are done. A run that fails is
/// a record with its reason.
void execute_runs(const policy::Registry& registry, const ExecuteOptions& options,
                  const SweepPorts& ports);

/// Executes runs as above with what other calls loaded and measured.
void execute_runs(const policy::Registry& registry, const ExecuteOptions& options,
                  const SweepPorts& ports, SharedWork& shared);

/// This machine's name; empty: it has none.
[[nodiscard]] std::string host_name();

/// The record of a run that is not done, and why.
[[nodiscard]] store::RunRecord failed_record(const store::PlannedRun& run,
                                             const ExecuteOptions& options, std::string reason);

/// One run. A fault of its inputs, an illegal decision and an exception are failed records.
[[nodiscard]] store::RunRecord execute_run(const store::PlannedRun& run,
                                           const policy::Registry& registry,
                                           const ExecuteOptions& options, SharedWork& shared);

}  // namespace bubblesim::sweep
