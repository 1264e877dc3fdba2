#include "sim/app/sweep_local.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <sched.h>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>

#include "sim/app/own_process.hpp"
#include "sim/app/policy_options.hpp"

namespace bubblesim::app {
namespace {

std::optional<std::uint32_t> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  std::uint32_t number = 0;
  const std::string_view view(text);
  const auto read = std::from_chars(view.begin(), view.end(), number);  // "2(x3)": 2
  return read.ec == std::errc{} ? std::optional(number) : std::nullopt;
}

/// Processes that one srun, or mpirun, started together.
sweep::Shard launched_together() {
  const std::uint32_t count = number_in("SLURM_STEP_NUM_TASKS").value_or(1U);
  const std::uint32_t index = number_in("SLURM_PROCID").value_or(0U);
  return count > 1 ? sweep::Shard{index, count} : sweep::Shard{};
}

/// Slurm, job arrays: SLURM_ARRAY_TASK_ID counts from _MIN in steps of _STEP.
sweep::Shard task_of_array() {
  const auto id = number_in("SLURM_ARRAY_TASK_ID");
  if (!id) return {};
  const std::uint32_t least = number_in("SLURM_ARRAY_TASK_MIN").value_or(0U);
  const std::uint32_t step = std::max(1U, number_in("SLURM_ARRAY_TASK_STEP").value_or(1U));
  return {(*id - least) / step, number_in("SLURM_ARRAY_TASK_COUNT").value_or(1U)};
}

Result<sweep::Shard> shard_of_slurm() {
  const sweep::Shard array = task_of_array();
  const sweep::Shard step = launched_together();
  const sweep::Shard shard{array.index * step.count + step.index, array.count * step.count};
  if (!number_in("SLURM_ARRAY_TASK_ID") && step.count == 1) {
    return fail("--shard slurm", {}, "found neither a task of a job array (SLURM_ARRAY_TASK_ID) "
                                     "nor one of several tasks of srun (SLURM_STEP_NUM_TASKS)");
  }
  if (array.index < array.count && step.index < step.count) return shard;
  return fail("--shard slurm", {},
              fmt::format("found task {} of {} of the job array and task {} of {} of srun; "
                          "expected tasks of the array that are evenly apart, as --array=0-7",
                          array.index, array.count, step.index, step.count));
}

Result<sweep::Shard> parse_shard(const std::string& text) {
  sweep::Shard shard;
  const char* end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  const bool slash = index.ec == std::errc{} && index.ptr != end && *index.ptr == '/';
  const auto count = std::from_chars(slash ? index.ptr + 1 : end, end, shard.count);
  if (!slash || count.ec != std::errc{} || count.ptr != end || shard.index >= shard.count) {
    return fail("--shard", {}, "found " + quote_found(text) +
                                   "; expected slurm, or INDEX/COUNT with an index from 0 to "
                                   "COUNT - 1, such as 0/4");
  }
  return shard;
}

}  // namespace

Result<sweep::Shard> shard_of_this_process(const std::string& text) {
  if (text == "slurm") return shard_of_slurm();
  if (!text.empty()) return parse_shard(text);
  const std::uint32_t processes =
      std::max(launched_together().count, number_in("OMPI_COMM_WORLD_SIZE").value_or(1U));
  if (processes == 1) return sweep::Shard{};
  return fail("--shard", {},
              fmt::format("{} processes were started together, and each would do every run; "
                          "expected --shard slurm under srun, or --shard INDEX/COUNT",
                          processes));
}

std::size_t usual_threads() {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return cores;
  const auto allowed = static_cast<std::size_t>(std::max(1, CPU_COUNT(&cpus)));
  const auto present = static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  if (allowed < present) return allowed;
  const std::uint32_t here = number_in("SLURM_STEP_TASKS_PER_NODE").value_or(1U);
  return std::max<std::size_t>(1, cores / std::max<std::size_t>(1, here));
}

namespace {

constexpr auto kSweepTick = std::chrono::milliseconds{50};

/// A sweep on the threads of this process.
class LocalSweep {
 public:
  LocalSweep(const policy::Registry& registry, const sweep::ExecuteOptions& options,
             store::ResultsStore& store, std::unique_ptr<sweep::RunJournal> journal,
             SweepDisplay& display, const SweepEndings& endings)
      : registry_(registry), options_(options), journal_(std::move(journal)), display_(display),
        writer_(store, endings.kept_in),
        timeout_(endings.policy_bound, [this] { keep_finished(writer_, display_); }),
        watch_([this] { watch(); }) {}

  ~LocalSweep() { end_watch(); }
  LocalSweep(const LocalSweep&) = delete;
  LocalSweep& operator=(const LocalSweep&) = delete;

  void give_up(const std::vector<store::PlannedRun>& runs, const sweep::DeadJournals& dead) {
    for (const store::PlannedRun& run : runs) {
      finished(sweep::failed_record(run, options_, sweep::reason_of(dead.suspicion(run.key))));
    }
  }

  void run(const std::vector<store::PlannedRun>& runs, std::size_t threads) {
    std::atomic<std::size_t> next{0};
    sweep::SweepPorts ports;
    ports.next = [&]() -> std::optional<store::PlannedRun> {
      const std::size_t index = next++;
      if (index >= runs.size()) return std::nullopt;
      display_.started(runs[index]);
      if (journal_) journal_->started(runs[index]);
      return runs[index];
    };
    ports.done = [&](store::RunRecord&& record) {
      if (journal_) journal_->ended();
      finished(std::move(record));
    };
    ports.stopped = [&] { return signals_.count() > 0 || writer_.failed(); };
    sweep::ExecuteOptions options = options_;
    options.threads = std::min(threads, runs.size());
    if (!runs.empty()) sweep::execute_runs(registry_, options, ports);
  }

  [[nodiscard]] Result<void> finish() {
    end_watch();
    return writer_.finish();
  }

 private:
  void end_watch() {
    ended_ = true;
    if (watch_.joinable()) watch_.join();
  }

  void finished(store::RunRecord&& record) {
    display_.finished(record);
    writer_.add(std::move(record));
  }

  void watch() {
    while (!ended_) {
      if (signals_.count() > 1) leave_sweep(writer_, display_, journal_.get());
      display_.show(signals_.count() > 0);
      std::this_thread::sleep_for(kSweepTick);
    }
  }

  const policy::Registry& registry_;
  const sweep::ExecuteOptions& options_;
  std::unique_ptr<sweep::RunJournal> journal_;
  SweepDisplay& display_;
  StopSignals signals_{SecondSignal::kIsCounted};
  sweep::RecordWriter writer_;
  PolicyTimeout timeout_;
  std::atomic<bool> ended_{false};
  std::thread watch_;
};

}  // namespace

Result<SweepEnd> run_sweep_here(const sweep::RunsByTrust& runs, const sweep::DeadJournals& dead,
                                const policy::Registry& registry,
                                const sweep::ExecuteOptions& options, store::ResultsStore& store,
                                std::unique_ptr<sweep::RunJournal> journal, SweepDisplay& display,
                                const SweepEndings& endings) {
  {
    LocalSweep sweep(registry, options, store, std::move(journal), display, endings);
    sweep.give_up(runs.none, dead);
    sweep.run(runs.with_others, options.threads);
    sweep.run(runs.alone, 1);
    BUBBLESIM_RETURN_IF_ERROR(sweep.finish());
  }
  display.clear();
  const std::size_t all = runs.none.size() + runs.with_others.size() + runs.alone.size();
  return display.counts().done >= all ? SweepEnd::kAllDone : SweepEnd::kStopped;
}

void keep_finished(sweep::RecordWriter& writer, SweepDisplay& display) {
  display.clear();
  if (auto stored = writer.finish(); !stored) report_fault(stored.error());
}

void leave_sweep(sweep::RecordWriter& writer, SweepDisplay& display,
                 const sweep::RunJournal* journal) {
  keep_finished(writer, display);
  std::fputs("bubblesim: stopped at once; what was finished is stored\n", stderr);
  std::fflush(nullptr);
  if (journal != nullptr) journal->remove();
  std::_Exit(kExitInterrupted);  // other threads are amid runs
}

}  // namespace bubblesim::app
