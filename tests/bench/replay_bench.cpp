// What a kernel costs to simulate from its launch to its end: host thread, stream, GPU,
// collectives. `items_per_second` counts kernels and collectives of all ranks.
//
// The job is made here. A rank has one host thread that launches 2000 kernels a pass on one
// stream, 1 us apart, each 4 to 9 us long; after every 50th, a collective of 20 us on a second
// stream, joined over all ranks; at the end the thread waits for the device.
#include <benchmark/benchmark.h>
#include <numeric>
#include <string>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/run/simulation.hpp"
#include "sim/schedule/bubble_table.hpp"
#include "sim/workload/machine.hpp"
#include "sim/workload/recurrence.hpp"
#include "tests/bench/bench_job.hpp"

namespace bubblesim {
namespace {

using workload::JobProgram;
using program::Program;

constexpr std::uint32_t kKernels = 2000;
constexpr std::uint32_t kKernelsACollective = 50;
constexpr std::uint32_t kOps = kKernels + kKernels / kKernelsACollective;
constexpr std::uint32_t kFillerKernels = 500;
constexpr Duration kPass{16'000'000};  // a little more than a pass takes

// 4 to 9 us, the same on every rank.
Duration duration_of(std::uint32_t /*rank*/, std::size_t number) {
  return Duration{static_cast<std::int64_t>(4000 + number * 37 % 5000)};
}

JobProgram job_program(const hardware::GpuSpec& device, std::int64_t ranks) {
  return bench::bench_job({static_cast<std::uint32_t>(ranks), kKernels, kKernelsACollective,
                           duration_of}, device);
}

/// The job alone: programs, GPUs and engine, nothing that watches.
void job_alone(benchmark::State& state) {
  const hardware::GpuSpec device = bench::bench_device();
  const JobProgram job = job_program(device, state.range(0));
  workload::Machine machine(device, &job);
  workload::RunSetup setup;
  setup.rendezvous = machine.network();
  std::vector<workload::ProgramRun*> runs;
  for (const Program& program : job.ranks) {
    runs.push_back(&machine.add_program(machine.add_gpu(), program, setup));
  }
  for (workload::ProgramRun* run : runs) run->start_pass(kSimStart);
  SimTime limit = kSimStart;
  for (auto _ : state) machine.conductor().run_until(limit += kPass);
  const std::uint64_t passes = runs.front()->passes() * runs.size();
  state.SetItemsProcessed(static_cast<std::int64_t>(passes * kOps));
}
BENCHMARK(job_alone)->Arg(1)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);

/// The job alone by its recurrence, as `replay_alone` has it: a pass at a time. The kernels of each
/// rank last differently long.
void job_alone_recurrence(benchmark::State& state) {
  const hardware::GpuSpec device = bench::bench_device();
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  JobProgram job = job_program(device, ranks);
  for (Program& program : job.ranks) {
    for (program::Op& op : program.ops) op.duration += Duration{program.rank};
  }
  if (!workload::has_recurrence(job, device)) return state.SkipWithError("no recurrence");
  for (auto _ : state) {
    auto times = workload::pass_times(job);
    if (!times) return state.SkipWithError("left to events");
    benchmark::DoNotOptimize(times->data());
  }
  state.SetItemsProcessed(state.iterations() * ranks * std::int64_t{kOps});
}
BENCHMARK(job_alone_recurrence)->Arg(1)->Arg(8)->Arg(64)->Arg(1024)->Unit(benchmark::kMillisecond);

/// The whole simulation as `bubblesim run` has it, with offline fillers on each GPU under a policy:
/// also gate, observers, meters. 400 ms are simulated each time; kernels of iterations and passes
/// that ended count.
void job_and_fillers(benchmark::State& state, const policy::PolicySpec& policy,
                     std::uint32_t fillers) {
  run::LoadedRun loaded;
  loaded.device = bench::bench_device();
  loaded.training = job_program(loaded.device, state.range(0));
  loaded.fillers.assign(
      fillers, run::LoadedFiller{bench::bench_filler(kFillerKernels, duration_of, loaded.device)});
  loaded.config.duration = Duration{400'000'000};
  loaded.config.fillers.resize(fillers);
  const policy::ParameterSet parameters = policy::defaults(policy);
  const auto bubbles = schedule::measure_bubbles(*loaded.training, loaded.device);
  if (!bubbles) return state.SkipWithError(bubbles.error().text().c_str());
  std::vector<std::uint32_t> all(fillers);
  std::iota(all.begin(), all.end(), 0);
  std::uint64_t kernels = 0;
  for (auto _ : state) {
    run::RunScenario scenario{.policy = &policy, .parameters = &parameters, .fillers = all};
    if (policy.needs.bubbles) scenario.bubbles = &*bubbles;
    run::Simulation simulation(loaded, scenario);
    const auto result = simulation.run();
    if (!result) return state.SkipWithError(result.error().text().c_str());
    kernels += result->training.iterations * loaded.training->ranks.size() * kOps;
    for (const auto& filler : result->fillers) kernels += filler.passes * kFillerKernels;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(kernels));
}

auto* register_one(const std::string& name, const policy::PolicySpec& spec,
                   std::uint32_t fillers) {
  auto* bench = benchmark::RegisterBenchmark(
      (name + "/" + spec.name).c_str(),
      [&spec, fillers](benchmark::State& state) { job_and_fillers(state, spec, fillers); });
  return bench->Arg(1)->Unit(benchmark::kMillisecond);
}

int register_all() {
  static policy::Registry registry = policies::builtin_policies();
  for (const policy::PolicySpec& spec : registry.all()) {
    auto* bench = register_one("job_and_filler", spec, 1);
    if (spec.name != "mps") continue;
    bench->Arg(8)->Arg(64);
    register_one("job_and_4_fillers", spec, 4);
    register_one("job_and_12_fillers", spec, 12);
    register_one("job_and_48_fillers", spec, 48);
  }
  return 0;
}

[[maybe_unused]] const int registered = register_all();

}  // namespace
}  // namespace bubblesim
