// A filler alone runs its first pass event by event, and one event a pass then: its report is that
// of a run in which every pass has its events, byte by byte.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/base/random.hpp"
#include "sim/observe/report.hpp"
#include "sim/program/kernel_profile.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/run/simulation.hpp"

namespace bubblesim::run {
namespace {

constexpr const char* kTrace = R"("program": {"trace": "traces/samples/inference.json.gz"})";
constexpr const char* kPlan = R"("data": 2, "global_batch": 8, "micro_batch": 4, "sequence": 128,
                                 "software": "pytorch")";

struct Case {
  std::string name;
  std::string filler;  ///< JSON, without its name
  std::string length;  ///< JSON
  bool repeats = true;
  std::uint64_t drawn = 0;  ///< the number of its program; 0: the recorded one
};

std::vector<Case> cases() {
  const std::string online = fmt::format(
      R"("mode": "online", {}, "max_batch": 8, "max_wait": "2ms", "batch_cost": 0.3,)", kTrace);
  const auto poisson = [&online](int rate, const std::string& more = {}) {
    return online + fmt::format(R"("arrivals": {{"process": "poisson", "rate_per_s": {}}}{})",
                                rate, more);
  };
  const std::string offline =
      fmt::format(R"("mode": "offline", {}, "requests_per_pass": 8, "memory": "2GB")", kTrace);
  const std::string time = R"("duration": "1234567891ns", "warmup": "123456789ns")";
  std::vector<Case> all{
      {"offline", offline, time},
      {"offline_until_known", offline, R"("duration": "auto")"},
      {"offline_for_iterations", offline, R"("iterations": 20, "warmup": "31ms")"},
      {"online", poisson(100), time},
      {"online_in_batches", poisson(900), time},
      {"overloaded", poisson(5000), time},
      {"online_until_known", poisson(300), R"("duration": "auto")"},
      {"jitter", poisson(300, R"(, "jitter_cv": 0.1)"), time, false}};
  for (std::uint64_t i = 1; i <= 6; ++i) {
    all.push_back({fmt::format("drawn_{}", i), i % 2 == 0 ? offline : poisson(900), time, true, i});
  }
  all.push_back({"held_by_the_last_pass", offline, time, false, 7});
  return all;
}

/// A program of kernels that compete, and of copies, over three streams and two threads.
class RandomProgram {
 public:
  RandomProgram(const hardware::GpuSpec& device, std::uint64_t seed)
      : random_(seed, "random program") {
    program_.stream_count = 3;
    program_.threads.resize(2);
    program_.own_kernels = program::OwnKernels::kCompete;
    for (const std::uint32_t blocks : {1U, 60U, 300U, 5'000U}) {
      program_.profiles.push_back(program::profile_kernel(
          {blocks, 256, 64, 0}, program::KernelClass::kMemory, device));
    }
    for (int i = 0; i < 80; ++i) launch(below(2));
    for (program::ThreadProgram& thread : program_.threads) {
      add_step(thread, program::StepKind::kWaitDevice).detail =
          static_cast<std::uint32_t>(program_.details.size());
    }
    program_.details.push_back({program::ShortSpan{1 + below(5'000)}});
  }
  [[nodiscard]] const program::Program& program() const { return program_; }

 private:
  std::uint32_t below(std::uint32_t limit) {
    return static_cast<std::uint32_t>(random_.uniform() * limit);
  }

  program::Step& add_step(program::ThreadProgram& thread, program::StepKind kind) {
    program::Step& step = thread.steps.emplace_back();
    step.think = program::ShortSpan{3'000 + below(3'000)};
    step.cost = program::ShortSpan{1 + below(3'000)};
    step.kind = kind;
    return step;
  }

  void launch(std::uint32_t thread) {
    const auto index = static_cast<std::uint32_t>(program_.ops.size());
    program::Step& step = add_step(program_.threads[thread],
                                   below(10) == 0 ? program::StepKind::kLaunchAndWait
                                                  : program::StepKind::kLaunch);
    step.target = index;
    step.count = 1;
    program::Op& op = program_.ops.emplace_back();
    op.duration = Duration{1 + below(20'000)};
    op.launch_lag = program::ShortSpan{below(4'000)};
    op.gap = program::ShortSpan{below(3'000)};
    op.stream = static_cast<std::uint16_t>(below(3));
    op.result_slot = program_.result_slots++;
    op.profile = below(4);
    if (below(10) == 0) {
      op.kind = program::WorkKind::kCopy;
      op.profile = program::kNoIndex;
    }
    std::vector<std::uint32_t>& before = ops_of_[thread];  // launched earlier, so it ends
    if (!before.empty() && below(3) == 0) {
      op.first_edge = static_cast<std::uint32_t>(program_.edges.size());
      op.edge_count = 1;
      const std::uint32_t from = before[below(static_cast<std::uint32_t>(before.size()))];
      program_.edges.push_back({from, program::ShortSpan{below(2'000)}});
    }
    before.push_back(index);
  }

  RandomStream random_;
  program::Program program_;
  std::array<std::vector<std::uint32_t>, 2> ops_of_;
};

class LoneFiller : public testing::TestWithParam<Case> {};

observe::PolicyResult result_of(const LoadedRun& loaded, Duration interval) {
  RunScenario scenario;
  scenario.training = false;
  scenario.fillers = {0};
  scenario.limit = std::chrono::seconds(2);
  scenario.usage.interval = interval;
  auto result = Simulation(loaded, scenario).run();
  EXPECT_TRUE(result) << result.error().text();
  return *std::move(result);
}

std::string text_of(observe::PolicyResult result) {
  result.events = 0;
  result.usage.clear();
  observe::RunReport report;
  report.policies.push_back(std::move(result));
  return observe::report_json(report);
}

// Usage over time is a view of every event.
TEST_P(LoneFiller, PassesThatRepeatAreThoseOfEvents) {
  const std::string root = BUBBLESIM_SOURCE_DIR;
  const policy::Registry registry = policies::builtin_policies();
  const std::string text = fmt::format(
      R"({{"name": "alone", "seed": 3, {},
          "training": {{"synth": {{"model": "bert-base", "cluster": "dgx-a100-80gb", "nodes": 1,
                                  "folding": "nothing", "plan": {{{}}}}}}},
          "fillers": [{{"name": "filler", {}}}], "policies": ["mps"]}})",
      GetParam().length, kPlan, GetParam().filler);
  const auto config = parse_run_config(text, root + "/alone.json", registry);
  ASSERT_TRUE(config) << config.error().front().text();
  auto loaded = load_run(*config, root + "/configs/devices");
  ASSERT_TRUE(loaded) << loaded.error().front().text();
  if (GetParam().drawn > 0) {
    program::Program drawn = RandomProgram(loaded->device, GetParam().drawn).program();
    if (!GetParam().repeats) drawn.ops.front().gap = program::ShortSpan{1'000'000};
    loaded->fillers.front() = LoadedFiller{std::move(drawn)};
  }
  const observe::PolicyResult found = result_of(*loaded, {});
  const observe::PolicyResult expected = result_of(*loaded, std::chrono::milliseconds(70));
  EXPECT_EQ(text_of(found), text_of(expected));
  const bool repeats = found.events < expected.events / 10;
  EXPECT_EQ(repeats, GetParam().repeats) << found.events << " of " << expected.events << " events";
}

INSTANTIATE_TEST_SUITE_P(Fillers, LoneFiller, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace bubblesim::run
