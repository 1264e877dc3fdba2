// What a kernel without a recorded launch shape is taken to occupy, and how that is said.
#include "sim/workload/estimated_shape.hpp"

#include <gtest/gtest.h>

#include "sim/workload/program_builder.hpp"
#include "tests/unit/sim/workload/trace_builder.hpp"
#include "traces/launch_shapes.hpp"

namespace bubblesim::workload {
namespace {

// 100 SMs of 2048 threads, 32 blocks and 65,536 registers: 16 blocks of 128 threads with 32
// registers, 2 of 256 with 128.
hardware::GpuSpec device() {
  hardware::GpuSpec spec;
  spec.sm_count = 100;
  spec.sm.max_threads = 2048;
  spec.sm.max_warps = 64;
  spec.sm.max_blocks = 32;
  spec.sm.registers = 65536;
  spec.sm.warp_size = 32;
  spec.sm.register_unit = 256;
  spec.sm.warp_allocation_unit = 4;
  spec.sm.shared_memory_bytes = 102400;
  spec.sm.shared_memory_unit_bytes = 1024;
  spec.sm.shared_memory_reserved_bytes = 1024;
  return spec;
}

std::uint64_t blocks_of(std::int64_t us, program::KernelClass kernel_class) {
  return estimate_kernel_shape(std::chrono::microseconds(us), kernel_class, device()).blocks();
}

TEST(EstimatedShape, a_short_kernel_fills_the_gpu_in_proportion_to_its_duration) {
  EXPECT_EQ(blocks_of(5, program::KernelClass::kMemory), 400U);    // 5/20 of 100 x 16
  EXPECT_EQ(blocks_of(10, program::KernelClass::kCompute), 100U);  // 10/20 of 100 x 2
  EXPECT_EQ(blocks_of(0, program::KernelClass::kUnknown), 1U);
}

TEST(EstimatedShape, a_long_kernel_fills_it_wave_by_wave) {
  EXPECT_EQ(blocks_of(60, program::KernelClass::kMemory), 16'000U);   // 10 waves of 6 us
  EXPECT_EQ(blocks_of(500, program::KernelClass::kCompute), 1'000U);  // root of 500/20: 5 waves
}

/// A recording of kernels, the first `known` of them with a shape of 7 blocks.
traces::RankTrace recording(std::size_t known, const std::vector<Launched>& kernels) {
  TraceBuilder builder;
  for (const Launched& kernel : kernels) builder.kernel(kernel);
  traces::RankTrace trace = builder.trace();
  const ShapeId seven = trace.shapes.intern({{7, 1, 1}, {128, 1, 1}, 32, 0});
  const ShapeId none = trace.shapes.intern(traces::kUnknownShape);
  for (std::size_t i = 0; i < trace.device_ops.size(); ++i) {
    trace.device_ops[i].shape = i < known ? seven : none;
  }
  return trace;
}

program::Program built(const traces::RankTrace& trace) {
  return build_program(trace, device(), {Window::kWhole}).value();
}

TEST(EstimatedShape, another_launch_of_the_name_says_more_than_the_duration) {
  const program::Program program = built(recording(
      1, {{.called = 0, .returned = 1, .start = 2, .end = 12, .name = "relu"},
          {.called = 3, .returned = 4, .start = 12, .end = 22, .name = "relu"},
          {.called = 5, .returned = 6, .start = 22, .end = 32, .name = "gelu"}}));
  EXPECT_EQ(program.profiles[program.ops[1].profile].blocks, 7U);
  EXPECT_EQ(program.profiles[program.ops[2].profile].blocks, 800U);  // 10/20 of 100 x 16
}

TEST(EstimatedShape, the_share_of_kernel_time_is_in_the_counters) {
  const program::Program program = built(recording(
      1, {{.called = 0, .returned = 1, .start = 2, .end = 32, .name = "relu"},
          {.called = 3, .returned = 4, .start = 32, .end = 42, .name = "gelu"}}));
  EXPECT_EQ(program.counters.count("program_launch_shapes_estimated"), 1U);
  EXPECT_EQ(program.counters.count("program_kernel_ns"), 40'000U);
  EXPECT_EQ(program.counters.count("program_kernel_ns_of_estimated_shape"), 10'000U);
  EXPECT_EQ(program.counters.count("program_launch_shapes_mostly_estimated"), 1U);
}

TEST(EstimatedShape, recorded_shapes_say_nothing) {
  const program::Program program = built(recording(1, {{.returned = 1, .start = 2, .end = 32}}));
  EXPECT_EQ(program.counters.count("program_kernel_ns"), 0U);
  EXPECT_EQ(program.counters.count("program_launch_shapes_estimated"), 0U);
}

TEST(EstimatedShape, a_collective_takes_a_few_sms_however_long_it_waits) {
  EXPECT_EQ(estimate_collective_shape().blocks(), 8U);
}

}  // namespace
}  // namespace bubblesim::workload
