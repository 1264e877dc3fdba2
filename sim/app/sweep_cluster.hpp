// `mpirun -n N bubblesim sweep`: the processes that were started together share one sweep. The
// first plans it, stores it and takes part; the others only do runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/sweep_display.hpp"
#include "sim/app/sweep_local.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/store/results_store.hpp"
#include "sim/sweep/cluster/transport.hpp"
#include "sim/sweep/execute.hpp"

namespace bubblesim::app {

enum class MpiUse : std::uint8_t {
  kAuto,      ///< where this process was started as one of several
  kAutoMpi,   ///< the same, but one of several of srun without MPI is alone: it has its shard
  kOn,
  kOff,
};
/// "auto", "on" or "off".
[[nodiscard]] MpiUse mpi_use(const std::string& text, bool of_shard);

/// What a launcher says in the environment of each process that it starts.
struct RankLaunch {
  std::size_t processes = 1;
  std::size_t on_this_host = 1;
  std::size_t rank = 0;
  enum class Launcher : std::uint8_t { kNobody, kMpi, kSlurmAlone } launcher = Launcher::kNobody;
};
[[nodiscard]] RankLaunch launch_of_this_process();

/// Threads for runs, where none are asked for: cores that this process may use; shared among the
/// processes of this host unless each is bound to some of its own.
[[nodiscard]] std::size_t usual_threads(const RankLaunch& launch);

/// The processes of one MPI job. Started by one thread, which alone calls it.
class SweepRanks {
 public:
  explicit SweepRanks(std::unique_ptr<sweep::Transport> transport);
  ~SweepRanks();
  SweepRanks(const SweepRanks&) = delete;
  SweepRanks& operator=(const SweepRanks&) = delete;

  [[nodiscard]] bool leads() const;

  /// Does runs until the leading process says that there are no more. `options.sweep` is not used.
  /// Returns an exit code.
  [[nodiscard]] int work(const policy::Registry& registry, const sweep::ExecuteOptions& options);

  /// Runs as run_sweep_here() does, on all processes; the journal is of this one's runs. Warns on
  /// stderr of those that are lost or cannot take part. A store's fault ends it as there.
  [[nodiscard]] Result<SweepEnd> lead(const std::vector<store::PlannedRun>& runs,
                                      const policy::Registry& registry,
                                      const sweep::ExecuteOptions& options,
                                      store::ResultsStore& store, sweep::RunJournal* journal,
                                      SweepDisplay& display);
  /// Threads of all processes that took part; 0 before lead().
  [[nodiscard]] std::size_t threads() const { return threads_; }

  /// The last call: lets the others go, if they were not led, and leaves MPI. Returns `code`, or
  /// ends the process with it where a process is lost, for MPI would wait for that one for ever.
  [[nodiscard]] int leave(int code);

 private:
  std::unique_ptr<sweep::Transport> transport_;
  sweep::Parting parting_ = sweep::Parting::kTogether;
  bool led_ = false;
  std::size_t threads_ = 0;
};

/// Joins the processes that this one was started with. Null: it was started alone, or `use` is off.
/// Fault: MPI is needed and not there, or does not see the processes that were started.
[[nodiscard]] Result<std::unique_ptr<SweepRanks>> join_ranks(MpiUse use, const RankLaunch& launch);

}  // namespace bubblesim::app
