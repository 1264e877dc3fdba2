// A rank that does runs which another one planned.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/sweep/cluster/leader.hpp"
#include "sim/sweep/cluster/transport.hpp"
#include "sim/sweep/execute.hpp"

namespace bubblesim::sweep {

/// What does the runs: execute_runs(), or a test's. Called once, on a thread of its own; the
/// sweep's name in `options` is that of the runs.
using RunExecutor = std::function<void(const ExecuteOptions& options, const SweepPorts& ports)>;

struct WorkerOptions {
  ExecuteOptions execute;    ///< `sweep` is the leader's to say
  std::string host;
  Duration silence = kSilence;
  /// An answer takes as long as the leader is busy; after this the ask is put again.
  Duration ask_again = std::chrono::seconds{5};
};

struct WorkerPorts {
  RunExecutor execute;
  /// Why this rank cannot do the run as planned; empty: it can. Called by several threads.
  std::function<std::string(const store::PlannedRun&)> obstacle;
  std::function<bool()> stopped;   ///< true: end what runs, take nothing more
};

enum class ClusterWorkerEnd : std::uint8_t {
  kTogether,    ///< told to end; every rank is
  kAlone,       ///< told to end; some rank is lost
  kLeaderLost,  ///< runs in flight were ended first
};

/// Works until the leader says that nothing is left, or nothing is heard of it any more. The
/// parting from the transport is the caller's.
[[nodiscard]] ClusterWorkerEnd work_for_leader(Transport& transport, const WorkerOptions& options,
                                        const WorkerPorts& ports);

/// The usual obstacle: files that the run names are missing here, or are not those that its key was
/// made from. Each file is read once a process.
[[nodiscard]] std::function<std::string(const store::PlannedRun&)> check_of_files(
    const ExecuteOptions& options, const std::string& configs);

}  // namespace bubblesim::sweep
