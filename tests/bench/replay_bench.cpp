// What a kernel costs to simulate from its launch to its end: host thread, stream, GPU,
// collectives. `items_per_second` counts kernels and collectives of all ranks.
//
// The job is made here. A rank has one host thread that launches 2000 kernels a pass on one
// stream, 1 us apart, each 4 to 9 us long; after every 50th, a collective of 20 us on a second
// stream, joined over all ranks; at the end the thread waits for the device.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/run/simulation.hpp"
#include "sim/schedule/bubble_table.hpp"

namespace bubblesim {
namespace {

using gpu::WorkKind;
using workload::JobProgram;
using workload::kNoIndex;
using workload::Op;
using workload::Program;
using workload::ShortSpan;
using workload::Step;
using workload::StepKind;

constexpr std::uint32_t kKernels = 2000;
constexpr std::uint32_t kKernelsACollective = 50;
constexpr std::uint32_t kOps = kKernels + kKernels / kKernelsACollective;
constexpr std::uint16_t kCompute = 0;
constexpr std::uint16_t kCommunication = 1;
constexpr Duration kPass{16'000'000};  // a little more than a pass takes

hardware::GpuSpec h100() {
  hardware::GpuSpec spec;
  spec.sm_count = 132;
  spec.sm.shared_memory_bytes = 233472;
  spec.time_slice = Duration{1'024'000};
  spec.context_switch = Duration{50'000};
  spec.completion_notice = Duration{5'000};
  spec.contention = {.compute_kernel_dram_share = 0.2, .memory_kernel_dram_share = 0.9,
                     .unknown_kernel_dram_share = 0.5, .compute_kernel_issue_share = 0.7,
                     .memory_kernel_issue_share = 0.2, .unknown_kernel_issue_share = 0.4};
  return spec;
}

Step& add_step(Program& program, StepKind kind) {
  Step& step = program.threads.front().steps.emplace_back();
  step.kind = kind;
  return step;
}

/// Adds an operation, and the step that launches it.
Op& launch(Program& program) {
  Step& step = add_step(program, StepKind::kLaunch);
  step.think = ShortSpan{500};
  step.cost = ShortSpan{500};
  step.target = static_cast<std::uint32_t>(program.ops.size());
  step.count = 1;
  Op& op = program.ops.emplace_back();
  op.launch_lag = ShortSpan{2000};
  return op;
}

void launch_kernel(Program& program) {
  const auto number = static_cast<std::int64_t>(program.ops.size());
  Op& op = launch(program);
  op.duration = Duration{4000 + number * 37 % 5000};
  op.profile = 0;
  op.stream = kCompute;
}

/// A collective that waits for the kernel before it.
void launch_collective(Program& program, std::uint32_t collective) {
  const auto before = static_cast<std::uint32_t>(program.ops.size()) - 1;
  program.ops[before].result_slot = program.result_slots++;
  Op& op = launch(program);
  op.kind = WorkKind::kCollective;
  op.duration = Duration{20'000};
  op.profile = 1;
  op.stream = kCommunication;
  op.collective = collective;
  op.first_edge = static_cast<std::uint32_t>(program.edges.size());
  op.edge_count = 1;
  program.edges.push_back({before, {}});
}

Program empty_program(const hardware::GpuSpec& device) {
  Program program;
  program.threads.resize(1);
  program.stream_count = 2;
  program.profiles = {gpu::profile_kernel({264, 256, 64, 0}, gpu::KernelClass::kMemory, device),
                      gpu::profile_kernel({16, 512, 64, 0}, gpu::KernelClass::kMemory, device)};
  return program;
}

Program rank_program(const hardware::GpuSpec& device, bool joined) {
  Program program = empty_program(device);
  add_step(program, StepKind::kIteration);
  for (std::uint32_t i = 1; i <= kKernels; ++i) {
    launch_kernel(program);
    if (i % kKernelsACollective > 0) continue;
    launch_collective(program, joined ? i / kKernelsACollective - 1 : kNoIndex);
  }
  add_step(program, StepKind::kWaitDevice);
  add_step(program, StepKind::kEnd).target = 1;
  return program;
}

JobProgram job_program(const hardware::GpuSpec& device, std::uint32_t ranks) {
  JobProgram job;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    job.ranks.push_back(rank_program(device, ranks > 1));
    job.ranks.back().rank = rank;
  }
  if (ranks > 1) job.collectives.assign(kKernels / kKernelsACollective, {.participants = ranks});
  return job;
}

/// A pass of 500 kernels, launched one after another.
Program filler_program(const hardware::GpuSpec& device) {
  Program program = empty_program(device);
  for (std::uint32_t i = 0; i < 500; ++i) launch_kernel(program);
  add_step(program, StepKind::kWaitDevice);
  return program;
}

/// The job alone: programs, GPUs and engine, nothing that watches.
void job_alone(benchmark::State& state) {
  const hardware::GpuSpec device = h100();
  const JobProgram job = job_program(device, static_cast<std::uint32_t>(state.range(0)));
  engine::Engine engine;
  network::Rendezvous rendezvous(workload::participants(job));
  workload::RunSetup setup;
  setup.rendezvous = &rendezvous;
  std::vector<std::unique_ptr<gpu::Gpu>> gpus;
  std::vector<std::unique_ptr<workload::ProgramRun>> runs;
  for (const Program& program : job.ranks) {
    gpus.push_back(std::make_unique<gpu::Gpu>(engine, device, gpu::SharingSetup{}));
    runs.push_back(
        std::make_unique<workload::ProgramRun>(engine, *gpus.back(), program, setup));
  }
  for (const auto& run : runs) run->start_pass(kSimStart);
  SimTime limit = kSimStart;
  for (auto _ : state) engine.run_until(limit += kPass);
  const std::uint64_t passes = runs.front()->passes() * runs.size();
  state.SetItemsProcessed(static_cast<std::int64_t>(passes * kOps));
}
BENCHMARK(job_alone)->Arg(1)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);

/// The whole simulation as `bubblesim run` has it, with an offline filler on each GPU under a
/// policy: also gate, observers, meters. 400 ms are simulated each time; kernels of iterations and
/// passes that ended count.
void job_and_filler(benchmark::State& state, const policy::PolicySpec& policy) {
  run::LoadedRun loaded;
  loaded.device = h100();
  loaded.training = job_program(loaded.device, static_cast<std::uint32_t>(state.range(0)));
  loaded.fillers = {filler_program(loaded.device)};
  loaded.config.duration = Duration{400'000'000};
  loaded.config.fillers.resize(1);
  const policy::ParameterSet parameters = policy::defaults(policy);
  const auto bubbles = schedule::measure_bubbles(*loaded.training, loaded.device);
  if (!bubbles) return state.SkipWithError(bubbles.error().text().c_str());
  std::uint64_t kernels = 0;
  for (auto _ : state) {
    run::Scenario scenario{.policy = &policy, .parameters = &parameters, .fillers = {0}};
    if (policy.needs.bubbles) scenario.bubbles = &*bubbles;
    run::Simulation simulation(loaded, scenario);
    const auto result = simulation.run();
    if (!result) return state.SkipWithError(result.error().text().c_str());
    kernels += result->training.iterations * loaded.training->ranks.size() * kOps;
    kernels += result->fillers.front().passes * loaded.fillers.front()->ops.size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(kernels));
}

int register_all() {
  static policy::Registry registry;
  policies::register_builtin(registry);
  for (const policy::PolicySpec& spec : registry.all()) {
    auto* bench = benchmark::RegisterBenchmark(
        ("job_and_filler/" + spec.name).c_str(),
        [&spec](benchmark::State& state) { job_and_filler(state, spec); });
    bench->Arg(1)->Unit(benchmark::kMillisecond);
    if (spec.name == "mps") bench->Arg(8)->Arg(64);
  }
  return 0;
}

[[maybe_unused]] const int registered = register_all();

}  // namespace
}  // namespace bubblesim
