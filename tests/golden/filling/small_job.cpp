#include "tests/golden/filling/small_job.hpp"

#include <chrono>
#include <string_view>

namespace bubblesim::golden {
namespace {

using namespace std::chrono_literals;
using program::Op, program::Program, program::Step, program::StepKind;

/// One block an SM: each takes all registers.
program::KernelProfile profile(std::uint64_t sms, const hardware::GpuSpec& gpu) {
  return program::profile_kernel({sms, 1024, 64, 0}, program::KernelClass::kUnknown, gpu);
}

void launch(Program& program, std::string_view name, Duration duration, std::uint32_t profile) {
  Op op;
  op.duration = duration;
  op.name = program.names.intern(name);
  op.profile = profile;
  Step step;
  step.kind = StepKind::kLaunch;
  step.target = static_cast<std::uint32_t>(program.ops.size());
  step.count = 1;
  program.ops.push_back(op);
  program.threads.front().steps.push_back(step);
}

void add_step(Program& program, StepKind kind, std::uint32_t target, Duration think) {
  Step step;
  step.kind = kind;
  step.target = target;
  step.think = program::short_span(think);
  program.threads.front().steps.push_back(step);
}

Program small_rank(std::uint32_t rank, Duration b, const hardware::GpuSpec& gpu) {
  Program program;
  program.rank = rank;
  program.stream_count = 1;
  program.threads.push_back({"host", {}});
  program.profiles = {profile(100, gpu), profile(20, gpu)};
  add_step(program, StepKind::kIteration, 0, 0ms);
  launch(program, "A", 1ms, 0);
  launch(program, "B", b, 0);
  launch(program, "AR", 1ms, 1);
  program.ops.back().kind = program::WorkKind::kCollective;
  program.ops.back().collective = 0;
  launch(program, "C", 1ms, 0);
  add_step(program, StepKind::kWaitStream, 0, 0ms);
  add_step(program, StepKind::kEnd, 1, 2ms);
  program.recorded_span = 7ms;
  program.recorded_iterations = {7ms};
  return program;
}

}  // namespace

hardware::GpuSpec small_gpu() {
  hardware::GpuSpec gpu;
  gpu.name = "golden GPU";
  gpu.sm_count = 100;
  gpu.sm.shared_memory_bytes = 65536;
  gpu.memory = Bytes{16'000'000'000};
  gpu.sync_latency = 100us;
  gpu.time_slice = 1ms;
  gpu.context_switch = 100us;
  return gpu;
}

workload::JobProgram small_job(const hardware::GpuSpec& gpu) {
  workload::JobProgram job;
  job.ranks = {small_rank(0, 1ms, gpu), small_rank(1, 2ms, gpu)};
  job.collectives = {{2, false, 0}};
  return job;
}

}  // namespace bubblesim::golden
