// bubblesim sweep: every run of a sweep file, into a store.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <unordered_set>

#include "sim/app/shared/app.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/app/shared/policy_options.hpp"
#include "sim/app/sweep_display.hpp"
#include "sim/base/json.hpp"
#include "sim/sweep/plan.hpp"
#include "sim/sweep/remaining.hpp"
#include "sim/sweep/sweep_config.hpp"

namespace bubblesim::app {
namespace {

struct SweepArguments {
  std::string config;
  std::string store;
  std::vector<std::string> set;
  Duration policy_bound = kPolicyBound;
  std::string shard;
  std::string best = sweep::BestGoal{}.column;
  double keep = sweep::BestGoal{}.training_kept;
  std::size_t threads = 0;
  std::size_t limit = 0;
  bool retry_failed = false;
  bool dry_run = false;
  bool json = false;
};

/// What the command line and the files say, checked.
struct Sweep {
  sweep::SweepConfig config;
  sweep::SweepPlan plan;
  sweep::Shard shard;
  std::vector<store::PlannedRun> shard_runs;
  sweep::BestGoal goal;
  sweep::ExecuteOptions options;
  std::string store;
};

// ---- What a sweep says when it ends, and its exit code.

/// How far the whole sweep is, beside what the display counted.
struct SweepOutcome {
  std::size_t failed = 0;  ///< before this start and now
  std::size_t left = 0;    ///< beyond --limit or after a stop
  double in_runs = 1;      ///< share of the threads' time
  double seconds = 0;
};

void print_text(const Sweep& sweep, const SweepDisplay& display, const SweepOutcome& outcome) {
  const SweepCounts& counts = display.counts();
  fmt::print("sweep {}: {} runs, {} stored before, {} done now", sweep.config.name,
             counts.planned, counts.stored, counts.done);
  if (outcome.failed > 0) fmt::print(", {} failed", outcome.failed);
  if (outcome.left > 0) fmt::print(", {} left", outcome.left);
  if (counts.done > 0) {
    fmt::print("; {:.1f} s, {:.3g} runs/s, {:.1f} % of the time in runs", outcome.seconds,
               static_cast<double>(counts.done) / outcome.seconds, 100 * outcome.in_runs);
  }
  const sweep::BestGoal& goal = sweep.goal;
  fmt::print("\n{} {}", goal.better == sweep::Better::kMore ? "most" : "least", goal.column);
  if (goal.training_kept > 0) fmt::print(", training kept >= {}", goal.training_kept);
  fmt::print(": {}\nresults: {}\n", best_text(display.best()), sweep.store);
}

void print_json(const Sweep& sweep, const SweepDisplay& display, const SweepOutcome& outcome) {
  const SweepCounts& counts = display.counts();
  const Json json{{"event", counts.are_all_done() ? "end" : "stopped"},
                  {"sweep", sweep.config.name},
                  {"runs", counts.planned},
                  {"stored", counts.stored},
                  {"done", counts.done},
                  {"failed", outcome.failed},
                  {"left", outcome.left},
                  {"seconds", outcome.seconds},
                  {"time_in_runs_fraction", outcome.in_runs},
                  {"peak_memory_bytes", sweep::peak_memory().value},
                  {"store", sweep.store}};
  fmt::print("{}\n", compact_text(json));
}

// ---- The answer of --dry-run: number of runs, time, memory.

struct SweepForecast {
  sweep::RunCost cost;
  Duration a_run{};         ///< the store's mean if it has runs of the sweep, else measured
  bool from_store = false;
  std::size_t threads = 1;
  Duration all{};
  std::uint64_t memory = 0;  ///< bytes
};

constexpr Duration kMeasuring = std::chrono::seconds{5};

double megabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

/// Measures some of the remaining runs.
SweepForecast forecast(const sweep::RemainingRuns& left, const sweep::ExecuteOptions& options,
                       const policy::Registry& policies) {
  SweepForecast out;
  if (left.runs.empty()) return out;
  out.cost = sweep::measure_runs(left.runs, policies, options, kMeasuring);
  out.from_store = left.timed > 0;
  out.a_run = out.from_store ? left.cpu / static_cast<std::int64_t>(left.timed) : out.cost.run;
  out.threads = std::min(options.threads, left.runs.size());
  const auto rounds = static_cast<std::int64_t>(left.runs.size());
  out.all = out.cost.load + out.a_run * rounds / static_cast<std::int64_t>(out.threads);
  out.memory = out.cost.shared.value + out.threads * out.cost.run_bytes.value;
  return out;
}

std::string forecast_text(const Sweep& sweep, const sweep::RemainingRuns& left,
                          const SweepForecast& cast) {
  std::string text = fmt::format("sweep {}: {} points, {} runs", sweep.config.name,
                                 sweep.plan.points, sweep.plan.runs.size());
  if (sweep.shard_runs.size() != sweep.plan.runs.size()) {
    text += fmt::format(", {} of them in this shard", sweep.shard_runs.size());
  }
  if (sweep.plan.repeated > 0) {
    text += fmt::format(" ({} more are equal to others)", sweep.plan.repeated);
  }
  text += fmt::format("\nin {}: {} done, {} failed; {} to do\n", sweep.store, left.done,
                      left.failed, left.runs.size());
  if (left.runs.empty()) return text;
  const std::string measured = fmt::format("{} measured now", cast.cost.runs);
  text += fmt::format("time:   about {} on {} threads: {:.3f} s a run ({}), "
                      "{:.3f} s to load inputs\n",
                      short_time(cast.all), cast.threads, to_seconds(cast.a_run),
                      cast.from_store ? "mean of those in the store" : "mean of " + measured,
                      to_seconds(cast.cost.load));
  text += fmt::format("memory: about {:.0f} MB: {:.0f} MB shared and {:.0f} MB a thread ({})\n",
                      megabytes(cast.memory), megabytes(cast.cost.shared.value),
                      megabytes(cast.cost.run_bytes.value), measured);
  if (!cast.cost.failure.empty()) {
    text += fmt::format("a measured run failed: {}\n", cast.cost.failure);
  }
  return text;
}

std::string forecast_json(const Sweep& sweep, const sweep::RemainingRuns& left,
                          const SweepForecast& cast) {
  const Json json{{"event", "dry_run"},
                  {"sweep", sweep.config.name},
                  {"points", sweep.plan.points},
                  {"runs", sweep.plan.runs.size()},
                  {"in_shard", sweep.shard_runs.size()},
                  {"repeated", sweep.plan.repeated},
                  {"store", sweep.store},
                  {"done", left.done},
                  {"failed", left.failed},
                  {"to_do", left.runs.size()},
                  {"threads", cast.threads},
                  {"run_s", to_seconds(cast.a_run)},
                  {"run_s_from", cast.from_store ? "store" : "measured"},
                  {"measured_runs", cast.cost.runs},
                  {"load_s", to_seconds(cast.cost.load)},
                  {"total_s", to_seconds(cast.all)},
                  {"shared_bytes", cast.cost.shared.value},
                  {"thread_bytes", cast.cost.run_bytes.value},
                  {"memory_bytes", cast.memory},
                  {"failure", cast.cost.failure.empty() ? Json(nullptr) : Json(cast.cost.failure)}};
  return compact_text(json) + "\n";
}

// NAME.db in the current folder; shards of one sweep do not write one file.
std::string default_store(const std::string& sweep, sweep::Shard shard) {
  std::string name = sweep;
  std::replace(name.begin(), name.end(), '/', '-');
  if (shard.count > 1) name += fmt::format("-{}-of-{}", shard.index, shard.count);
  return name + ".db";
}

CheckedResult<Sweep> read_sweep(const SweepArguments& arguments, AppContext& context) {
  Sweep sweep;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto shard, shard_of_this_process(arguments.shard));
  BUBBLESIM_ASSIGN_OR_RETURN(sweep.goal, sweep::parse_best_goal(arguments.best));
  sweep.goal.training_kept = arguments.keep;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto version, version_with_policies(context));
  BUBBLESIM_ASSIGN_OR_RETURN(sweep.config,
                             sweep::read_sweep_config(arguments.config, arguments.set));
  BUBBLESIM_ASSIGN_OR_RETURN(
      sweep.plan,
      sweep::plan_sweep(sweep.config, context.policies, {context.device_folder(), version}));
  sweep.shard = shard;
  sweep.shard_runs = sweep::shard_of(sweep.plan.runs, shard);
  sweep.options.sweep = sweep.config.name;
  sweep.options.device_folder = context.device_folder();
  sweep.options.version = version;
  sweep.options.threads = arguments.threads;
  if (arguments.threads == 0) sweep.options.threads = usual_threads();
  sweep.store = arguments.store;
  if (sweep.store.empty()) sweep.store = default_store(sweep.config.name, shard);
  return sweep;
}

sweep::FailedRuns failed_runs(const SweepArguments& arguments) {
  return arguments.retry_failed ? sweep::FailedRuns::kRetry : sweep::FailedRuns::kKeep;
}

bool is_server(const std::string& store) { return store.find("://") != std::string::npos; }

ExitCode dry_run(const SweepArguments& arguments, const Sweep& sweep, const AppContext& context) {
  sweep::RemainingRuns left;
  sweep::BestSoFar best(sweep.goal);
  std::error_code fault;
  if (is_server(sweep.store) || std::filesystem::exists(sweep.store, fault)) {
    BUBBLESIM_ASSIGN_OR_RETURN(const auto store,
                               store::open_store(sweep.store, store::StoreAccess::kRead));
    BUBBLESIM_ASSIGN_OR_RETURN(
        auto found,
        sweep::remaining_runs(sweep.shard_runs, sweep.config.name, *store, failed_runs(arguments),
                              best));
    left = std::move(found);
  } else {
    left.runs = sweep.shard_runs;
  }
  if (arguments.limit > 0 && arguments.limit < left.runs.size()) left.runs.resize(arguments.limit);
  const PolicyTimeout timeout(arguments.policy_bound, nullptr);
  const SweepForecast cast = forecast(left, sweep.options, context.policies);
  const std::string text = arguments.json ? forecast_json(sweep, left, cast)
                                          : forecast_text(sweep, left, cast);
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

// Journals of runs in flight lie beside the store; for a server, in the current folder.
sweep::JournalPlace journal_place(const Sweep& sweep) {
  return {is_server(sweep.store) ? default_store(sweep.config.name, {}) : sweep.store,
          sweep.config.name,
          fmt::format("shard {}/{}", sweep.shard.index, sweep.shard.count),
          fmt::format("process {} on {}", getpid(), sweep::host_name())};
}

// A sweep that cannot note its runs in flight is done all the same.
std::unique_ptr<sweep::RunJournal> make_journal(const sweep::JournalPlace& place) {
  auto journal = sweep::RunJournal::create(place);
  if (journal) return *std::move(journal);
  fmt::print(stderr, "bubblesim: runs in flight are not noted: {}\n", journal.error().text());
  return nullptr;
}

// What died of runs of this shard.
void forget(sweep::DeadJournals& dead, const Sweep& sweep) {
  if (dead.empty()) return;
  std::unordered_set<std::string> others;
  for (const store::PlannedRun& run : sweep.plan.runs) others.insert(run.key);
  for (const store::PlannedRun& run : sweep.shard_runs) others.erase(run.key);
  dead.forget_but(others);
}

ExitCode execute(const SweepArguments& arguments, Sweep& sweep, const AppContext& context) {
  const sweep::JournalPlace place = journal_place(sweep);
  std::optional<sweep::JournalTurn> turn(place);
  BUBBLESIM_ASSIGN_OR_RETURN(auto dead, sweep::DeadJournals::read(place));
  if (!dead.living().empty()) {
    return fail(sweep.store, {}, "is being filled by " + dead.living() + ", which does the same "
                                 "runs; expected to wait for it, or another --store");
  }
  std::unique_ptr<sweep::RunJournal> journal = make_journal(place);
  turn.reset();
  BUBBLESIM_ASSIGN_OR_RETURN(const auto store,
                             store::open_store(sweep.store, store::StoreAccess::kWrite));
  BUBBLESIM_RETURN_IF_ERROR(store->join(sweep.config.name, sweep.shard_runs));
  sweep::BestSoFar best(sweep.goal);
  BUBBLESIM_ASSIGN_OR_RETURN(
      auto left,
      sweep::remaining_runs(sweep.shard_runs, sweep.config.name, *store, failed_runs(arguments),
                            best));
  if (arguments.retry_failed) forget(dead, sweep);
  const std::size_t all = left.runs.size();
  if (arguments.limit > 0 && arguments.limit < all) left.runs.resize(arguments.limit);
  sweep.options.threads =
      std::max<std::size_t>(1, std::min(sweep.options.threads, left.runs.size()));
  SweepDisplay display({sweep.shard_runs.size(), left.done + left.failed, left.runs.size(), 0, 0},
                       best, arguments.json ? SweepOutput::kJsonLines : SweepOutput::kText);
  const auto end =
      run_sweep_here(left.runs, dead, context.policies, sweep.options, *store, std::move(journal),
                     display, arguments.policy_bound,
                     is_server(sweep.store) ? "" : sweep.store + ".kept");
  const double seconds = to_seconds(display.elapsed());
  BUBBLESIM_RETURN_IF_ERROR(end);
  const SweepCounts& counts = display.counts();
  const SweepOutcome outcome{
      left.failed + counts.failed, all - counts.done,
      to_seconds(display.time_in_runs()) /
          (seconds * static_cast<double>(sweep.options.threads)),
      seconds};
  if (outcome.left == 0) forget(dead, sweep);
  if (arguments.json) {
    print_json(sweep, display, outcome);
  } else {
    print_text(sweep, display, outcome);
  }
  if (!counts.are_all_done()) return kExitInterrupted;
  if (outcome.failed > 0) return kExitRunsFailed;
  return display.untrusted() ? kExitUntrusted : kExitOk;
}

ExitCode plan_and_execute(const SweepArguments& arguments, AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto sweep, read_sweep(arguments, context));
  return arguments.dry_run ? dry_run(arguments, sweep, context)
                           : execute(arguments, sweep, context);
}

}  // namespace

void add_sweep_command(CLI::App& parser, AppContext& context) {
  auto [command, arguments] = add_command(
      parser, context, plan_and_execute, "sweep",
      "Runs everything that a sweep file describes, and keeps the results in a store. Started "
      "again, it does only what is not in the store: what was killed, added or changed. On several "
      "machines: a --shard on each (configs/README.md).\n\n"
      "Examples:\n"
      "  bubblesim sweep configs/sweeps/devices.json --dry-run\n"
      "  bubblesim sweep configs/sweeps/devices.json --store results.db --shard 0/8\n"
      "  bubblesim sweep configs/sweeps/load-latency.json --set /duration=2s --set "
      "/fillers/0/memory=4GB --limit 4 --threads 2 --json\n\n"
      "Exit codes: 0 all runs are done; 1 a result must not be trusted (a counter of severity "
      "error); 2 a fault of the input, of the store or of a policy that does not return; 3 runs "
      "failed, and say why in the store; 130 stopped by Ctrl-C or SIGTERM.");
  command->add_option("CONFIG", arguments->config, "Sweep file (JSON; configs/README.md)")
      ->required();
  command->add_option("--store", arguments->store,
                      "File, or postgresql://..., that keeps the results (default: the sweep's "
                      "name with .db, in the current folder)");
  command->add_option("--set", arguments->set,
                      "Another value of the base: /a/b=c, JSON or text; an axis of that place is "
                      "fixed to it (repeatable)")
      ->take_all()
      ->expected(1);
  command->add_option("--threads", arguments->threads,
                      "Runs at once; results do not depend on it (default: all cores, shared among "
                      "the tasks that srun started on a host)");
  command->add_option("--shard", arguments->shard,
                      "INDEX/COUNT: only every COUNT-th run from run INDEX (from 0) on; slurm: "
                      "this task's of a job array, or of srun; stores are merged by `bubblesim "
                      "results merge` (default: all)");
  command->add_option("--limit", arguments->limit, "At most so many runs now (default: all)");
  command->add_flag("--retry-failed", arguments->retry_failed,
                    "Do runs again that failed, or that a process died of (default: they would "
                    "fail again)");
  command->add_flag("--dry-run", arguments->dry_run,
                    "Do up to 8 runs to measure them, store nothing; say how many runs there are, "
                    "how long they take and how much memory");
  command->add_option("--best", arguments->best,
                      "Column of the results (OUTPUTS.md) whose most is shown as best; min:COLUMN "
                      "for the least")
      ->capture_default_str();
  command->add_option("--keep", arguments->keep,
                      "Best among those that keep this share of training's own throughput")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  add_policy_library_option(*command, context);
  add_policy_timeout_option(*command, arguments->policy_bound);
  command->add_flag("--json", arguments->json, "Print progress and results as JSON lines");
}

}  // namespace bubblesim::app
