// Runs that share what their parts do alone report the same bytes as runs that do not.
#include <gtest/gtest.h>

#include <thread>

#include "policies/builtin.hpp"
#include "sim/observe/report.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"

namespace bubblesim::run {
namespace {

SharedBaselines shared(BaselineCache& cache, const LoadedRun& loaded) {
  SharedBaselines out{&cache, {}};
  out.keys.training = "job";
  for (const FillerConfig& filler : loaded.config.fillers) {
    out.keys.fillers.push_back(filler.name);
  }
  out.keys.bubbles = "programs";
  return out;
}

std::string text_of(const Result<observe::RunReport>& report) {
  if (!report) return report.error().text();
  return observe::report_json(*report) + observe::csv_rows(*report) +
         observe::report_table(*report, observe::Columns::kAll);
}

FillerConfig jobs(const std::string& name) {
  FillerConfig filler = offline(name);
  filler.mode = observe::FillerMode::kJobs;
  filler.jobs = {{20, 0ms, {}}, {30, 5ms, 100ms}};
  return filler;
}

std::vector<LoadedRun> cases() {
  std::vector<LoadedRun> all;
  all.push_back(small_run({offline("batch"), online("chat", 300)}));
  all.push_back(all.back());
  all.back().config.training.jitter_cv = 0.1;
  all.back().config.training.stragglers = {{1, 1.5}};
  all.push_back(small_run({jobs("queue"), offline("batch")}));
  all.push_back(all.front());
  all.back().config.duration.reset();
  all.back().config.iterations = 5;
  all.back().config.warmup = {};
  all.push_back(small_run({}));
  return all;
}

class SharedBaselinesTest : public ::testing::Test {
 protected:
  const policy::Registry registry = policies::builtin_policies();
};

// Each policy in a run of its own, as a sweep has them, one after another and at once.
TEST_F(SharedBaselinesTest, GiveTheSameBytesAsARunsOwn) {
  for (const LoadedRun& run : cases()) {
    BaselineCache cache;
    std::vector<std::thread> threads;
    for (const policy::PolicySpec& spec : registry.all()) {
      LoadedRun loaded = run;
      loaded.config.policies = {choice(spec.name, registry)};
      RunOptions options;
      const std::string own = text_of(run_policies(loaded, registry, options));
      options.baselines = shared(cache, loaded);
      EXPECT_EQ(text_of(run_policies(loaded, registry, options)), own) << spec.name;
      threads.emplace_back([loaded, options, own, this] {
        EXPECT_EQ(text_of(run_policies(loaded, registry, options)), own);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(cache.training.made().count, 1U);
    EXPECT_EQ(cache.fillers.made().count, run.config.fillers.size());
    EXPECT_EQ(cache.bubbles.made().count, 1U);
  }
}

// An arrival rate that no process has: the filler alone fails, and each run with it.
TEST_F(SharedBaselinesTest, AFailingOneFailsEachRunWithTheSameText) {
  LoadedRun loaded = small_run({online("chat", -1)});
  loaded.config.policies = {choice("mps", registry)};
  const std::string own = text_of(run_policies(loaded, registry, {}));
  EXPECT_NE(own.find("-1"), std::string::npos) << own;
  BaselineCache cache;
  RunOptions options;
  options.baselines = shared(cache, loaded);
  for (int i = 0; i < 2; ++i) {
    const auto report = run_policies(loaded, registry, options);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().text(), own);
  }
  EXPECT_EQ(cache.fillers.made().count, 1U);
}

TEST_F(SharedBaselinesTest, AStoppedRunLeavesNone) {
  LoadedRun loaded = small_run({offline("batch")});
  loaded.config.policies = {choice("mps", registry)};
  BaselineCache cache;
  const std::atomic<bool> stop{true};
  RunOptions options;
  options.baselines = shared(cache, loaded);
  options.stop = &stop;
  const auto stopped = run_policies(loaded, registry, options);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message.substr(0, 7), "stopped");
  EXPECT_EQ(cache.training.made().count, 0U);
  options.stop = nullptr;
  EXPECT_EQ(text_of(run_policies(loaded, registry, options)),
            text_of(run_policies(loaded, registry, {})));
}

// Keys, nodes of lists and maps, and the numbers: less than half a kilobyte.
TEST_F(SharedBaselinesTest, CostLittle) {
  LoadedRun loaded = small_run({offline("batch")});
  loaded.config.policies = {choice("mps", registry)};
  BaselineCache cache;
  RunOptions options;
  options.baselines = shared(cache, loaded);
  options.baselines.keys.training = options.baselines.keys.fillers[0] = std::string(32, 'k');
  ASSERT_TRUE(run_policies(loaded, registry, options));
  EXPECT_LT(cache.training.bytes(), 512U);
  EXPECT_LT(cache.fillers.bytes(), 512U);
}

}  // namespace
}  // namespace bubblesim::run
