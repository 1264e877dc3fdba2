// A sweep's runs on the threads of this process: takes them, shows them, stores them, stops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "sim/app/sweep_display.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/store/results_store.hpp"
#include "sim/sweep/execute.hpp"
#include "sim/sweep/plan.hpp"
#include "sim/sweep/run_journal.hpp"

namespace bubblesim::app {

// The share of a sweep that this process does, and on how many threads: as the command line says,
// and Slurm's environment.

/// "INDEX/COUNT", or "slurm": the place of this process among those of its job array, of its srun,
/// or of both. Fault: neither; or it is one of several that mpirun or srun started, each of which
/// would do the same runs.
[[nodiscard]] Result<sweep::Shard> shard_of_this_process(const std::string& text);

/// Threads for runs, where none are asked for: cores that this process may use; shared among the
/// processes of this host unless each is bound to some of its own.
[[nodiscard]] std::size_t usual_threads();

enum class SweepEnd : std::uint8_t {
  kAllDone,
  kStopped,  ///< by a signal; what was finished is stored
};

/// What to do when something ends a sweep early.
struct SweepEndings {
  Duration policy_bound{};  ///< of policy_options.hpp
  std::string kept_in;      ///< of execute.hpp
};

/// Runs `runs` and adds their records to `store`; those without trust are stored as failed, those
/// to be done alone are done last. A first Ctrl-C or other such signal lets the runs in flight end;
/// a second ends the process with 130 as soon as what is finished is stored. Fault: the store's; no
/// further run is begun then. What is in flight is in `journal`, unless it is null.
[[nodiscard]] Result<SweepEnd> run_sweep_here(const sweep::RunsByTrust& runs,
                                              const sweep::DeadJournals& dead,
                                              const policy::Registry& registry,
                                              const sweep::ExecuteOptions& options,
                                              store::ResultsStore& store,
                                              std::unique_ptr<sweep::RunJournal> journal,
                                              SweepDisplay& display, const SweepEndings& endings);

/// Ends the display and stores what is finished, for a process that ends amid runs.
void keep_finished(sweep::RecordWriter& writer, SweepDisplay& display);

/// Ends the process with 130, amid runs: everything that is finished is stored, runs in flight are
/// dropped. `journal` may be null.
[[noreturn]] void leave_sweep(sweep::RecordWriter& writer, SweepDisplay& display,
                              const sweep::RunJournal* journal);

}  // namespace bubblesim::app
