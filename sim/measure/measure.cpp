#include "sim/measure/measure.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "sim/base/units.hpp"
#include "sim/measure/arm.hpp"
#include "sim/measure/job_plans.hpp"
#include "sim/observe/summary.hpp"
#include "sim/policy/session/start.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/simulation_results.hpp"
#include "sim/schedule/gpu_plan.hpp"

namespace bubblesim::measure {
namespace {

/// The job alone, each filler alone, then every policy: the order of sim/run.
class Measurements {
 public:
  Measurements(const run::LoadedRun& lone, const policy::Registry& registry,
               const capture::RigPlace& place, const MeasureOptions& options)
      : lone_(lone), registry_(registry), place_(place), options_(options),
        report_(run::report_before_runs(lone)) {}

  Result<observe::RunReport> run() {
    BUBBLESIM_RETURN_IF_ERROR(measure_training());
    BUBBLESIM_RETURN_IF_ERROR(measure_fillers());
    BUBBLESIM_RETURN_IF_ERROR(measure_policies());
    fill_report();
    return std::move(report_);
  }

 private:
  void tell(const std::string& text) const {
    if (place_.progress) place_.progress(text);
  }

  Result<void> measure_training() {
    tell("training alone");
    Arm arm;
    arm.name = "alone";
    BUBBLESIM_ASSIGN_OR_RETURN(const observe::PolicyResult result,
                               run_arm(lone_, arm, alone_, place_, options_));
    if (result.training.iterations == 0) {
      return fail(lone_.config.file, {},
                  "the job alone ended no iteration in the " +
                      format_duration(result.simulated - result.warmup) + " that are measured");
    }
    alone_.iteration = result.training.mean_iteration;
    alone_.length = result.simulated;
    report_.baseline.training_iterations_per_s = result.training.iterations_per_s;
    report_.baseline.training_mean_iteration = result.training.mean_iteration;
    alone_pass_ = observe::pass_of(result.training.ranks);
    alone_is_whole_ = observe::ranks_within_pass(result.training.ranks) == 0;
    report_.counters.merge(result.counters);
    return {};
  }

  Result<void> measure_fillers() {
    for (std::uint32_t i = 0; i < lone_.config.fillers.size(); ++i) {
      const std::string& name = lone_.config.fillers[i].name;
      tell("filler " + name + " alone");
      Arm arm;
      arm.name = name + "-alone";
      arm.training = false;
      arm.fillers = {i};
      BUBBLESIM_ASSIGN_OR_RETURN(const observe::PolicyResult result,
                                 run_arm(lone_, arm, alone_, place_, options_));
      const observe::FillerResult& filler = result.fillers.front();
      report_.baseline.fillers.push_back({name, filler.requests_per_s, {}});
      report_.counters.merge(result.counters);
      alone_.pass.push_back(pass_of(i, filler, result.simulated - result.warmup));
    }
    return {};
  }

  // The length of a filler's pass. Passes of a service that waits for requests do not follow each
  // other, so its profile is the simulator's, of the recorded program.
  [[nodiscard]] Duration pass_of(std::uint32_t index, const observe::FillerResult& filler,
                                 Duration window) const {
    const auto passes = static_cast<std::int64_t>(filler.passes);
    if (filler.mode == observe::FillerMode::kOffline && passes > 0) return window / passes;
    return run::measure_pass(lone_.fillers[index]->program, lone_.device);
  }

  Result<void> measure_policies() {
    std::map<std::string, int> times;
    for (const run::PolicyChoice& choice : lone_.config.policies) {
      tell("policy " + choice.name);
      BUBBLESIM_ASSIGN_OR_RETURN(const policy::PolicySpec* spec, registry_.find(choice.name));
      Arm arm;
      arm.name = choice.name;
      if (++times[choice.name] > 1) arm.name += "-" + std::to_string(times[choice.name]);
      arm.policy = spec;
      arm.parameters = &choice.parameters;
      for (std::uint32_t i = 0; i < lone_.config.fillers.size(); ++i) arm.fillers.push_back(i);
      if (spec->needs.bubbles) {
        BUBBLESIM_RETURN_IF_ERROR(measure_bubbles());
        arm.bubbles = &bubbles_->front();
      }
      BUBBLESIM_ASSIGN_OR_RETURN(observe::PolicyResult result,
                                 run_arm(lone_, arm, alone_, place_, options_));
      normalise(result);
      report_.policies.push_back(std::move(result));
    }
    return {};
  }

  // Simulates the recorded job for its bubbles, which a training engine knows from profiling.
  Result<void> measure_bubbles() {
    if (bubbles_) return {};
    BUBBLESIM_ASSIGN_OR_RETURN(bubbles_,
                               schedule::measure_bubbles(*lone_.training, lone_.device));
    return {};
  }

  void normalise(observe::PolicyResult& result) const {
    observe::TrainingScale scale{lone_.samples_per_iteration,
                                 report_.baseline.training_iterations_per_s};
    scale.alone_pass = alone_pass_;
    scale.alone_is_whole = alone_is_whole_;
    result.training = observe::summarise_training(std::move(result.training.ranks), scale);
    for (std::size_t i = 0; i < result.fillers.size(); ++i) {
      observe::summarise_filler(result.fillers[i], result.simulated - result.warmup,
                                report_.baseline.fillers[i].requests_per_s);
    }
  }

  void fill_report() {
    report_.baseline.replay_error =
        run::replay_error(lone_, report_.baseline.training_mean_iteration);
    observe::Measurement measured;
    measured.place = place_.fake != nullptr ? "fake" : "gpu";
    measured.rank = lone_.training->ranks.front().rank;
    report_.measured = measured;
  }

  const run::LoadedRun& lone_;
  const policy::Registry& registry_;
  const capture::RigPlace& place_;
  const MeasureOptions& options_;
  Alone alone_;
  std::vector<Duration> alone_pass_;
  bool alone_is_whole_ = true;
  std::optional<std::vector<schedule::BubbleTable>> bubbles_;
  observe::RunReport report_;
};

}  // namespace

Result<observe::RunReport> measure_policies(const run::LoadedRun& lone,
                                            const policy::Registry& registry,
                                            const capture::RigPlace& place,
                                            const MeasureOptions& options) {
  return Measurements(lone, registry, place, options).run();
}

// Whether a GPU can do what a config asks for: everything that is known before anything starts.

namespace {

Result<void> check_policy(const run::LoadedRun& lone, const run::PolicyChoice& choice,
                          const policy::Registry& registry, const capture::RigPlace& place) {
  BUBBLESIM_ASSIGN_OR_RETURN(const policy::PolicySpec* spec, registry.find(choice.name));
  Arm arm;
  arm.policy = spec;
  for (std::uint32_t i = 0; i < lone.config.fillers.size(); ++i) arm.fillers.push_back(i);
  BUBBLESIM_ASSIGN_OR_RETURN(const std::unique_ptr<policy::Policy> policy,
                             policy::make_policy(*spec, choice.parameters));
  const std::vector<policy::ClientInfo> clients = client_infos(lone, arm, {});
  BUBBLESIM_ASSIGN_OR_RETURN(const schedule::GpuPlan plan,
                             schedule::plan_gpu(*spec, *policy, lone.device, clients,
                                                schedule::DrivenBy::kGate));
  BUBBLESIM_RETURN_IF_ERROR(substrate_of(*spec, plan.decided, clients, lone.device, place));
  return {};
}

}  // namespace

Errors check_measurable(const run::LoadedRun& lone, const policy::Registry& registry,
                        const capture::RigPlace& place) {
  Errors faults;
  const auto note = [&faults](const auto& result) {
    if (!result) faults.push_back(result.error());
  };
  if (lone.config.precision) {
    faults.push_back({lone.config.file, "/duration",
                      "found \"auto\"; expected a span: nobody can say of a GPU beforehand how "
                      "long it would take"});
  }
  if (lone.config.power) {
    faults.push_back({lone.config.file, "/power",
                      "a GPU's cap and clock are set by its administrator (nvidia-smi -pl, -lgc), "
                      "and nothing is metered here; expected no such key"});
  }
  if (!lone.config.training.faults.empty()) {
    faults.push_back({lone.config.file, "/training/faults",
                      "nobody stops a job on a real GPU here; expected none"});
  }
  // Arrivals are drawn for the run itself; one that has no end says so here too.
  const PlanSetup setup{.length = std::chrono::milliseconds(1)};
  note(training_plan(lone, setup));
  for (std::uint32_t i = 0; i < lone.config.fillers.size(); ++i) {
    note(filler_plan(lone, i, ClientId{i + 1}, setup));
  }
  for (const run::PolicyChoice& choice : lone.config.policies) {
    note(check_policy(lone, choice, registry, place));
  }
  return faults;
}

}  // namespace bubblesim::measure
