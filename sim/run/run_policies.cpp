#include "sim/run/run_policies.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/observe/summary.hpp"
#include "sim/observe/usage_series.hpp"
#include "sim/policy/session/catch_thrown.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/parallel.hpp"
#include "sim/run/run_size.hpp"
#include "sim/run/simulation.hpp"
#include "sim/run/simulation_results.hpp"

namespace bubblesim::run {
namespace {

// How finely usage over time may be cut: so that what a run records of it stays within a limit.

// What is recorded of each of the run's policies; the limit of a report is shared evenly by its
// GPUs. An interval of 0 records nothing.
observe::UsageSetup usage_setup(const LoadedRun& loaded, Duration interval) {
  const std::uint64_t policies = std::max<std::uint64_t>(1, loaded.config.policies.size());
  const std::uint64_t gpus = std::max<std::uint64_t>(1, loaded.training->ranks.size());
  return {.interval = interval, .most = observe::kMostUsageIntervals / (policies * gpus)};
}

// Fault: in a run of `length` the limit would leave intervals out. The message has the shortest
// interval for which it does not.
Result<void> check_usage(const LoadedRun& loaded, Duration interval, Duration length) {
  if (interval <= Duration::zero()) return {};
  const observe::UsageSetup setup = usage_setup(loaded, interval);
  const Duration warmup = loaded.config.warmup;
  const std::uint64_t count =
      observe::UsageGrid(interval, kSimStart + warmup).count(kSimStart + length);
  if (count <= setup.most) return {};
  const auto least = observe::least_usage_interval(length, warmup, setup.most);
  return fail({}, "usage interval",
              "found " + format_duration(interval) + ", expected " +
                  (least ? format_duration(*least) + " or more" : "a run of fewer GPUs") + ": " +
                  format_duration(length) + " of " + std::to_string(loaded.training->ranks.size()) +
                  " GPUs under " + std::to_string(loaded.config.policies.size()) +
                  " policies would be more than " +
                  std::to_string(observe::kMostUsageIntervals) + " intervals");
}

// A run for iterations is cut when it has taken this many times as long as the job alone.
constexpr std::int64_t kPatience = 100;
// Fewer passes of a filler alone are told.
constexpr std::uint64_t kPassesAlone = 10;

observe::BubbleBaseline summary_of(GpuId gpu, const schedule::BubbleTable& table) {
  observe::BubbleBaseline out;
  out.gpu = gpu;
  double byte_seconds = 0;
  for (const policy::MeasuredBubble& bubble : table) {
    const policy::BubbleInfo& info = bubble.info;
    ++out.bubbles;
    out.time += info.expected;
    if (info.pipeline) out.pipeline_time += info.expected;
    if (info.free_memory == Bytes{}) continue;
    out.free_memory_least =
        std::min(out.free_memory_least.value_or(info.free_memory), info.free_memory);
    byte_seconds += static_cast<double>(info.free_memory.value) * to_seconds(info.expected);
  }
  if (out.free_memory_least) {
    out.free_memory_mean =
        Bytes{static_cast<std::uint64_t>(std::llround(byte_seconds / to_seconds(out.time)))};
  }
  return out;
}

bool limits_power(const RunConfig& config) {
  const auto& power = config.power;
  return power && (power->cap_w || power->node_cap_w || power->clock_mhz);
}

/// The same run, metered, at the full clock.
LoadedRun without_power_limit(LoadedRun run) {
  run.config.power->cap_w.reset();
  run.config.power->node_cap_w.reset();
  run.config.power->clock_mhz.reset();
  run.device.clock = 1;
  return run;
}

/// Nothing: without the limit no iteration was finished.
std::optional<observe::PowerLimitCost> cost_of_limit(const observe::PolicyResult& limited,
                                                     const observe::PolicyResult& unlimited) {
  const double rate = unlimited.training.iterations_per_s;
  if (rate <= 0) return std::nullopt;
  return observe::PowerLimitCost{rate, limited.training.iterations_per_s / rate,
                                 observe::power_of(unlimited)->mean_w,
                                 observe::power_of(limited)->mean_w};
}

Result<observe::PolicyResult> run_under_policy(const LoadedRun& loaded,
                                               const RunScenario& scenario) {
  return policy::catch_thrown(*scenario.policy,
                              [&] { return Simulation(loaded, scenario).run(); });
}

class PolicyRuns {
 public:
  PolicyRuns(const LoadedRun& loaded, const policy::Registry& registry, const RunOptions& options)
      : loaded_(loaded), registry_(registry), options_(options),
        baselines_(options.baselines.cache != nullptr ? *options.baselines.cache : own_),
        keys_(options.baselines.cache != nullptr ? options.baselines.keys : own_keys(loaded)) {}

  Result<observe::RunReport> run() {
    if (options_.size == Size::kChecked) BUBBLESIM_RETURN_IF_ERROR(check_size(loaded_));
    const std::optional<Duration> length = loaded_.config.duration;
    if (length) BUBBLESIM_RETURN_IF_ERROR(check_usage(loaded_, options_.usage_interval, *length));
    BUBBLESIM_RETURN_IF_ERROR(measure_training());
    if (!length) {
      BUBBLESIM_RETURN_IF_ERROR(
          check_usage(loaded_, options_.usage_interval, training_->simulated));
    }
    BUBBLESIM_RETURN_IF_ERROR(measure_fillers());
    BUBBLESIM_RETURN_IF_ERROR(measure_bubbles());
    BUBBLESIM_RETURN_IF_ERROR(run_each_policy());
    return report();
  }

 private:
  void tell(const std::string& text) const {
    if (!options_.progress) return;
    const std::scoped_lock lock(progress_);
    options_.progress(text);
  }

  static BaselineKeys own_keys(const LoadedRun& loaded) {
    BaselineKeys keys;
    for (const FillerConfig& filler : loaded.config.fillers) keys.fillers.push_back(filler.name);
    return keys;
  }

  Result<void> measure_training() {
    BUBBLESIM_ASSIGN_OR_RETURN(
        training_, baselines_.training.get(keys_.training, options_.stop, [this] {
          tell("training alone");
          return run_training_alone();
        }));
    return {};
  }

  Result<observe::PolicyResult> simulate_training(const LoadedRun& loaded) const {
    RunScenario job;
    job.stop = options_.stop;
    job.gpus.threads = options_.threads;
    return Simulation(loaded, job).run();
  }

  Result<TrainingAlone> run_training_alone() const {
    BUBBLESIM_ASSIGN_OR_RETURN(const observe::PolicyResult alone, simulate_training(loaded_));
    TrainingAlone training{alone.simulated, alone.training.mean_iteration,
                           alone.training.iterations_per_s,
                           observe::pass_of(alone.training.ranks),
                           observe::ranks_within_pass(alone.training.ranks) == 0,
                           observe::use_alone(alone), {}};
    if (!limits_power(loaded_.config)) return training;
    tell("training alone without the power limit");
    BUBBLESIM_ASSIGN_OR_RETURN(const observe::PolicyResult free,
                               simulate_training(without_power_limit(loaded_)));
    training.power_limit = cost_of_limit(alone, free);
    return training;
  }

  Result<void> measure_fillers() {
    const std::size_t count = loaded_.config.fillers.size();
    std::vector<Result<SharedResults<FillerProfile>::Pointer>> results(count);
    for_each_parallel(count, options_.threads, [&](std::size_t i) {
      results[i] = baselines_.fillers.get(keys_.fillers[i], options_.stop, [this, i] {
        tell("filler " + loaded_.config.fillers[i].name + " alone");
        return run_filler_alone(i);
      });
    });
    for (auto& result : results) {
      BUBBLESIM_RETURN_IF_ERROR(result);
      profiles_.push_back(**result);
    }
    return {};
  }

  Result<FillerProfile> run_filler_alone(std::size_t filler) const {
    RunScenario scenario;
    scenario.training = false;
    scenario.fillers = {static_cast<std::uint32_t>(filler)};
    scenario.limit = training_->simulated;
    scenario.stop = options_.stop;
    scenario.gpus.threads = spare_threads(loaded_.config.fillers.size());
    BUBBLESIM_ASSIGN_OR_RETURN(const observe::PolicyResult alone,
                               Simulation(loaded_, scenario).run());
    const observe::FillerResult& result = alone.fillers.front();
    FillerProfile profile;
    if (loaded_.server(filler) == nullptr) {
      profile.pass = measure_pass(loaded_.fillers[filler]->program, loaded_.device);
    }
    const std::size_t gpus = std::max<std::size_t>(1, result.instances.size());
    profile.few_passes = result.mode == observe::FillerMode::kOffline &&
                         loaded_.server(filler) == nullptr &&
                         result.passes < kPassesAlone * result.admitted_gpus();
    profile.requests_per_s = result.requests_per_s / static_cast<double>(gpus);
    const auto& goal = loaded_.config.precision;
    profile.keeps_up = goal && result.mode == observe::FillerMode::kOnline &&
                       observe::keeps_up(result, goal->fillers);
    profile.use = observe::use_alone(alone);
    return profile;
  }

  Result<void> measure_bubbles() {
    for (const PolicyChoice& choice : loaded_.config.policies) {
      BUBBLESIM_ASSIGN_OR_RETURN(const policy::PolicySpec* spec, registry_.find(choice.name));
      specs_.push_back(spec);
      if (!spec->needs.bubbles || bubbles_) continue;
      BUBBLESIM_ASSIGN_OR_RETURN(
          bubbles_, baselines_.bubbles.get(keys_.bubbles, options_.stop, [this] {
            tell("measuring the bubbles");
            return schedule::measure_bubbles(*loaded_.training, loaded_.device);
          }));
    }
    return {};
  }

  Result<void> run_each_policy() {
    const std::size_t count = loaded_.config.policies.size();
    std::vector<Result<observe::PolicyResult>> results(count);
    if (options_.time != nullptr) {
      options_.time->all_ns += to_ns(training_->simulated) * static_cast<std::int64_t>(count);
    }
    for_each_parallel(count, options_.threads, [&](std::size_t i) {
      tell("policy " + loaded_.config.policies[i].name);
      results[i] = run_recorded(i);
    });
    const bool keep = options_.when_stopped == WhenStopped::kKeepDone &&
                      options_.stop != nullptr && *options_.stop;
    for (std::size_t i = 0; i < count; ++i) {
      if (!results[i] && keep) {
        interrupted_.push_back(loaded_.config.policies[i].name);
        continue;
      }
      BUBBLESIM_RETURN_IF_ERROR(results[i]);
      policies_.push_back(std::move(*results[i]));
    }
    if (policies_.empty()) return fail("stopped before a policy was done");
    return {};
  }

  [[nodiscard]] Result<observe::PolicyResult> run_recorded(std::size_t index) const {
    RunScenario scenario = scenario_of(index);
    if (!options_.timelines) return run_under_policy(loaded_, std::move(scenario));
    const Duration iteration = training_->mean_iteration;
    const observe::TimelineWindow window{kSinkIterationsBefore * iteration,
                                         kSinkIterationsAfter * iteration};
    observe::TimelineRecorder own;
    own.set_window(window);
    if (scenario.timeline == nullptr) scenario.timeline = &own;
    observe::TimelineRecorder& timeline = *scenario.timeline;
    timeline.widen_window(window);
    auto result = run_under_policy(loaded_, std::move(scenario));
    if (result) options_.timelines(index, timeline, iteration);
    return result;
  }

  [[nodiscard]] RunScenario scenario_of(std::size_t index) const {
    RunScenario scenario;
    scenario.policy = specs_[index];
    scenario.parameters = &loaded_.config.policies[index].parameters;
    if (specs_[index]->needs.bubbles) scenario.bubbles = bubbles_.get();
    scenario.profiles = &profiles_;
    scenario.iteration = training_->mean_iteration;
    for (std::uint32_t i = 0; i < loaded_.config.fillers.size(); ++i) {
      scenario.fillers.push_back(i);
    }
    scenario.limit = std::min(training_->simulated, Duration::max() / kPatience) * kPatience;
    scenario.stop = options_.stop;
    if (options_.time != nullptr) scenario.passed_ns = &options_.time->done_ns;
    scenario.expected = training_->simulated;
    scenario.gpus.threads = spare_threads(loaded_.config.policies.size());
    scenario.usage = usage_setup(loaded_, options_.usage_interval);
    if (options_.timeline_of == index) scenario.timeline = options_.timeline;
    return scenario;
  }

  // For the GPUs of each of so many simulations that run at once.
  [[nodiscard]] std::size_t spare_threads(std::size_t simulations) const {
    return std::max<std::size_t>(1, options_.threads / std::max<std::size_t>(1, simulations));
  }

  void normalise(observe::PolicyResult& result) const {
    const std::optional<double> rate = training_->iterations_per_s > 0
                                           ? std::optional(training_->iterations_per_s)
                                           : std::nullopt;
    observe::TrainingScale scale = scale_of(loaded_, result.simulated, rate);
    scale.alone_pass = training_->pass;
    scale.alone_is_whole = training_->whole_passes;
    std::string stands_still = std::move(result.training.stands_still);
    result.training = observe::summarise_training(std::move(result.training.ranks), scale);
    result.training.stands_still = std::move(stands_still);
    for (std::size_t i = 0; i < result.fillers.size(); ++i) {
      observe::summarise_filler(result.fillers[i], result.simulated - result.warmup,
                                own_rate(result.fillers[i], profiles_[i]));
    }
  }

  // The filler's rate alone on one GPU. Runs whose lengths are not given see different arrivals: a
  // filler that keeps up alone would have served this run's arrivals.
  [[nodiscard]] double own_rate(const observe::FillerResult& filler,
                                const FillerProfile& profile) const {
    if (!loaded_.config.precision || !profile.keeps_up || !filler.offered_per_s) {
      return profile.requests_per_s;
    }
    const std::size_t gpus = std::max<std::size_t>(1, filler.instances.size());
    return *filler.offered_per_s / static_cast<double>(gpus);
  }

  /// Whether the config makes the job's iterations others than those recorded.
  [[nodiscard]] bool is_perturbed() const {
    const TrainingConfig& training = loaded_.config.training;
    return training.jitter_cv > 0 || !training.stragglers.empty() ||
           !training.slow_links.empty() || !training.faults.empty() ||
           limits_power(loaded_.config);
  }

  observe::RunReport report() {
    observe::RunReport report = report_before_runs(loaded_);
    report.interrupted = interrupted_;
    report.baseline.training_iterations_per_s = training_->iterations_per_s;
    report.baseline.training_mean_iteration = training_->mean_iteration;
    report.baseline.training_use = training_->use;
    report.baseline.power_limit = training_->power_limit;
    report.baseline.alone_as_recorded = !is_perturbed();
    if (!training_->whole_passes) report.counters.add(kWindowWithinPass);
    if (training_->whole_passes && training_->mean_iteration > Duration{}) {
      report.baseline.replay_error = replay_error(loaded_, training_->mean_iteration);
    }
    for (std::size_t i = 0; i < profiles_.size(); ++i) {
      report.baseline.fillers.push_back(
          {loaded_.config.fillers[i].name, profiles_[i].requests_per_s, profiles_[i].use});
      if (profiles_[i].few_passes) report.counters.add(kFewPassesAlone);
    }
    for (std::uint32_t gpu = 0; bubbles_ && gpu < bubbles_->size(); ++gpu) {
      report.baseline.bubbles.push_back(summary_of(GpuId{gpu}, (*bubbles_)[gpu]));
    }
    for (observe::PolicyResult& result : policies_) {
      normalise(result);
      report.policies.push_back(std::move(result));
    }
    return report;
  }

  const LoadedRun& loaded_;
  const policy::Registry& registry_;
  const RunOptions& options_;
  mutable std::mutex progress_;
  BaselineCache own_;  ///< used if none is shared
  BaselineCache& baselines_;
  const BaselineKeys keys_;
  SharedResults<TrainingAlone>::Pointer training_;
  std::vector<FillerProfile> profiles_;
  std::vector<const policy::PolicySpec*> specs_;
  SharedResults<BubbleTables>::Pointer bubbles_;  ///< null: no policy needs them
  std::vector<observe::PolicyResult> policies_;
  std::vector<std::string> interrupted_;  ///< policies without a result
};

}  // namespace

Result<observe::RunReport> run_policies(const LoadedRun& loaded, const policy::Registry& registry,
                                        const RunOptions& options) {
  return PolicyRuns(loaded, registry, options).run();
}

}  // namespace bubblesim::run
