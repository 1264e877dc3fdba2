// What a synthesised job costs: planning and programs (`build_s`), the simulation of two passes
// (`simulate_s`), and the program's peak memory (`peak_MiB`: VmHWM, reset where Linux allows it).
// Everything runs on one core. `items_per_second` counts kernels and collectives that ran.
//
// The requirement: an iteration of a 40B transformer on 8,192 GPUs (16 stages, 8-way tensor,
// 64-way data) in less than 10 s and 8 GiB, at stage level (folding all, one rank a stage) and
// with tensor ranks apart (folding data, 128 ranks); PipeFill's study of 1K to 16K GPUs in less
// than 60 s.
#include <benchmark/benchmark.h>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>

#include "sim/synth/find_job.hpp"
#include "sim/synth/synthesise.hpp"

namespace bubblesim::synth {
namespace {

using Clock = std::chrono::steady_clock;

const std::string kConfigs = std::string(BUBBLESIM_SOURCE_DIR) + "/configs";

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

struct Cost {
  double build = 0;
  double simulate = 0;
  std::uint64_t kernels = 0;
  Duration iteration{};
};

JobRequest request_of(const std::string& model, std::vector<PlanChange> changes,
                      Folding folding) {
  JobNames names;
  names.model = model;
  names.plan = "megatron-8192";
  names.cluster = "selene";
  names.nodes = 2048;
  names.changes = std::move(changes);
  names.folding = folding;
  auto request = find_job(names, kConfigs);
  if (!request) throw std::runtime_error(request.error().front().text());
  return std::move(*request);
}

Cost cost_of(JobRequest request) {
  Cost cost;
  const auto begin = Clock::now();
  auto plan = plan_job(std::move(request));
  if (!plan) throw std::runtime_error(plan.error().front().text());
  const SynthesisedJob job = synthesise(*plan);
  cost.build = since(begin);
  const auto middle = Clock::now();
  const auto lone = time_alone(job.program, plan->request.gpu);
  if (!lone) throw std::runtime_error(lone.error().text());
  cost.simulate = since(middle);
  cost.kernels = lone->kernels;
  cost.iteration = lone->time;
  return cost;
}

void report(benchmark::State& state, const Cost& cost, std::uint64_t kernels) {
  state.counters["build_s"] = cost.build;
  state.counters["simulate_s"] = cost.simulate;
  state.counters["kernels"] = static_cast<double>(cost.kernels);
  state.counters["iteration_s"] = to_seconds(cost.iteration);
  state.counters["peak_MiB"] = peak_mib();
  state.SetItemsProcessed(static_cast<std::int64_t>(2 * kernels));
}

void iteration_of_8192(benchmark::State& state, Folding folding) {
  reset_peak();
  std::uint64_t kernels = 0;
  Cost cost;
  for (auto _ : state) {
    cost = cost_of(request_of("pipefill-40b", {}, folding));
    kernels += cost.kernels;
  }
  report(state, cost, kernels);
}

BENCHMARK_CAPTURE(iteration_of_8192, stages, Folding::kAll)
    ->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK_CAPTURE(iteration_of_8192, tensor_ranks, Folding::kData)
    ->Unit(benchmark::kSecond)->Iterations(1);

/// More micro-batches, more kernels: from about 10^5 to 10^6.
void kernels(benchmark::State& state) {
  reset_peak();
  const std::int64_t batch = 64 * state.range(0);
  std::uint64_t ran = 0;
  Cost cost;
  for (auto _ : state) {
    cost = cost_of(request_of("pipefill-40b", {{"/global_batch", std::to_string(batch)}},
                              Folding::kAll));
    ran += cost.kernels;
  }
  report(state, cost, ran);
}

BENCHMARK(kernels)->Unit(benchmark::kSecond)->Arg(45)->Arg(90)->Arg(180)->Arg(448)->Iterations(1);

/// PipeFill: 16 stages, 8-way tensor, a fixed batch; 64 micro-batches at 1K GPUs, 4 at 16K.
void pipefill_study(benchmark::State& state) {
  reset_peak();
  std::uint64_t ran = 0;
  Cost sum;
  for (auto _ : state) {
    sum = {};
    for (const int data : {8, 16, 32, 64, 128}) {
      const Cost cost =
          cost_of(request_of("pipefill-40b", {{"/data", std::to_string(data)},
                                              {"/global_batch", "512"}}, Folding::kAll));
      sum.build += cost.build;
      sum.simulate += cost.simulate;
      sum.kernels += cost.kernels;
      sum.iteration += cost.iteration;
    }
    ran += sum.kernels;
  }
  report(state, sum, ran);
}

BENCHMARK(pipefill_study)->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace bubblesim::synth
