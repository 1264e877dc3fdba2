#include "sim/run/run_policies.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <mutex>
#include <vector>

#include "sim/observe/summary.hpp"
#include "sim/run/measure_pass.hpp"
#include "sim/run/parallel.hpp"
#include "sim/run/simulation.hpp"

namespace bubblesim::run {
namespace {

// A run for iterations is cut when it has taken this many times as long as the job alone.
constexpr std::int64_t kPatience = 100;

/// What the policies' runs are measured against.
struct Alone {
  observe::PolicyResult training;
  std::vector<observe::PolicyResult> fillers;
};

observe::BubbleBaseline summary_of(GpuId gpu, const schedule::BubbleTable& table) {
  observe::BubbleBaseline out;
  out.gpu = gpu;
  double byte_seconds = 0;
  for (const schedule::Bubble& bubble : table) {
    ++out.bubbles;
    out.time += bubble.length;
    if (bubble.pipeline) out.pipeline_time += bubble.length;
    if (bubble.free_memory == Bytes{}) continue;
    out.free_memory_least =
        std::min(out.free_memory_least.value_or(bubble.free_memory), bubble.free_memory);
    byte_seconds += static_cast<double>(bubble.free_memory.value) * to_seconds(bubble.length);
  }
  if (out.free_memory_least) {
    out.free_memory_mean =
        Bytes{static_cast<std::uint64_t>(std::llround(byte_seconds / to_seconds(out.time)))};
  }
  return out;
}

/// Runs under a policy. Nothing of bubblesim throws here, but a policy from outside the tree may:
/// that ends its run, as an illegal decision does.
Result<observe::PolicyResult> run_under_policy(const LoadedRun& loaded, const Scenario& scenario) {
  const std::string place = "policy " + scenario.policy->name;
  try {
    return Simulation(loaded, scenario).run();
  } catch (const std::exception& fault) {
    return fail({}, place, std::string("threw an exception: ") + fault.what());
  } catch (...) {
    return fail({}, place, "threw something that is no std::exception");
  }
}

class PolicyRuns {
 public:
  PolicyRuns(const LoadedRun& loaded, const policy::Registry& registry, const RunOptions& options)
      : loaded_(loaded), registry_(registry), options_(options) {}

  Result<observe::RunReport> run() {
    BUBBLESIM_RETURN_IF_ERROR(run_alone());
    profile_fillers();
    BUBBLESIM_RETURN_IF_ERROR(measure_bubbles());
    BUBBLESIM_RETURN_IF_ERROR(run_each_policy());
    return report();
  }

 private:
  void tell(const std::string& text) {
    if (!options_.progress) return;
    const std::scoped_lock lock(progress_);
    options_.progress(text);
  }

  Result<void> run_alone() {
    tell("training alone");
    Scenario job;
    job.stop = options_.stop;
    job.gpus.threads = options_.threads;
    BUBBLESIM_ASSIGN_OR_RETURN(alone_.training, Simulation(loaded_, job).run());
    const std::size_t count = loaded_.config.fillers.size();
    std::vector<Result<observe::PolicyResult>> results(count);
    for_each_parallel(count, options_.threads, [&](std::size_t i) {
      tell("filler " + loaded_.config.fillers[i].name + " alone");
      Scenario scenario;
      scenario.training = false;
      scenario.fillers = {static_cast<std::uint32_t>(i)};
      scenario.limit = alone_.training.simulated;
      scenario.stop = options_.stop;
      scenario.gpus.threads = spare_threads(count);
      results[i] = Simulation(loaded_, scenario).run();
    });
    for (auto& result : results) {
      BUBBLESIM_RETURN_IF_ERROR(result);
      alone_.fillers.push_back(std::move(*result));
    }
    return {};
  }

  void profile_fillers() {
    for (std::size_t i = 0; i < loaded_.fillers.size(); ++i) {
      FillerProfile profile;
      const bool table = i < loaded_.tables.size() && loaded_.tables[i].has_value();
      if (!table) profile.pass = measure_pass(*loaded_.fillers[i], loaded_.device);
      profile.requests_per_s = own_gpu_rate(i);
      profiles_.push_back(profile);
    }
  }

  Result<void> measure_bubbles() {
    for (const PolicyChoice& choice : loaded_.config.policies) {
      BUBBLESIM_ASSIGN_OR_RETURN(const policy::PolicySpec* spec, registry_.find(choice.name));
      specs_.push_back(spec);
      if (!spec->needs.bubbles || !bubbles_.empty()) continue;
      tell("measuring the bubbles");
      BUBBLESIM_ASSIGN_OR_RETURN(bubbles_,
                                 schedule::measure_bubbles(*loaded_.training, loaded_.device));
    }
    return {};
  }

  Result<void> run_each_policy() {
    const std::size_t count = loaded_.config.policies.size();
    std::vector<Result<observe::PolicyResult>> results(count);
    for_each_parallel(count, options_.threads, [&](std::size_t i) {
      tell("policy " + loaded_.config.policies[i].name);
      results[i] = run_under_policy(loaded_, scenario_of(i));
    });
    for (auto& result : results) {
      BUBBLESIM_RETURN_IF_ERROR(result);
      policies_.push_back(std::move(*result));
    }
    return {};
  }

  [[nodiscard]] Scenario scenario_of(std::size_t index) const {
    Scenario scenario;
    scenario.policy = specs_[index];
    scenario.parameters = &loaded_.config.policies[index].parameters;
    if (specs_[index]->needs.bubbles) scenario.bubbles = &bubbles_;
    scenario.profiles = &profiles_;
    scenario.iteration = alone_.training.training.mean_iteration;
    for (std::uint32_t i = 0; i < loaded_.config.fillers.size(); ++i) {
      scenario.fillers.push_back(i);
    }
    scenario.limit = std::min(alone_.training.simulated, Duration::max() / kPatience) * kPatience;
    scenario.stop = options_.stop;
    scenario.gpus.threads = spare_threads(loaded_.config.policies.size());
    if (options_.timeline_of == index) scenario.timeline = options_.timeline;
    return scenario;
  }

  // For the GPUs of each of so many simulations that run at once.
  [[nodiscard]] std::size_t spare_threads(std::size_t simulations) const {
    return std::max<std::size_t>(1, options_.threads / std::max<std::size_t>(1, simulations));
  }

  // Requests a second of one GPU of the filler's own.
  [[nodiscard]] double own_gpu_rate(std::size_t filler) const {
    const observe::FillerResult& result = alone_.fillers[filler].fillers.front();
    const std::size_t gpus = std::max<std::size_t>(1, result.instances.size());
    return result.requests_per_s / static_cast<double>(gpus);
  }

  void normalise(observe::PolicyResult& result) const {
    const observe::TrainingResult& alone = alone_.training.training;
    const std::optional<double> rate =
        alone.iterations_per_s > 0 ? std::optional(alone.iterations_per_s) : std::nullopt;
    result.training = observe::summarise_training(
        std::move(result.training.ranks), {loaded_.samples_per_iteration, rate});
    for (std::size_t i = 0; i < result.fillers.size(); ++i) {
      observe::summarise_filler(result.fillers[i], result.simulated - result.warmup,
                                own_gpu_rate(i));
    }
  }

  observe::RunReport report() {
    observe::RunReport report;
    report.config = loaded_.config.name;
    report.seed = loaded_.config.seed;
    report.device = loaded_.device.name;
    report.ranks = static_cast<std::uint32_t>(loaded_.training->ranks.size());
    report.ranks_per_gpu = loaded_.fold;
    report.world_size = std::max(loaded_.world_size, report.ranks);
    report.counters = loaded_.counters;
    const observe::TrainingResult& alone = alone_.training.training;
    report.baseline.training_iterations_per_s = alone.iterations_per_s;
    report.baseline.training_mean_iteration = alone.mean_iteration;
    report.baseline.recorded_mean_iteration = loaded_.recorded_mean_iteration;
    if (loaded_.recorded_mean_iteration && loaded_.recorded_mean_iteration->count() > 0) {
      report.baseline.replay_error =
          to_seconds(alone.mean_iteration) / to_seconds(*loaded_.recorded_mean_iteration) - 1;
    }
    for (std::size_t i = 0; i < alone_.fillers.size(); ++i) {
      report.baseline.fillers.push_back({loaded_.config.fillers[i].name, own_gpu_rate(i)});
    }
    for (std::uint32_t gpu = 0; gpu < bubbles_.size(); ++gpu) {
      report.baseline.bubbles.push_back(summary_of(GpuId{gpu}, bubbles_[gpu]));
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
  std::mutex progress_;
  Alone alone_;
  std::vector<FillerProfile> profiles_;
  std::vector<const policy::PolicySpec*> specs_;
  std::vector<schedule::BubbleTable> bubbles_;
  std::vector<observe::PolicyResult> policies_;
};

}  // namespace

Result<observe::RunReport> run_policies(const LoadedRun& loaded, const policy::Registry& registry,
                                        const RunOptions& options) {
  return PolicyRuns(loaded, registry, options).run();
}

}  // namespace bubblesim::run
