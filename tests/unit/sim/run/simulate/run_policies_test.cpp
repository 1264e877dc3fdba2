// A whole report: the same whatever the number of threads, and cut where a policy starves training.
#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <tuple>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/observe/report.hpp"
#include "sim/run/run_size.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"

namespace bubblesim::run {
namespace {

using testing::AllOf, testing::HasSubstr;

TEST(RunPolicies, AnyNumberOfThreadsGivesTheSameBytesAndAnotherSeedDoesNot) {
  LoadedRun loaded = every_policy({offline("batch"), online("chat", 300)});
  const observe::RunReport on_one = report_of(loaded);
  const observe::RunReport four = report_of(loaded, on_threads(4));
  ASSERT_EQ(on_one.policies.size(), registry().all().size());
  EXPECT_EQ(observe::report_json(on_one), observe::report_json(four));
  EXPECT_EQ(observe::csv_rows(on_one), observe::csv_rows(four));
  EXPECT_EQ(observe::report_table(on_one, observe::Columns::kAll),
            observe::report_table(four, observe::Columns::kAll));
  loaded.config.seed = 2;
  EXPECT_NE(observe::csv_rows(report_of(loaded, on_threads(2))), observe::csv_rows(on_one));
}

TEST(RunPolicies, BaselinesAreTheJobAndEachFillerAlone) {
  LoadedRun loaded = small_run({offline("batch")}, {"exclusive", "mps"});
  const observe::RunReport report = report_of(loaded);
  EXPECT_EQ(report.baseline.training_mean_iteration, 7ms);
  EXPECT_DOUBLE_EQ(report.baseline.fillers.front().requests_per_s, 63 / 0.070);
  EXPECT_DOUBLE_EQ(*report.policies[0].training.normalised_to_alone, 1.0);
  EXPECT_DOUBLE_EQ(*report.policies[0].fillers.front().normalised_to_own_gpu, 0.0);
  EXPECT_LT(*report.policies[1].training.normalised_to_alone, 1.0);
  EXPECT_GT(*report.policies[1].fillers.front().normalised_to_own_gpu, 0.0);
}

// 63 passes in 70 ms: not 10 in 10 ms.
TEST(RunPolicies, AFillerThatEndsFewPassesAloneIsCounted) {
  LoadedRun loaded = small_run({offline("batch")}, {"exclusive"});
  EXPECT_EQ(report_of(loaded).counters.count("run_filler_alone_few_passes"), 0U);
  loaded.config.duration = 10ms;
  EXPECT_EQ(report_of(loaded).counters.count("run_filler_alone_few_passes"), 1U);
}

/// The small job with its iteration twice a pass, each time with an exchange of its own.
workload::JobProgram job_of_two_iterations(const hardware::GpuSpec& gpu) {
  workload::JobProgram job = golden::small_job(gpu);
  job.collectives.push_back(job.collectives.front());
  for (program::Program& rank : job.ranks) {
    std::vector<program::Step>& steps = rank.threads.front().steps;
    program::Step end = steps.back();
    steps.pop_back();
    const std::vector<program::Step> first = steps;
    const std::vector<program::Op> ops = rank.ops;
    for (program::Step step : first) {
      if (step.kind == program::StepKind::kIteration) {
        step.target = 1;
        step.think = end.think;
      } else if (step.kind == program::StepKind::kLaunch) {
        step.target += static_cast<std::uint32_t>(ops.size());
      }
      steps.push_back(step);
    }
    end.target = rank.iterations = 2;
    steps.push_back(end);
    for (program::Op op : ops) {
      if (op.collective != program::kNoIndex) op.collective = 1;
      rank.ops.push_back(op);
    }
  }
  return job;
}

// An iteration takes 7 ms, a pass 14: of 10 ms nothing is said about how well the pass repeats.
TEST(RunPolicies, AWindowShorterThanAPassIsCountedAndHasNoReplayError) {
  LoadedRun loaded = small_run({}, {"exclusive"});
  loaded.training = job_of_two_iterations(loaded.device);
  loaded.recorded_mean_iteration = 7ms;
  loaded.config.duration = 15ms;
  const observe::RunReport whole = report_of(loaded);
  EXPECT_EQ(whole.baseline.replay_error, 0);
  EXPECT_EQ(whole.counters.count("run_window_shorter_than_pass"), 0U);
  EXPECT_EQ(whole.policies.front().counters.count("run_window_shorter_than_pass"), 0U);
  loaded.config.duration = 10ms;
  const observe::RunReport part = report_of(loaded);
  EXPECT_EQ(part.baseline.training_mean_iteration, 7ms);
  EXPECT_EQ(part.baseline.replay_error, std::nullopt);
  EXPECT_EQ(part.counters.count("run_window_shorter_than_pass"), 1U);
  EXPECT_EQ(part.policies.front().counters.count("run_window_shorter_than_pass"), 2U)
      << "of both ranks";
}

// TGS measures for seconds what training does alone; the warm-up of 1 ms ends before.
TEST(RunPolicies, APolicyThatHasNotSettledIsCounted) {
  LoadedRun loaded = small_run({}, {"exclusive", "tgs"});
  loaded.config.warmup = 1ms;
  loaded.config.duration = 100ms;
  const observe::RunReport brief = report_of(loaded);
  EXPECT_EQ(brief.policies[0].counters.count("policy_not_settled_ms"), 0U);
  const auto settling = registry().find("tgs").value()->settling(
      loaded.config.policies[1].parameters, brief.baseline.training_mean_iteration);
  EXPECT_EQ(brief.policies[1].counters.count("policy_not_settled_ms"),
            static_cast<std::uint64_t>(settling / 1ms - 1));
  loaded.config.warmup = settling;
  loaded.config.duration = settling + 100ms;
  EXPECT_EQ(report_of(loaded).policies[1].counters.count("policy_not_settled_ms"), 0U);
}

// The host launches all of an iteration at once: only A's launch is waited for.
TEST(RunPolicies, AGateDelaysLaunchesThatAPolicyLooksAtAndNoneOfTheJobAlone) {
  LoadedRun loaded = small_run({offline("batch")}, {"exclusive", "mps"});
  loaded.config.duration = 7010us * 10;
  loaded.config.gate = policy::GateCosts{.ask = 20us, .tell = 10us, .always = true};
  const observe::RunReport gated = report_of(loaded);
  EXPECT_EQ(gated.baseline.training_mean_iteration, 7ms);
  EXPECT_EQ(gated.policies[0].training.mean_iteration, 7010us);
  loaded.config.gate->always = false;
  const observe::RunReport passed = report_of(loaded);
  EXPECT_EQ(passed.policies[0].training.mean_iteration, 7ms);
  EXPECT_LT(*gated.policies[1].fillers.front().normalised_to_own_gpu,
            *passed.policies[1].fillers.front().normalised_to_own_gpu);
}

// tgs looks at launches, ideal is a bound that costs training nothing.
TEST(RunPolicies, AGateThatIsNotAlwaysThereDelaysWhereAPolicyLooks) {
  LoadedRun loaded = small_run({}, {"tgs", "ideal"});
  loaded.config.duration = 7010us * 10;
  loaded.config.gate = policy::GateCosts{.ask = 20us, .tell = 10us};
  const observe::RunReport report = report_of(loaded);
  EXPECT_EQ(report.policies[0].training.mean_iteration, 7010us);
  EXPECT_EQ(report.policies[1].training.mean_iteration, 7ms);
}

// tgs has a library before the driver's, which tells of training's launches in 0.5 us and holds
// fillers' for 1.1; mps has none.
TEST(RunPolicies, WithoutAGateOfItsOwnARunHasTheMeasuredOneWherePoliciesNeedIt) {
  LoadedRun loaded = small_run({}, {"tgs", "mps"});
  const observe::RunReport report = report_of(loaded);
  EXPECT_EQ(report.policies[0].training.mean_iteration, 7ms + 500ns);
  EXPECT_EQ(report.policies[0].counters.count("policy_gate_ns"), 1100U);
  EXPECT_EQ(report.policies[0].counters.count("policy_gate_training_ns"), 500U);
  EXPECT_EQ(report.policies[1].training.mean_iteration, 7ms);
  EXPECT_EQ(report.policies[1].counters.count("policy_gate_ns"), 0U);
}

/// The mean iteration, 7 ms alone, under a policy that demands a library before the driver's.
Duration iteration_under(const std::string& policy,
                         const std::vector<std::pair<std::string, std::string>>& given) {
  const policy::PolicySpec& spec = **registry().find(policy);
  std::vector<policy::GivenParameter> values;
  for (const auto& [name, value] : given) values.push_back({name, value});
  LoadedRun loaded = small_run({});
  loaded.config.policies = {{policy, *policy::check_parameters(spec, values, "", "")}};
  return report_of(loaded).policies[0].training.mean_iteration;
}

// Without a limit training's process has no hook; with one each launch takes a token, and 1.1 us.
// Refills of 1 us give more tokens than it takes.
TEST(RunPolicies, VcudasHookCostsTrainingNothingUntilItHasALimit) {
  EXPECT_EQ(iteration_under("vcuda", {}), 7ms);
  EXPECT_EQ(iteration_under("vcuda", {{"training_limit", "99"}, {"refill", "1us"}}), 7ms + 1100ns);
}

TEST(RunPolicies, OrionsTrainingAsksInBothSettings) {
  EXPECT_EQ(iteration_under("orion", {}), 7ms + 1100ns);
  EXPECT_EQ(iteration_under("orion", {{"barrier", "fillers"}}), 7ms + 1100ns);
}

// Rank 0: A, B, AR (20 of 100 SMs), C in 0 - 5 of 7, AR for 2 of them; rank 1: AR for 1. The
// filler: 1 of 1.1 on 50 SMs, 63 whole times and 0.7 of the next in 70, on GPU 1 only.
TEST(RunPolicies, BaselinesSayHowTheGpusAreUsed) {
  LoadedRun loaded = small_run({offline("batch")}, {"exclusive"});
  loaded.config.fillers.front().gpus = {{1}};
  const observe::Baseline baseline = report_of(loaded).baseline;
  const observe::UseAlone& training = *baseline.training_use;
  EXPECT_DOUBLE_EQ(training.busy_fraction, 5.0 / 7);
  EXPECT_DOUBLE_EQ(training.bubble_fraction, (4.0 / 7 + 3.0 / 7) / 2);
  EXPECT_DOUBLE_EQ(training.sm_fraction, (3.4 / 7 + 4.2 / 7) / 2);
  EXPECT_EQ(training.memory_high_water, Bytes{10'000'000'000});
  const observe::UseAlone& filler = *baseline.fillers.front().use;
  EXPECT_DOUBLE_EQ(filler.busy_fraction, 63.7 / 70);
  EXPECT_DOUBLE_EQ(filler.sm_fraction, 63.7 / 70 / 2);
  EXPECT_EQ(filler.memory_high_water, Bytes{1'000'000'000});
}

// Turns of 1 us with 100 ms between them: training needs more than a hundred times as long.
TEST(RunPolicies, ARunForIterationsThatThePolicyStarvesIsCutAndCounted) {
  LoadedRun loaded = for_iterations(small_run({offline("batch")}), 2);
  const std::vector<policy::GivenParameter> given{{"slice", "1us"}, {"switch_cost", "100ms"}};
  loaded.config.policies = {
      {"time_slicing",
       *policy::check_parameters(**registry().find("time_slicing"), given, "", "")}};
  const observe::RunReport report = report_of(loaded);
  const observe::PolicyResult& result = report.policies.front();
  EXPECT_EQ(result.simulated, 100 * 14ms);
  EXPECT_EQ(result.counters.count("run_iterations_not_reached"), 1U);
  EXPECT_TRUE(result.training.stands_still.starts_with("no iteration in 1.4"));
  EXPECT_TRUE(result.counters.has_error());
}

// One after another: an interrupt while the second runs leaves the first.
TEST(RunPolicies, AnInterruptKeepsWhatIsDone) {
  LoadedRun loaded = small_run({offline("filler")});
  for (const char* name : {"exclusive", "mps", "time_slicing"}) {
    loaded.config.policies.push_back(choice(name));
  }
  std::atomic<bool> stop{false};
  RunOptions options;
  options.stop = &stop;
  options.progress = [&](const std::string& text) { stop = stop || text == "policy mps"; };
  EXPECT_FALSE(run_policies(loaded, registry(), options));
  stop = false;
  options.when_stopped = WhenStopped::kKeepDone;
  const auto report = report_of(loaded, options);
  ASSERT_EQ(report.policies.size(), 1U);
  EXPECT_EQ(report.policies.front().policy, "exclusive");
  EXPECT_EQ(report.policies.front().training.normalised_to_alone, 1.0);
  EXPECT_EQ(report.interrupted, (std::vector<std::string>{"mps", "time_slicing"}));
}

TEST(RunPolicies, AnInterruptBeforeAnythingIsDoneIsAFault) {
  LoadedRun loaded = small_run({}, {"mps"});
  const std::atomic<bool> stop{true};
  RunOptions options;
  options.stop = &stop;
  options.when_stopped = WhenStopped::kKeepDone;
  EXPECT_FALSE(run_policies(loaded, registry(), options));
}

TEST(RunPolicies, SimulatedTimeOfAllPoliciesIsTold) {
  LoadedRun loaded = small_run({offline("filler")}, {"exclusive", "mps"});
  loaded.config.duration = 300ms;
  SimulatedTime time;
  RunOptions options;
  options.time = &time;
  ASSERT_TRUE(run_policies(loaded, registry(), options));
  EXPECT_EQ(time.all_ns, 600'000'000);
  EXPECT_EQ(time.done_ns, 600'000'000);
}

// 1,000 a second for 70 ms under two policies: 140.
TEST(RunSize, IsWhatWouldBeSimulatedAlone) {
  LoadedRun loaded = small_run({online("chat", 1000)}, {"exclusive", "mps"});
  const RunSize size = size_of(loaded);
  EXPECT_DOUBLE_EQ(size.requests, 2 * 70);
  EXPECT_GT(size.kernels, 0);
  EXPECT_TRUE(check_size(loaded));
  loaded.config.fillers.front().arrivals = workload::PoissonArrivals{1e9};
  EXPECT_THAT(error_of(check_size(loaded)).text(), testing::HasSubstr("1.4e+08 requests"));
  RunOptions options;
  EXPECT_FALSE(run_policies(loaded, registry(), options));
}

// What a policy may not decide ends the run with its name, the time and the reason.
enum class Misdeed : std::uint8_t { kReleaseNothing, kNoSms, kNoSmsAtStart, kNoSlice, kNoClient };

/// Behaves until its tick at 3 ms.
class Rogue final : public policy::Policy {
 public:
  explicit Rogue(Misdeed misdeed) : misdeed_(misdeed) {}

  policy::Sharing start(const policy::GpuInfo&, std::span<const policy::ClientInfo>) override {
    if (misdeed_ != Misdeed::kNoSlice) return {};
    return {program::SharingMode::kTimeSliced, Duration{0}, Duration{0}, false};
  }
  policy::ClientSharing share(const policy::ClientInfo&) override {
    return {misdeed_ == Misdeed::kNoSmsAtStart ? 0U : 100U, 0};
  }
  std::optional<policy::Instant> next_tick() const override {
    return done_ ? std::nullopt : std::optional<policy::Instant>(3ms);
  }
  void on_tick(policy::Instant, policy::Actions& actions) override {
    done_ = true;
    if (misdeed_ == Misdeed::kReleaseNothing) actions.release(ClientId{1});
    if (misdeed_ == Misdeed::kNoSms) actions.set_sm_percentage(ClientId{1}, 101);
    if (misdeed_ == Misdeed::kNoClient) actions.set_priority(ClientId{7}, 1);
  }

 private:
  Misdeed misdeed_;
  bool done_ = false;
};

using Maker = std::function<std::unique_ptr<policy::Policy>(const policy::ParameterSet&)>;

std::string fault_of(Maker make) {
  policy::PolicySpec spec;
  spec.name = "rogue";
  spec.make = std::move(make);
  policy::Registry registry;
  registry.add(spec);
  LoadedRun loaded = small_run({offline("filler")});
  loaded.config.policies = {{"rogue", {}}};
  return error_of(run_policies(loaded, registry, {})).text();
}

std::string fault_of(Misdeed misdeed) {
  return fault_of([misdeed](const policy::ParameterSet&) {
    return std::make_unique<Rogue>(misdeed);
  });
}

TEST(IllegalDecision, AFunctionThatMakesNoPolicy) {
  EXPECT_THAT(fault_of([](const policy::ParameterSet&) { return nullptr; }),
              HasSubstr("policy rogue: its library made no policy"));
}

TEST(IllegalDecision, EndsTheRunAndSaysWhatWasDone) {
  for (const auto& [misdeed, when, what] :
       {std::tuple{Misdeed::kReleaseNothing, "illegal decision at 3ms",
                   "released client 1, which holds no launch"},
        {Misdeed::kNoSms, "at 3ms", "101 % of SMs"},
        {Misdeed::kNoClient, "at 3ms", "client 7"},
        {Misdeed::kNoSmsAtStart, "at the start", "0 % of SMs"},
        {Misdeed::kNoSlice, "", "a time slice of 0"}}) {
    EXPECT_THAT(fault_of(misdeed),
                AllOf(HasSubstr("policy rogue"), HasSubstr(when), HasSubstr(what)));
  }
}

}  // namespace
}  // namespace bubblesim::run
