// What specinf promises: over jobs and fillers drawn at random, training loses no more than its
// budget and what one bound of outstanding work costs. Kernels of one name differ in length here,
// so that what is learned of them is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/base/random.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/run/simulation.hpp"
#include "tests/golden/filling/small_job.hpp"

namespace bubblesim::run {
namespace {

using namespace std::chrono_literals;
using program::Op, program::Program, program::Step, program::StepKind;

constexpr Duration kRun = 3s;
constexpr Duration kLongestBubble = 8ms;
constexpr Duration kLongestFiller = 2ms;

/// Draws programs of kernels that fill the GPU, with times in which the host thinks.
class RandomPrograms {
 public:
  explicit RandomPrograms(std::uint64_t seed) : random_(seed, "training loss") {}

  /// Kernels of 20 us to 2 ms; behind one in five the host waits for them, and thinks.
  Program training(const hardware::GpuSpec& gpu) {
    Program program = empty(gpu);
    add(program, StepKind::kIteration, {});
    const std::uint64_t kernels = 5 + below(60);
    for (std::uint64_t i = 0; i < kernels; ++i) {
      launch(program, 20us + Duration{below(2'000'000)}, Duration{below(5'000)});
      if (random_.uniform() < 0.2) {
        wait(program);
        add(program, StepKind::kPause, Duration{below(kLongestBubble.count())});
      }
    }
    wait(program);
    add(program, StepKind::kEnd, Duration{below(kLongestBubble.count())}).target = 1;
    return program;
  }

  /// Kernels of 5 us to at most 2 ms, in passes that the host waits for.
  Program filler(const hardware::GpuSpec& gpu) {
    Program program = empty(gpu);
    const auto longest = static_cast<std::uint64_t>(kLongestFiller.count() >> below(5));
    for (int i = 0; i < 20; ++i) {
      launch(program, 5us + Duration{below(longest - 5'000)}, Duration{below(5'000)});
    }
    wait(program);
    return program;
  }

 private:
  static Program empty(const hardware::GpuSpec& gpu) {
    Program program;
    program.stream_count = 1;
    program.threads.push_back({"host", {}});
    program.profiles = {
        program::profile_kernel({100, 1024, 64, 0}, program::KernelClass::kUnknown, gpu)};
    return program;
  }
  static Step& add(Program& program, StepKind kind, Duration think) {
    Step& step = program.threads.front().steps.emplace_back();
    step.kind = kind;
    step.think = program::short_span(think);
    return step;
  }
  static void wait(Program& program) { add(program, StepKind::kWaitStream, {}); }
  void launch(Program& program, Duration length, Duration think) {
    Step& step = add(program, StepKind::kLaunch, think);
    step.target = static_cast<std::uint32_t>(program.ops.size());
    step.count = 1;
    Op& op = program.ops.emplace_back();
    op.duration = length;
    op.profile = 0;
    op.name = program.names.intern("kernel" + std::to_string(step.target % 7));
  }
  std::uint64_t below(std::int64_t limit) { return below(static_cast<std::uint64_t>(limit)); }
  std::uint64_t below(std::uint64_t limit) {
    return static_cast<std::uint64_t>(random_.uniform() * static_cast<double>(limit));
  }
  std::uint64_t below(int limit) { return below(static_cast<std::uint64_t>(limit)); }

  RandomStream random_;
};

LoadedRun load(std::uint64_t seed, bool online) {
  RandomPrograms random(seed);
  LoadedRun loaded;
  loaded.device = golden::small_gpu();
  loaded.device.completion_notice = 5us;
  workload::JobProgram job;
  job.ranks = {random.training(loaded.device)};
  loaded.training = Shared<workload::JobProgram>(std::move(job));
  loaded.config.seed = seed;
  loaded.config.duration = kRun;
  FillerConfig& filler = loaded.config.fillers.emplace_back();
  filler.name = "filler";
  filler.memory = Bytes{1'000'000};
  if (online) {
    filler.mode = observe::FillerMode::kOnline;
    filler.arrivals = workload::PoissonArrivals{20};
  }
  loaded.fillers = {LoadedFiller{random.filler(loaded.device)}};
  return loaded;
}

/// Time of the whole iterations, and how many.
std::pair<Duration, std::size_t> iterations(const LoadedRun& loaded, const RunScenario& scenario) {
  Simulation simulation(loaded, scenario);
  const auto result = simulation.run();
  EXPECT_TRUE(result) << result.error().text();
  if (!result) return {};
  const auto& times = result->training.ranks.front().times;
  Duration sum{};
  for (const Duration time : times) sum += time;
  return {sum, times.size()};
}

struct Budget {
  const char* text;
  double share;
};

class TrainingLoss : public testing::TestWithParam<bool> {};

TEST_P(TrainingLoss, IsAtMostTheBudgetAndOneBoundOfOutstandingWork) {
  const policy::Registry registry = policies::builtin_policies();
  const policy::PolicySpec& spec = **registry.find("specinf");
  Duration most_lost{};
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const LoadedRun loaded = load(seed, GetParam());
    const auto [alone, count] = iterations(loaded, {});
    const Duration iteration = alone / static_cast<std::int64_t>(count);
    for (const Budget budget : {Budget{"0.005", 0.005}, {"0.02", 0.02}, {"0.1", 0.1}}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", budget " + budget.text);
      const std::vector<policy::GivenParameter> given{{"budget", budget.text},
                                                      {"reference", "300ms"},
                                                      {"horizon", "3s"}};
      const auto parameters = policy::check_parameters(spec, given, "", "");
      ASSERT_TRUE(parameters);
      RunScenario scenario;
      scenario.policy = &spec;
      scenario.parameters = &*parameters;
      scenario.fillers = {0};
      const auto [shared, kept] = iterations(loaded, scenario);
      const Duration lost = shared - iteration * static_cast<std::int64_t>(kept);
      // A bubble may be longer the next time: then all of its learned length is outstanding.
      const Duration bound = kLongestBubble + kLongestFiller;
      // The budget of one horizon is there at the start; requests may owe as much.
      const Duration at_once = scale(3s, budget.share) * (GetParam() ? 2 : 1);
      EXPECT_LE(lost, scale(kRun, budget.share) + at_once + bound);
      most_lost = std::max(most_lost, lost);
    }
  }
  // Else the law would hold of a policy that admits nothing.
  EXPECT_GT(most_lost, kRun / 100);
}

INSTANTIATE_TEST_SUITE_P(Fillers, TrainingLoss, testing::Bool(),
                         [](const auto& test) { return test.param ? "Online" : "Offline"; });

}  // namespace
}  // namespace bubblesim::run
