#include "sim/app/sweep_display.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "sim/app/shared/own_process.hpp"
#include "sim/app/shared/policy_options.hpp"
#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"
#include "sim/base/utf8.hpp"
#include "sim/store/store_export.hpp"

namespace bubblesim::app {
namespace {

constexpr std::size_t kBarWidth = 16;
constexpr std::size_t kFailuresTold = 5;  // a line each; the store has all
constexpr auto kLineEvery = std::chrono::milliseconds{200};
constexpr auto kJsonEvery = std::chrono::seconds{1};

std::string bar(std::size_t done, std::size_t all) {
  const std::size_t full = all == 0 ? kBarWidth : kBarWidth * done / all;
  return "[" + std::string(full, '#') + std::string(kBarWidth - full, '-') + "]";
}

void print_event(const Json& json) {
  fmt::print("{}\n", compact_text(json));
  std::fflush(stdout);
}

Json best_json(const sweep::BestSoFar& best) {
  if (!best.best()) return nullptr;
  const sweep::BestRun& run = *best.best();
  return {{"column", best.goal().column}, {"value", run.value},
          {"policy", run.policy},         {"policy_parameters", run.policy_parameters},
          {"filler", run.filler},         {"index", run.index},
          {"settings", store::settings_object(run.settings)}};
}

Duration span_of(double seconds) {
  return Duration{static_cast<std::int64_t>(std::min(seconds, 1e9) * 1e9)};
}

}  // namespace

std::string short_time(Duration span) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(span).count();
  if (seconds >= 3600) return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
  if (seconds >= 60) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  return fmt::format("{}s", seconds);
}

std::string best_text(const sweep::BestSoFar& best) {
  const auto named = [](const sweep::BestRun& run) {
    const std::string parameters = run.policy_parameters.empty() ? "" : " " + run.policy_parameters;
    const std::string losses = run.losses.empty() ? "" : " ! " + run.losses;
    return fmt::format("{:.6g} ({}{}, {}){}", run.value, run.policy, parameters,
                       sweep::settings_text(run.settings), losses);
  };
  if (best.best()) return named(*best.best());
  if (!best.closest()) return "none yet";
  return "none; the most that any keeps is " + named(*best.closest()) + "; --keep sets the least";
}

SweepDisplay::SweepDisplay(SweepCounts counts, sweep::BestSoFar best, SweepOutput output)
    : output_(output), counts_(counts), best_(std::move(best)) {
  if (output_ != SweepOutput::kJsonLines) return;
  print_event({{"event", "plan"},
         {"runs", counts.planned},
         {"stored", counts.stored},
         {"to_do", counts.to_do}});
}

void SweepDisplay::started(const store::PlannedRun& run) {
  const std::scoped_lock lock(mutex_);
  in_flight_[run.index] = Clock::now();
}

void SweepDisplay::finished(const store::RunRecord& record) {
  const std::scoped_lock lock(mutex_);
  if (const auto started = in_flight_.find(record.run.index); started != in_flight_.end()) {
    in_runs_ += std::chrono::duration_cast<Duration>(Clock::now() - started->second);
    in_flight_.erase(started);
  }
  ++counts_.done;
  best_.look_at(record);
  untrusted_ = untrusted_ || record.counters.has_error();
  const bool failed = record.status == store::RunStatus::kFailed;
  if (failed) ++counts_.failed;
  if (output_ == SweepOutput::kJsonLines) return print_run(record);
  if (!failed || failures_told_++ >= kFailuresTold) return;
  progress_.clear();
  fmt::print(stderr, "bubblesim: run {} ({}) failed: {}{}\n", record.run.index,
             escape_controls(sweep::settings_text(record.run.settings)),
             escape_but_lines(record.reason),
             failures_told_ == kFailuresTold ? "\nbubblesim: further failures are only stored"
                                             : "");
}

void SweepDisplay::print_run(const store::RunRecord& record) const {
  const bool failed = record.status == store::RunStatus::kFailed;
  Json json{{"event", "run"},          {"index", record.run.index},
            {"key", record.run.key},   {"settings", store::settings_object(record.run.settings)},
            {"seed", record.run.seed}, {"status", failed ? "failed" : "done"},
            {"cpu_s", to_seconds(record.cpu)}};
  if (failed) json["reason"] = record.reason;
  print_event(json);
}

double SweepDisplay::rate() const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return seconds > 0 ? static_cast<double>(counts_.done) / seconds : 0;
}

std::string SweepDisplay::line(bool stopping) const {
  const std::size_t done = counts_.stored + counts_.done;
  std::string text = fmt::format("{} {}/{}", bar(done, counts_.planned), done, counts_.planned);
  if (counts_.failed > 0) text += fmt::format(" {} failed", counts_.failed);
  if (stopping) {
    return text + fmt::format(" stopping: {} runs end first; Ctrl-C again to drop them",
                              in_flight_.size());
  }
  if (counts_.done > 0) {
    const double left = static_cast<double>(counts_.to_do - counts_.done) / rate();
    text += fmt::format(" {:.3g}/s {} left", rate(), short_time(span_of(left)));
  }
  text += fmt::format(" {} running", in_flight_.size());
  if (const auto& best = best_.best()) {
    text += fmt::format(" best {:.4g} {}", best->value, best->policy);
  }
  return text;
}

void SweepDisplay::print_progress(bool stopping) const {
  Json running = Json::array();
  for (const auto& [index, since] : in_flight_) {
    running.push_back(
        {{"index", index},
         {"since_s", std::chrono::duration<double>(Clock::now() - since).count()}});
  }
  const double left = static_cast<double>(counts_.to_do - counts_.done) / std::max(rate(), 1e-9);
  print_event({{"event", stopping ? "stopping" : "progress"},
         {"done", counts_.done},
         {"failed", counts_.failed},
         {"to_do", counts_.to_do},
         {"rate_per_s", rate()},
         {"remaining_s", counts_.done > 0 ? Json(left) : Json(nullptr)},
         {"running", running},
         {"best", best_json(best_)}});
}

void SweepDisplay::show(bool stopping) {
  const std::scoped_lock lock(mutex_);
  const auto now = Clock::now();
  const bool json = output_ == SweepOutput::kJsonLines;
  if (now - shown_ < (json ? Clock::duration(kJsonEvery) : Clock::duration(kLineEvery))) return;
  shown_ = now;
  if (json) return print_progress(stopping);
  progress_.show(line(stopping));
}

void SweepDisplay::clear() {
  const std::scoped_lock lock(mutex_);
  progress_.clear();
}

Duration SweepDisplay::elapsed() const {
  return std::chrono::duration_cast<Duration>(Clock::now() - start_);
}

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
  const std::size_t slash = text.find('/');
  const auto index = parse_number<std::uint32_t>(text.substr(0, slash));
  const auto count = slash == std::string::npos
                         ? std::nullopt
                         : parse_number<std::uint32_t>(text.substr(slash + 1));
  if (index && count && *index < *count) return sweep::Shard{*index, *count};
  return fail("--shard", {}, "found " + quote_found(text) +
                                 "; expected slurm, or INDEX/COUNT with an index from 0 to "
                                 "COUNT - 1, such as 0/4");
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

/// Ends the display and stores finished runs, for a process that ends amid runs.
void keep_finished(sweep::RecordWriter& writer, SweepDisplay& display) {
  display.clear();
  if (auto stored = writer.finish(); !stored) report_fault(stored.error());
}

/// Finished runs are stored, runs in flight are dropped. `journal` may be null.
[[noreturn]] void leave_sweep(sweep::RecordWriter& writer, SweepDisplay& display,
                              const sweep::RunJournal* journal) {
  keep_finished(writer, display);
  std::fputs("bubblesim: stopped at once; what was finished is stored\n", stderr);
  std::fflush(nullptr);
  if (journal != nullptr) journal->remove();
  std::_Exit(kExitInterrupted);  // other threads are amid runs
}

/// A sweep on the threads of this process.
class LocalSweep {
 public:
  LocalSweep(const policy::Registry& registry, const sweep::ExecuteOptions& options,
             store::ResultsStore& store, std::unique_ptr<sweep::RunJournal> journal,
             SweepDisplay& display, Duration policy_bound, const std::string& kept_in)
      : registry_(registry), options_(options), shared_(options.device_folder),
        journal_(std::move(journal)), display_(display),
        writer_(store, kept_in),
        timeout_(policy_bound, [this] { keep_finished(writer_, display_); }),
        watch_(std::in_place, kSweepTick, [this] { look(); }) {}

  void give_up(const std::vector<store::PlannedRun>& runs, const sweep::DeadJournals& dead) {
    for (const store::PlannedRun& run : runs) {
      finished(sweep::failed_record(run, options_, sweep::reason_of(dead.suspicion(run.key))));
    }
  }

  void run(const std::vector<store::PlannedRun>& runs, std::size_t threads) {
    sweep::SweepPorts ports;
    ports.started = [&](const store::PlannedRun& run) {
      display_.started(run);
      if (journal_) journal_->started(run);
    };
    ports.done = [&](store::RunRecord&& record) {
      if (journal_) journal_->ended();
      finished(std::move(record));
    };
    ports.stopped = [&] { return signals_.count() > 0 || writer_.failed(); };
    sweep::ExecuteOptions options = options_;
    options.threads = threads;
    sweep::execute_runs(runs, registry_, options, ports, shared_);
  }

  [[nodiscard]] Result<void> finish() {
    watch_.reset();
    return writer_.finish();
  }

 private:
  void finished(store::RunRecord&& record) {
    display_.finished(record);
    writer_.add(std::move(record));
  }

  void look() {
    if (signals_.count() > 1) leave_sweep(writer_, display_, journal_.get());
    display_.show(signals_.count() > 0);
  }

  const policy::Registry& registry_;
  const sweep::ExecuteOptions& options_;
  sweep::SharedWork shared_;
  std::unique_ptr<sweep::RunJournal> journal_;
  SweepDisplay& display_;
  StopSignals signals_{SecondSignal::kIsCounted};
  sweep::RecordWriter writer_;
  PolicyTimeout timeout_;
  std::optional<Ticker> watch_;
};

}  // namespace

Result<void> run_sweep_here(const std::vector<store::PlannedRun>& runs,
                            const sweep::DeadJournals& dead, const policy::Registry& registry,
                            const sweep::ExecuteOptions& options, store::ResultsStore& store,
                            std::unique_ptr<sweep::RunJournal> journal, SweepDisplay& display,
                            Duration policy_bound, const std::string& kept_in) {
  const auto trusted = [&](sweep::Trust trust) {
    std::vector<store::PlannedRun> of_trust;
    for (const store::PlannedRun& run : runs) {
      if (sweep::trust_in(dead.suspicion(run.key)) == trust) of_trust.push_back(run);
    }
    return of_trust;
  };
  {
    LocalSweep sweep(registry, options, store, std::move(journal), display, policy_bound, kept_in);
    sweep.give_up(trusted(sweep::Trust::kNone), dead);
    sweep.run(trusted(sweep::Trust::kWithOthers), options.threads);
    sweep.run(trusted(sweep::Trust::kAlone), 1);
    BUBBLESIM_RETURN_IF_ERROR(sweep.finish());
  }
  display.clear();
  return {};
}

}  // namespace bubblesim::app
