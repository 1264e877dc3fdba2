// Runs that share what their parts do alone report the same bytes as runs that do not.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sim/observe/report.hpp"
#include "sim/run/baselines.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"

namespace bubblesim::run {
namespace {

RunOptions with(BaselineCache& cache, const LoadedRun& loaded) {
  RunOptions options;
  options.baselines.cache = &cache;
  BaselineKeys& keys = options.baselines.keys;
  keys.training = "job";
  for (const FillerConfig& filler : loaded.config.fillers) keys.fillers.push_back(filler.name);
  keys.bubbles = "programs";
  return options;
}

std::string text_of(const Result<observe::RunReport>& report) {
  if (!report) return report.error().text();
  return observe::report_json(*report) + observe::csv_rows(*report) +
         observe::report_table(*report, observe::Columns::kAll);
}

std::vector<LoadedRun> cases() {
  std::vector<LoadedRun> all;
  all.push_back(small_run({offline("batch"), online("chat", 300)}));
  all.push_back(all.back());
  all.back().config.training.jitter_cv = 0.1;
  all.back().config.training.stragglers = {{1, 1.5}};
  all.push_back(small_run({queue("queue", {{20}, {30, 5ms, 100ms}}), offline("batch")}));
  all.push_back(for_iterations(all.front(), 5));
  all.back().config.warmup = {};
  all.push_back(small_run({}));
  return all;
}

// Each policy in a run of its own, as a sweep has them, one after another and at once.
TEST(SharedBaselines, GiveTheSameBytesAsARunsOwn) {
  for (const LoadedRun& run : cases()) {
    BaselineCache cache;
    std::vector<std::thread> threads;
    for (const policy::PolicySpec& spec : registry().all()) {
      LoadedRun loaded = run;
      loaded.config.policies = {choice(spec.name)};
      const std::string own = text_of(run_policies(loaded, registry(), {}));
      const RunOptions options = with(cache, loaded);
      EXPECT_EQ(text_of(run_policies(loaded, registry(), options)), own) << spec.name;
      threads.emplace_back([loaded, options, own] {
        EXPECT_EQ(text_of(run_policies(loaded, registry(), options)), own);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(cache.training.made().count, 1U);
    EXPECT_EQ(cache.fillers.made().count, run.config.fillers.size());
    EXPECT_EQ(cache.bubbles.made().count, 1U);
  }
}

// An arrival rate that no process has: the filler alone fails, and each run with it.
TEST(SharedBaselines, AFailingOneFailsEachRunWithTheSameText) {
  LoadedRun loaded = small_run({online("chat", -1)}, {"mps"});
  const std::string own = text_of(run_policies(loaded, registry(), {}));
  EXPECT_NE(own.find("-1"), std::string::npos) << own;
  BaselineCache cache;
  RunOptions options = with(cache, loaded);
  for (int i = 0; i < 2; ++i) {
    const auto report = error_of(run_policies(loaded, registry(), options));
    EXPECT_EQ(report.text(), own);
  }
  EXPECT_EQ(cache.fillers.made().count, 1U);
}

TEST(SharedBaselines, AStoppedRunLeavesNone) {
  LoadedRun loaded = small_run({offline("batch")}, {"mps"});
  BaselineCache cache;
  const std::atomic<bool> stop{true};
  RunOptions options = with(cache, loaded);
  options.stop = &stop;
  const auto stopped = error_of(run_policies(loaded, registry(), options));
  EXPECT_EQ(stopped.message.substr(0, 7), "stopped");
  EXPECT_EQ(cache.training.made().count, 0U);
  options.stop = nullptr;
  EXPECT_EQ(text_of(run_policies(loaded, registry(), options)),
            text_of(run_policies(loaded, registry(), {})));
}

// Keys, nodes of lists and maps, and the numbers: less than half a kilobyte.
TEST(SharedBaselines, CostLittle) {
  LoadedRun loaded = small_run({offline("batch")}, {"mps"});
  BaselineCache cache;
  RunOptions options = with(cache, loaded);
  options.baselines.keys.training = options.baselines.keys.fillers[0] = std::string(32, 'k');
  ASSERT_TRUE(run_policies(loaded, registry(), options));
  EXPECT_LT(cache.training.bytes(), 512U);
  EXPECT_LT(cache.fillers.bytes(), 512U);
}

// Results that threads share: each is made once, waited for, kept within bounds, and made anew
// where its maker was stopped or threw.

using namespace std::chrono_literals;
using Results = SharedResults<std::string>;

constexpr std::size_t kMuch = 1 << 20;

std::size_t bytes_of(const std::string& text) { return text.capacity(); }

Results::Make gives(std::string text) {
  return [text] { return Result<std::string>(text); };
}

void wait_for(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::sleep_for(1ms);
}

TEST(SharedResults, AreMadeOnce) {
  Results results(kMuch);
  EXPECT_EQ(**results.get("a", nullptr, gives("one")), "one");
  EXPECT_EQ(**results.get("a", nullptr, gives("two")), "one");
  EXPECT_EQ(**results.get("b", nullptr, gives("two")), "two");
  EXPECT_EQ(results.made().count, 2U);
}

TEST(SharedResults, WhoAsksForOneThatIsBeingMadeWaits) {
  Results results(kMuch);
  std::atomic<int> makers{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto got = results.get("a", nullptr, [&]() -> Result<std::string> {
        ++makers;
        std::this_thread::sleep_for(20ms);
        return "one";
      });
      EXPECT_EQ(**got, "one");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(makers, 1);
}

TEST(SharedResults, WhoAsksForAnotherDoesNotWait) {
  Results results(kMuch);
  std::atomic<bool> made_b{false};
  std::thread other;
  const auto a = results.get("a", nullptr, [&]() -> Result<std::string> {
    other = std::thread([&] {
      EXPECT_TRUE(results.get("b", nullptr, gives("b")));
      made_b = true;
    });
    wait_for(made_b);  // before a is made
    return "a";
  });
  other.join();
  EXPECT_EQ(**a, "a");
}

TEST(SharedResults, AFaultIsAResult) {
  Results results(kMuch);
  const auto fails = [] { return Result<std::string>(fail("file", "place", "broken")); };
  EXPECT_EQ(results.get("a", nullptr, fails).error().text(), "file: place: broken");
  EXPECT_EQ(results.get("a", nullptr, gives("one")).error().text(), "file: place: broken");
  EXPECT_EQ(results.made().count, 1U);
}

// The first maker is stopped; who waits is not, and makes it.
TEST(SharedResults, AStoppedMakerLeavesItToTheNext) {
  Results results(kMuch);
  std::atomic<bool> stop{false};
  std::atomic<bool> making{false};
  std::thread first([&] {
    const auto got = results.get("a", &stop, [&]() -> Result<std::string> {
      making = true;
      wait_for(stop);
      return fail("stopped at 3ms");
    });
    EXPECT_EQ(got.error().message, "stopped at 3ms");
  });
  wait_for(making);
  std::thread second([&] { EXPECT_EQ(**results.get("a", nullptr, gives("two")), "two"); });
  std::this_thread::sleep_for(10ms);
  stop = true;
  first.join();
  second.join();
  EXPECT_EQ(results.made().count, 1U);
  EXPECT_EQ(**results.get("a", nullptr, gives("three")), "two");
}

TEST(SharedResults, WhoWaitsSeesItsOwnStop) {
  Results results(kMuch);
  std::atomic<bool> stop{false};
  std::atomic<bool> left{false};
  std::thread waiter;
  const auto got = results.get("a", nullptr, [&]() -> Result<std::string> {
    waiter = std::thread([&] {
      const auto none = results.get("a", &stop, gives("never"));
      EXPECT_EQ(none.error().message, "stopped while it waited for a baseline");
      left = true;
    });
    std::this_thread::sleep_for(10ms);
    stop = true;
    wait_for(left);  // while it is still being made
    return "one";
  });
  waiter.join();
  EXPECT_EQ(**got, "one");
}

TEST(SharedResults, AfterAnExceptionTheNextMakesIt) {
  Results results(kMuch);
  const auto throws = []() -> Result<std::string> { throw std::runtime_error("boo"); };
  EXPECT_THROW((void)results.get("a", nullptr, throws), std::runtime_error);
  EXPECT_EQ(**results.get("a", nullptr, gives("one")), "one");
}

// A text of 10,000 bytes and what it costs to keep one: two fit into 25,000, three do not.
TEST(SharedResults, WhatWasUsedLastIsKeptUpToABound) {
  Results results(25'000, &bytes_of);
  const std::string large(10'000, '.');
  for (const char* key : {"a", "b", "a", "c"}) {
    EXPECT_TRUE(results.get(key, nullptr, gives(large)));
    EXPECT_LE(results.bytes(), 25'000U);
  }
  EXPECT_EQ(results.made().count, 3U);
  EXPECT_EQ(**results.get("a", nullptr, gives("new")), large);
  EXPECT_EQ(**results.get("b", nullptr, gives("new")), "new");  // used before the others
}

TEST(SharedResults, WhatIsTooLargeIsKeptUntilTheNext) {
  Results results(5'000, &bytes_of);
  const std::string large(10'000, '.');
  EXPECT_EQ(**results.get("a", nullptr, gives(large)), large);
  EXPECT_EQ(**results.get("a", nullptr, gives("new")), large);
  EXPECT_EQ(**results.get("small", nullptr, gives("small")), "small");
  EXPECT_EQ(**results.get("a", nullptr, gives("new")), "new");
  EXPECT_EQ(**results.get("small", nullptr, gives("new")), "small");
}

TEST(SharedResults, WhatIsInUseIsSharedThoughNotKept) {
  Results results(0);
  const auto used = results.get("a", nullptr, gives("one"));
  EXPECT_TRUE(results.get("b", nullptr, gives("two")));
  EXPECT_EQ(*results.get("a", nullptr, gives("new")), *used);
}

}  // namespace
}  // namespace bubblesim::run
