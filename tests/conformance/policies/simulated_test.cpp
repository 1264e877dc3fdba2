// What every policy must keep to when the simulator carries out its decisions: a job of two ranks
// (tests/golden/filling/small_job.hpp: 7 ms an iteration, A, B, a collective, C) beside an offline
// and an online filler, for 2 s.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/observe/report.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/workload/kernel_table.hpp"
#include "tests/fault.hpp"
#include "tests/golden/filling/small_job.hpp"

namespace bubblesim::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kGigabyte = 1'000'000'000;

constexpr const char* kConfig = R"({
  "name": "conformance",
  "duration": "2s",
  "training": {"trace": "small_job.cpp", "memory": "10GB"},
  "fillers": [
    {"name": "offline", "mode": "offline", "program": {"kernel_table": "filler.csv"},
     "memory": "6GB"},
    {"name": "online", "mode": "online", "program": {"kernel_table": "filler.csv"},
     "memory": "6GB", "arrivals": {"process": "poisson", "rate_per_s": 40}}
  ],
  "policies": ["POLICY"]
})";

/// The run under one policy.
class SimulatedPolicy : public ::testing::Test {
 protected:
  void load(const std::string& policy) {
    registry_ = policies::builtin_policies();
    std::string text = kConfig;
    text.replace(text.find("POLICY"), 6, policy);
    auto config = must(run::parse_run_config(text, "conformance.json", registry_));
    loaded_.config = config;
    loaded_.device = golden::small_gpu();
    loaded_.device.memory = Bytes{20 * kGigabyte};
    loaded_.device.host_bandwidth = {25e9};
    loaded_.device.dram_bandwidth = {1500e9};
    loaded_.device.mig = {7, 8, 14};
    loaded_.training = golden::small_job(loaded_.device);
    // 10 kernels of 200 us on half of the SMs, in turn with 10 on twice as many as there are.
    std::string table = "Name,Profile,Memory_footprint,SM_usage,Duration\n";
    for (int i = 0; i < 10; ++i) table += "F,1,0,50,200000\nG,0,0,200,200000\n";
    const Shared filler(run::LoadedFiller{
        must(workload::parse_kernel_table(table, "filler.csv", loaded_.device, 20us))});
    loaded_.fillers = {filler, filler};
  }

  observe::RunReport run() {
    return must(run::run_policies(loaded_, registry_, {}));
  }

  policy::Registry registry_;
  run::LoadedRun loaded_;
};

class EverySimulatedPolicy : public SimulatedPolicy,
                             public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { load(GetParam()); }
};

// Two contexts beside it leave a third of the GPU, and ranks that take turns at other times wait
// for each other: an eighth.
TEST_P(EverySimulatedPolicy, leaves_training_its_share) {
  const observe::RunReport report = run();
  ASSERT_EQ(report.policies.size(), 1u);
  EXPECT_GT(report.policies[0].training.normalised_to_alone.value_or(0), 0.125);
}

TEST_P(EverySimulatedPolicy, keeps_to_the_devices_memory) {
  const observe::RunReport report = run();
  for (const auto& gpu : report.policies.at(0).gpus) {
    EXPECT_LE(gpu.memory_high_water, loaded_.device.memory);
  }
}

// With a warm-up, whose backlog is served in the window; and with more load than there is room for.
TEST_P(EverySimulatedPolicy, accounts_for_every_request) {
  for (const double rate : {40.0, 2000.0}) {
    SCOPED_TRACE(rate);
    loaded_.config.warmup = 500ms;
    loaded_.config.fillers[1].arrivals = workload::PoissonArrivals{rate};
    const observe::RunReport report = run();
    for (const auto& filler : report.policies.at(0).fillers) {
      SCOPED_TRACE(filler.name);
      EXPECT_EQ(filler.requests_before + filler.requests_arrived,
                filler.requests_completed + filler.requests_unfinished + filler.requests_refused);
    }
  }
}

// A pass serves one request: what is served is what was passed, and no row shows 0 where it is not.
TEST_P(EverySimulatedPolicy, completes_as_many_requests_as_it_has_passes) {
  loaded_.config.warmup = 500ms;
  for (const double rate : {40.0, 2000.0}) {
    SCOPED_TRACE(rate);
    loaded_.config.fillers[1].arrivals = workload::PoissonArrivals{rate};
    const observe::RunReport report = run();
    for (const auto& filler : report.policies.at(0).fillers) {
      SCOPED_TRACE(filler.name);
      EXPECT_EQ(filler.requests_completed, filler.passes);
      EXPECT_DOUBLE_EQ(filler.requests_per_s, static_cast<double>(filler.passes) / 1.5);
      for (const auto& instance : filler.instances) {
        EXPECT_EQ(instance.requests_completed, instance.passes);
      }
    }
  }
}

// 2,000 requests a second of 4 ms each are at least eight times what a GPU has room for.
TEST_P(EverySimulatedPolicy, is_overloaded_where_the_backlog_grows_and_only_there) {
  loaded_.config.warmup = 500ms;
  loaded_.config.fillers[1].arrivals = workload::PoissonArrivals{2000};
  const observe::RunReport report = run();
  const observe::FillerResult& online = report.policies.at(0).fillers[1];
  EXPECT_EQ(online.overloaded, online.admitted_gpus() > 0);
  EXPECT_FALSE(report.policies.at(0).fillers[0].overloaded);
}

TEST_P(EverySimulatedPolicy, gives_the_same_bytes_twice) {
  const observe::RunReport first = run();
  EXPECT_EQ(observe::report_json(first), observe::report_json(run()));
}

class SimulatedCap
    : public SimulatedPolicy,
      public ::testing::WithParamInterface<std::pair<std::string, double>> {};

// Fillers cover no more SMs than the policy leaves them: 32 each for two.
TEST_P(SimulatedCap, is_respected) {
  load(GetParam().first);
  const observe::RunReport report = run();
  for (const auto& gpu : report.policies.at(0).gpus) {
    EXPECT_GT(gpu.filler_sm_fraction, 0);
    EXPECT_LE(gpu.filler_sm_fraction, GetParam().second / 100 + 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(
    builtin, SimulatedCap,
    ::testing::Values(std::pair("green_context", 64.0)),
    [](const auto& test) { return test.param.first; });

class SimulatedOracle : public SimulatedPolicy,
                        public ::testing::WithParamInterface<std::string> {};

TEST_P(SimulatedOracle, costs_training_nothing_and_serves_fillers) {
  load(GetParam());
  EXPECT_TRUE((*registry_.find(GetParam()))->oracle);
  const observe::RunReport report = run();
  EXPECT_EQ(report.policies.at(0).training.normalised_to_alone, 1.0);
  EXPECT_GT(report.policies.at(0).fillers[0].requests_completed, 0u);
}

INSTANTIATE_TEST_SUITE_P(builtin, SimulatedOracle, ::testing::Values("ideal", "ideal_spatial"),
                         [](const auto& test) { return test.param; });

std::vector<std::string> names() {
  const policy::Registry registry = policies::builtin_policies();
  std::vector<std::string> names;
  for (const policy::PolicySpec& spec : registry.all()) names.push_back(spec.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(builtin, EverySimulatedPolicy, ::testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace bubblesim::testing
