#include "tests/bench/bench_job.hpp"

namespace bubblesim::bench {
namespace {

using program::Op, program::Program, program::ShortSpan, program::Step, program::StepKind;

constexpr std::uint16_t kCommunication = 1;

Program empty_program(std::uint32_t rank, std::uint32_t ops, const hardware::GpuSpec& device) {
  Program program;
  program.rank = rank;
  program.threads.resize(1);
  program.threads.front().steps.reserve(ops + 3);
  program.ops.reserve(ops);
  program.stream_count = 2;
  program.profiles = {
      program::profile_kernel({264, 256, 64, 0}, program::KernelClass::kMemory, device),
      program::profile_kernel({16, 512, 64, 0}, program::KernelClass::kMemory, device)};
  return program;
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

void launch_kernel(Program& program, DurationOf duration) {
  const std::size_t number = program.ops.size();
  Op& op = launch(program);
  op.duration = duration(program.rank, number);
  op.profile = 0;
}

/// A collective that waits for the kernel before it.
void launch_collective(Program& program, std::uint32_t collective) {
  const auto before = static_cast<std::uint32_t>(program.ops.size()) - 1;
  program.ops[before].result_slot = program.result_slots++;
  Op& op = launch(program);
  op.kind = program::WorkKind::kCollective;
  op.duration = Duration{20'000};
  op.profile = 1;
  op.stream = kCommunication;
  op.collective = collective;
  op.first_edge = static_cast<std::uint32_t>(program.edges.size());
  op.edge_count = 1;
  program.edges.push_back({before, {}});
}

Program rank_program(std::uint32_t rank, const JobShape& shape, const hardware::GpuSpec& device) {
  const std::uint32_t each = shape.kernels_a_collective;
  Program program = empty_program(rank, shape.kernels + shape.kernels / each, device);
  add_step(program, StepKind::kIteration);
  for (std::uint32_t i = 1; i <= shape.kernels; ++i) {
    launch_kernel(program, shape.duration);
    if (i % each > 0) continue;
    launch_collective(program, shape.ranks > 1 ? i / each - 1 : program::kNoIndex);
  }
  add_step(program, StepKind::kWaitDevice);
  add_step(program, StepKind::kEnd).target = 1;
  return program;
}

}  // namespace

hardware::GpuSpec bench_device() {
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

workload::JobProgram bench_job(const JobShape& shape, const hardware::GpuSpec& device) {
  workload::JobProgram job;
  job.ranks.reserve(shape.ranks);
  for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
    job.ranks.push_back(rank_program(rank, shape, device));
  }
  if (shape.ranks > 1) {
    job.collectives.assign(shape.kernels / shape.kernels_a_collective,
                           {.participants = shape.ranks});
  }
  return job;
}

Program bench_filler(std::uint32_t kernels, DurationOf duration,
                     const hardware::GpuSpec& device) {
  Program program = empty_program(0, kernels, device);
  for (std::uint32_t i = 0; i < kernels; ++i) launch_kernel(program, duration);
  add_step(program, StepKind::kWaitDevice);
  return program;
}

}  // namespace bubblesim::bench
