#include "tests/golden/filling/small_job.hpp"

#include <chrono>

#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::golden {
namespace {

using namespace std::chrono_literals;

/// One block an SM: each takes all registers.
program::KernelProfile profile(std::uint64_t sms, const hardware::GpuSpec& gpu) {
  return program::profile_kernel({sms, 1024, 64, 0}, program::KernelClass::kUnknown, gpu);
}

/// Times in us.
program::Program small_rank(std::uint32_t rank, std::int64_t b, const hardware::GpuSpec& gpu) {
  program::Program program = workload::ProgramMaker()
                                 .rank(rank).iteration(0)
                                 .kernel(0, 1000).kernel(0, b).collective(0, 1000, 0)
                                 .kernel(0, 1000).wait_stream(0, 0).end(2000).program();
  program.threads.front().name = "host";
  program.profiles = {profile(100, gpu), profile(20, gpu)};
  program.ops[2].profile = 1;
  std::size_t op = 0;
  for (const char* name : {"A", "B", "AR", "C"}) {
    program.ops[op++].name = program.names.intern(name);
  }
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
  job.ranks = {small_rank(0, 1000, gpu), small_rank(1, 2000, gpu)};
  job.collectives = {{2, false, 0}};
  return job;
}

}  // namespace bubblesim::golden
