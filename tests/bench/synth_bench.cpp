// What a synthesised job costs: planning and programs (`build_s`), the simulation of two passes
// (`simulate_s`), and the program's peak memory (`peak_MiB`: VmHWM, reset where Linux allows it).
// Everything runs on one core. `items_per_second` counts kernels and collectives that ran.
//
// The requirement: an iteration of a 40B transformer on 8,192 GPUs (16 stages, 8-way tensor,
// 64-way data) in less than 10 s and 8 GiB, at stage level (folding all, one rank a stage) and
// with tensor ranks apart (folding data, 128 ranks).
#include <benchmark/benchmark.h>
#include <chrono>
#include <fstream>
#include <string>

#include "sim/synth/find_job.hpp"
#include "sim/synth/synthesise.hpp"

namespace bubblesim::synth {
namespace {

using Clock = std::chrono::steady_clock;

const std::string kConfigs = std::string(BUBBLESIM_SOURCE_DIR) + "/configs";

double seconds(Clock::duration span) { return std::chrono::duration<double>(span).count(); }

void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

/// One iteration of the benchmark: a job is planned once.
void iteration_of_8192(benchmark::State& state, Folding folding) {
  JobNames names;
  names.model = "pipefill-40b";
  names.plan = "megatron-8192";
  names.cluster = "selene";
  names.nodes = 2048;
  names.folding = folding;
  reset_peak();
  for (auto _ : state) {
    auto request = find_job(names, kConfigs);
    if (!request) return state.SkipWithError(request.error().front().text().c_str());
    const auto begin = Clock::now();
    const auto plan = plan_job(*std::move(request));
    if (!plan) return state.SkipWithError(plan.error().front().text().c_str());
    const SynthesisedJob job = synthesise(*plan);
    const auto middle = Clock::now();
    const auto lone = time_alone(job.program, plan->request.gpu);
    if (!lone) return state.SkipWithError(lone.error().text().c_str());
    state.counters["build_s"] = seconds(middle - begin);
    state.counters["simulate_s"] = seconds(Clock::now() - middle);
    state.counters["kernels"] = static_cast<double>(lone->kernels);
    state.counters["iteration_s"] = to_seconds(lone->time);
    state.counters["peak_MiB"] = peak_mib();
    state.SetItemsProcessed(static_cast<std::int64_t>(2 * lone->kernels));
  }
}

BENCHMARK_CAPTURE(iteration_of_8192, stages, Folding::kAll)
    ->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK_CAPTURE(iteration_of_8192, tensor_ranks, Folding::kData)
    ->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace bubblesim::synth
