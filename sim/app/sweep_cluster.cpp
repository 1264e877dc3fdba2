#include "sim/app/sweep_cluster.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "sim/app/crash_notes.hpp"
#include "sim/app/stop_signals.hpp"
#include "sim/sweep/cluster/leader.hpp"
#include "sim/sweep/cluster/mpi_module.hpp"
#include "sim/sweep/cluster/worker.hpp"
#include "sim/sweep/execute.hpp"
#include "sim/sweep/record_writer.hpp"

namespace bubblesim::app {
namespace {

std::size_t number_in(const char* variable, std::size_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  std::size_t number = 0;
  const std::string_view view(text);
  const auto read = std::from_chars(view.begin(), view.end(), number);
  return read.ec == std::errc{} ? number : otherwise;
}

// Beside the program in a build, in lib/bubblesim where it was installed.
std::vector<std::string> module_folders() {
  std::error_code fault;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", fault).parent_path();
  return {program.string(), (program.parent_path() / "lib/bubblesim").string()};
}

/// What this process does of a sweep that it leads.
class LocalRuns {
 public:
  LocalRuns(sweep::Leader& leader, const policy::Registry& registry,
            const sweep::ExecuteOptions& options, const StopSignals& signals,
            sweep::RunJournal* journal) {
    sweep::SweepPorts ports;
    ports.next = [&leader, journal] {
      auto next = leader.next_here();
      started() = sweep::steady_now();
      if (next && journal != nullptr) journal->started(*next);
      return next;
    };
    ports.done = [&leader, journal](store::RunRecord&& record) {
      if (journal != nullptr) journal->ended();
      leader.done_here(std::move(record), sweep::steady_now() - started());
    };
    ports.stopped = [&signals] { return signals.count() > 0; };
    thread_ = std::thread([&registry, &options, ports] {
      sweep::execute_runs(registry, options, ports);
    });
  }
  ~LocalRuns() { thread_.join(); }
  LocalRuns(const LocalRuns&) = delete;
  LocalRuns& operator=(const LocalRuns&) = delete;

 private:
  // The run that the calling thread has.
  static Duration& started() {
    thread_local Duration at{};
    return at;
  }
  std::thread thread_;
};

void warn(SweepDisplay& display, const std::string& text) {
  display.clear();
  fmt::print(stderr, "bubblesim: {}\n", text);
}

}  // namespace

MpiUse mpi_use(const std::string& text, bool of_shard) {
  if (text == "off") return MpiUse::kOff;
  if (text == "on") return MpiUse::kOn;
  return of_shard ? MpiUse::kAutoMpi : MpiUse::kAuto;
}

RankLaunch launch_of_this_process() {
  RankLaunch launch;
  launch.rank = number_in("OMPI_COMM_WORLD_RANK",
                          number_in("PMI_RANK", number_in("SLURM_PROCID", 0)));
  const std::size_t tasks = number_in("SLURM_STEP_NUM_TASKS", 1);
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) {
    launch.processes = number_in("OMPI_COMM_WORLD_SIZE", 1);
    launch.on_this_host = number_in("OMPI_COMM_WORLD_LOCAL_SIZE", 1);
  } else if (std::getenv("PMI_SIZE") != nullptr) {  // MPICH's launchers, srun --mpi=pmi2
    launch.processes = number_in("PMI_SIZE", 1);
  } else {
    launch.processes = tasks;
    launch.on_this_host = number_in("SLURM_STEP_TASKS_PER_NODE", 1);  // "2(x3)": 2
  }
  if (launch.processes <= 1) return launch;
  const bool mpi = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr ||
                   std::getenv("PMI_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr;
  launch.launcher = mpi ? RankLaunch::Launcher::kMpi : RankLaunch::Launcher::kSlurmAlone;
  return launch;
}

std::size_t usual_threads(const RankLaunch& launch) {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return cores;
  const auto allowed = static_cast<std::size_t>(std::max(1, CPU_COUNT(&cpus)));
  const auto present = static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  if (allowed < present) return allowed;
  return std::max<std::size_t>(1, cores / std::max<std::size_t>(1, launch.on_this_host));
}

SweepRanks::SweepRanks(std::unique_ptr<sweep::Transport> transport)
    : transport_(std::move(transport)) {}

SweepRanks::~SweepRanks() = default;

bool SweepRanks::leads() const { return transport_->rank() == sweep::kLeaderRank; }

int SweepRanks::work(const policy::Registry& registry, const sweep::ExecuteOptions& options) {
  led_ = true;
  StopSignals signals;
  sweep::WorkerOptions worker{options, sweep::host_name()};
  sweep::WorkerPorts ports;
  ports.execute = [&registry](const sweep::ExecuteOptions& execute, const sweep::SweepPorts& runs) {
    sweep::execute_runs(registry, execute, runs);
  };
  const auto configs = std::filesystem::path(options.device_folder).parent_path().string();
  ports.obstacle = sweep::check_of_files(options, configs);
  ports.stopped = [&signals] {
    if (signals.count() > 1) std::_Exit(kExitInterrupted);
    return signals.count() > 0;
  };
  switch (sweep::work_for_leader(*transport_, worker, ports)) {
    case sweep::ClusterWorkerEnd::kTogether: return kExitOk;
    case sweep::ClusterWorkerEnd::kAlone: parting_ = sweep::Parting::kAlone; return kExitOk;
    case sweep::ClusterWorkerEnd::kLeaderLost: break;
  }
  parting_ = sweep::Parting::kAlone;
  fmt::print(stderr, "bubblesim: rank {} ({}) ends: nothing is heard of rank 0\n",
             transport_->rank(), worker.host);
  return kExitInterrupted;
}

Result<SweepEnd> SweepRanks::lead(const std::vector<store::PlannedRun>& runs,
                                  const policy::Registry& registry,
                                  const sweep::ExecuteOptions& options, store::ResultsStore& store,
                                  sweep::RunJournal* journal, SweepDisplay& display) {
  led_ = true;
  const StopSignals signals;
  const CrashNotes crashes;
  sweep::RecordWriter writer(store);
  sweep::LeaderPorts ports;
  ports.started = [&](const store::PlannedRun& run) { display.started(run); };
  ports.done = [&](store::RunRecord&& record, std::optional<Duration> took) {
    display.finished(record, took);
    writer.add(std::move(record));
  };
  ports.stopped = [&] { return signals.count() > 0 || writer.failed(); };
  ports.warn = [&](const std::string& text) { warn(display, text); };
  ports.tick = [&] {
    if (signals.count() > 1) leave_sweep(writer, display, journal);
    display.show(signals.count() > 0);
  };
  sweep::Leader leader(*transport_, runs,
                     {options.sweep, options.version, sweep::host_name(), options.threads}, ports);
  sweep::LeaderSummary summary;
  {
    const LocalRuns local(leader, registry, options, signals, journal);
    summary = leader.lead();
  }
  display.clear();
  threads_ = summary.threads;
  parting_ = summary.parting;
  BUBBLESIM_RETURN_IF_ERROR(writer.finish());
  if (summary.damaged > 0) {
    warn(display, fmt::format("{} damaged messages; what they said was said again",
                              summary.damaged));
  }
  return display.counts().done >= runs.size() ? SweepEnd::kAllDone : SweepEnd::kStopped;
}

int SweepRanks::leave(int code) {
  if (!led_ && leads()) {
    const std::vector<store::PlannedRun> none;
    sweep::LeaderPorts ports;
    ports.stopped = [] { return false; };
    ports.warn = [](const std::string&) {};
    ports.tick = [] {};
    parting_ = sweep::Leader(*transport_, none, {}, ports).lead().parting;
  }
  transport_->part(parting_);
  if (parting_ == sweep::Parting::kTogether) return code;
  std::fflush(nullptr);
  std::_Exit(code);
}

Result<std::unique_ptr<SweepRanks>> join_ranks(MpiUse use, const RankLaunch& launch) {
  if (use == MpiUse::kOff) return nullptr;
  if (use != MpiUse::kOn && launch.launcher == RankLaunch::Launcher::kNobody) return nullptr;
  if (use != MpiUse::kOn && launch.launcher == RankLaunch::Launcher::kSlurmAlone) {
    if (use == MpiUse::kAutoMpi) return nullptr;
    return fail("--mpi", {}, fmt::format("srun started {} processes without MPI, and each would do "
                                         "every run; expected srun --mpi=pmix or mpirun, or "
                                         "--mpi off with a --shard for each",
                                         launch.processes));
  }
  auto transport = sweep::join_mpi(module_folders());
  if (!transport) {
    return fail("--mpi", {}, fmt::format("this process is one of {} that were started together, "
                                         "but {}; with --mpi off each would do every run",
                                         launch.processes, transport.error().text()));
  }
  const auto size = static_cast<std::size_t>((*transport)->size());
  if (size < launch.processes) {
    return fail("--mpi", {}, fmt::format("{} processes were started together, but MPI finds {}; "
                                         "expected to be started by Open MPI's mpirun, or by srun "
                                         "--mpi=pmix",
                                         launch.processes, size));
  }
  return std::make_unique<SweepRanks>(*std::move(transport));
}

}  // namespace bubblesim::app
