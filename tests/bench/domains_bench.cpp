// One simulation of many GPUs: event by event over all of them; in windows, in which each GPU runs
// on its own; and with the windows shared by two threads (sim/engine/conductor.hpp). The three
// take turns inside one measurement, so that the ratios hold on a busy machine: wall time.
//
// `events_windows`: the share of events that ran in windows, `window`: how many in one, on the
// average. `gain_windows`, `gain_two`: times as fast as event by event.
#include <algorithm>
#include <array>
#include <benchmark/benchmark.h>
#include <chrono>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/run/simulation.hpp"

namespace bubblesim {
namespace {

using Clock = std::chrono::steady_clock;

struct Job {
  std::string name;
  std::string model;
  std::string plan;  ///< JSON
  std::size_t gpus;
};

std::vector<Job> jobs() {
  std::vector<Job> all;
  for (const std::size_t gpus : {8, 64}) {
    all.push_back({"data_parallel", "roberta-large",
                   fmt::format(R"({{"data": {}, "global_batch": {}, "micro_batch": 8,
                                    "sequence": 512, "software": "pytorch"}})",
                               gpus, 8 * gpus), gpus});
    all.push_back({"pipeline_parallel", "gpt-1.7b",
                   fmt::format(R"({{"pipeline": 8, "data": {}, "schedule": "1f1b",
                                    "global_batch": {}, "micro_batch": 1,
                                    "software": "megatron-lm"}})",
                               gpus / 8, 16 * gpus / 8), gpus});
    all.push_back({"tensor_parallel", "gpt-1.7b",
                   fmt::format(R"({{"tensor": 8, "data": {}, "global_batch": {},
                                    "micro_batch": 1, "software": "megatron-lm"}})",
                               gpus / 8, 4 * gpus / 8), gpus});
  }
  return all;
}

/// As many operations on few GPUs as on many.
std::string config_of(const Job& job) {
  return fmt::format(R"({{
    "name": "{}", "duration": "{}ms",
    "training": {{"synth": {{"model": "{}", "plan": {}, "cluster": "dgx-a100-80gb",
                             "folding": "nothing"}}}},
    "fillers": [{{"name": "encoder", "mode": "offline", "requests_per_pass": 8, "memory": "2GB",
                  "program": {{"trace": "traces/samples/inference.json.gz"}}}}],
    "policies": ["mps"]}})", job.name, 4000 / job.gpus, job.model, job.plan);
}

/// Of several measured runs.
struct Mode {
  engine::ConductorSetup setup;
  double fastest = 1e9;  ///< s
};

void measure(benchmark::State& state, const Job& job, const policy::Registry& registry) {
  const auto config = run::parse_run_config(
      config_of(job), std::string(BUBBLESIM_SOURCE_DIR) + "/bench.json", registry);
  if (!config) return state.SkipWithError(config.error().front().text().c_str());
  const auto loaded =
      run::load_run(*config, std::string(BUBBLESIM_SOURCE_DIR) + "/configs/devices");
  if (!loaded) return state.SkipWithError(loaded.error().front().text().c_str());
  const policy::PolicySpec& mps = **registry.find("mps");
  std::array<Mode, 3> modes{{{{engine::Windows::kNever, 1}},
                             {{engine::Windows::kWorthwhile, 1}},
                             {{engine::Windows::kWorthwhile, 2}}}};
  double events = 0, in_windows = 0, windows = 0;
  for (auto _ : state) {
    for (Mode& mode : modes) {
      run::RunScenario scenario{
          .policy = &mps, .parameters = &config->policies.front().parameters, .fillers = {0}};
      scenario.gpus = mode.setup;
      run::Simulation simulation(*loaded, scenario);
      const auto begin = Clock::now();
      if (!simulation.run()) return state.SkipWithError("the run failed");
      mode.fastest = std::min(
          mode.fastest, std::chrono::duration<double>(Clock::now() - begin).count());
      events = static_cast<double>(simulation.conductor().events());
      in_windows = static_cast<double>(simulation.conductor().events_in_windows());
      windows = static_cast<double>(simulation.conductor().windows());
    }
  }
  state.counters["ns_event"] = modes[0].fastest / events * 1e9;
  state.counters["events_windows"] = in_windows / events;
  state.counters["window"] = in_windows / windows;
  state.counters["gain_windows"] = modes[0].fastest / modes[1].fastest;
  state.counters["gain_two"] = modes[0].fastest / modes[2].fastest;
}

int register_all() {
  static policy::Registry registry = policies::builtin_policies();
  for (const Job& job : jobs()) {
    benchmark::RegisterBenchmark(fmt::format("domains/{}/{}", job.name, job.gpus).c_str(),
                                 [job](benchmark::State& state) { measure(state, job, registry); })
        ->Unit(benchmark::kMillisecond);
  }
  return 0;
}

[[maybe_unused]] const int registered = register_all();

}  // namespace
}  // namespace bubblesim
