// GPUs may run on their own for a while, one after another or on several threads: no result says
// whether they did. Each job runs event by event, in windows of every length that is safe, and in
// windows over three threads; the reports are compared byte by byte.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "policies/builtin.hpp"
#include "sim/observe/report.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/run/simulation.hpp"
#include "sim/schedule/bubble_table.hpp"

namespace bubblesim::run {
namespace {

struct Job {
  std::string name;
  std::string training;  ///< JSON of the config's `training`
  std::string length;    ///< JSON of its length
  double least_in_windows = 0.5;  ///< of its events, under `mps`
};

std::string synth(const std::string& model, const std::string& plan, const std::string& more = {}) {
  return fmt::format(R"({{"synth": {{"model": "{}", "cluster": "dgx-a100-80gb", "nodes": 1,
                          "folding": "nothing", "plan": {}}}{}}})", model, plan, more);
}

const std::string kDataParallel =
    R"({"data": 4, "global_batch": 16, "micro_batch": 4, "sequence": 128, "software": "pytorch"})";
const std::string kPipeline = R"({"pipeline": 4, "data": 2, "schedule": "1f1b", "global_batch": 16,
    "micro_batch": 1, "sequence": 256, "software": "megatron-lm"})";
const std::string kTensor = R"({"tensor": 4, "data": 2, "global_batch": 4, "micro_batch": 1,
    "sequence": 256, "software": "megatron-lm"})";
const std::string kSharded = R"({"data": 4, "sharding": "parameters", "global_batch": 8,
    "micro_batch": 2, "sequence": 256, "software": "pytorch"})";

const std::string kTime = R"("duration": "120ms", "warmup": "20ms")";

std::vector<Job> jobs() {
  return {
      {"data_parallel", synth("bert-base", kDataParallel), kTime},
      {"pipeline", synth("gpt2-large", kPipeline), kTime},
      {"tensor", synth("gpt2-large", kTensor), kTime},
      {"sharded", synth("bert-base", kSharded), kTime},
      {"iterations", synth("bert-base", kDataParallel), R"("iterations": 3)", 0.3},
      {"one_iteration", synth("bert-base", kDataParallel), R"("iterations": 1)", 0},
      {"slow_rank",
       synth("bert-base", kDataParallel, R"(, "stragglers": [{"rank": 2, "slowdown": 1.3}])"),
       kTime},
      {"fast_rank",
       synth("bert-base", kDataParallel, R"(, "stragglers": [{"rank": 1, "slowdown": 0.7}])"),
       kTime, 0},
      {"slow_link",
       synth("bert-base", kDataParallel,
             R"(, "slow_links": [{"link": "port", "gpu": 1, "slowdown": 20, "from": "40ms",
                                 "until": "90ms"}])"),
       kTime},
      {"jitter", synth("bert-base", kDataParallel, R"(, "jitter_cv": 0.2)"), kTime, 0},
      {"recorded", R"({"trace": "traces/samples/training", "memory": "24GB"})",
       R"("duration": "800ms", "warmup": "100ms")"},
  };
}

std::string config_text(const Job& job) {
  const std::string program = R"("program": {"trace": "traces/samples/inference.json.gz"},
                                 "requests_per_pass": 8, "memory": "2GB")";
  return fmt::format(
      R"({{"name": "{}", "seed": 3, {}, "training": {},
          "fillers": [{{"name": "offline", "mode": "offline", {}}},
                      {{"name": "online", "mode": "online", {}, "max_batch": 8, "max_wait": "2ms",
                        "arrivals": {{"process": "poisson", "rate_per_s": 900}}}}],
          "policies": ["exclusive", "time_slicing", "mps", "specinf", "pipefill", "reef",
                       {{"name": "tgs", "parameters": {{"window": "1ms", "poll": "200us",
                         "report_period": "100ms", "initial_limit": 400}}}}]}})",
      job.name, job.length, job.training, program, program);
}

class Domains : public testing::TestWithParam<Job> {
 protected:
  static const policy::Registry& registry() {
    static const policy::Registry all = policies::builtin_policies();
    return all;
  }
};

std::string result_of(const LoadedRun& loaded, RunScenario scenario, engine::Windows windows,
                      std::size_t threads) {
  scenario.gpus = {windows, threads};
  auto result = Simulation(loaded, scenario).run();
  if (!result) return result.error().text();
  observe::RunReport report;
  report.policies.push_back(*std::move(result));
  return observe::report_json(report);
}

TEST_P(Domains, NoResultDependsOnHowGpusRunBesideEachOther) {
  const std::string root = BUBBLESIM_SOURCE_DIR;
  const auto config = parse_run_config(config_text(GetParam()), root + "/domains.json", registry());
  ASSERT_TRUE(config) << config.error().front().text();
  const auto loaded = load_run(*config, root + "/configs/devices");
  ASSERT_TRUE(loaded) << loaded.error().front().text();
  const auto bubbles = schedule::measure_bubbles(*loaded->training, loaded->device);
  ASSERT_TRUE(bubbles) << bubbles.error().text();
  for (const PolicyChoice& choice : config->policies) {
    SCOPED_TRACE(choice.name);
    RunScenario scenario;
    scenario.policy = *registry().find(choice.name);
    scenario.parameters = &choice.parameters;
    scenario.bubbles = &*bubbles;
    scenario.fillers = {0, 1};
    const std::string in_order = result_of(*loaded, scenario, engine::Windows::kNever, 1);
    EXPECT_EQ(result_of(*loaded, scenario, engine::Windows::kAlways, 1), in_order);
    EXPECT_EQ(result_of(*loaded, scenario, engine::Windows::kWorthwhile, 1), in_order);
    EXPECT_EQ(result_of(*loaded, scenario, engine::Windows::kAlways, 3), in_order);
  }
}

// Else the test above would compare what never differs.
TEST_P(Domains, MostEventsNeedNoOtherGpu) {
  const std::string root = BUBBLESIM_SOURCE_DIR;
  const auto config = parse_run_config(config_text(GetParam()), root + "/domains.json", registry());
  const auto loaded = load_run(*config, root + "/configs/devices");
  ASSERT_TRUE(loaded) << loaded.error().front().text();
  const policy::PolicySpec& mps = **registry().find("mps");
  const policy::ParameterSet parameters = policy::defaults(mps);
  Simulation simulation(*loaded,
                        {.policy = &mps, .parameters = &parameters, .fillers = {0, 1}});
  ASSERT_TRUE(simulation.run());
  const auto all = static_cast<double>(simulation.conductor().events());
  const auto in_windows = static_cast<double>(simulation.conductor().events_in_windows());
  EXPECT_GE(in_windows / all, GetParam().least_in_windows);
  RecordProperty("in_windows", std::to_string(in_windows / all));
}

INSTANTIATE_TEST_SUITE_P(Jobs, Domains, testing::ValuesIn(jobs()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace bubblesim::run
