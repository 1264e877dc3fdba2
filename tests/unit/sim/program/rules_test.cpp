// When things happen, by hand: spans in nanoseconds, instants since the start.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sim/program/batching.hpp"
#include "sim/program/kernel_class.hpp"
#include "sim/program/kernel_profile.hpp"
#include "sim/program/rules.hpp"

namespace bubblesim::program {
namespace {

SimTime at(std::int64_t nanoseconds) { return kSimStart + Duration{nanoseconds}; }

/// Operation 2 follows operations 0 and 1 by edges of 3 and 40 ns, and its stream by a gap of 5 ns.
class StartOfAnOperation : public testing::Test {
 protected:
  StartOfAnOperation() {
    program_.ops.resize(3);
    program_.edges = {{0, {3}}, {1, {40}}};
    program_.ops[2].gap = {5};
    program_.ops[2].edge_count = 2;
  }
  OpStart<SimTime> start(SimTime ready, std::optional<SimTime> stream_end) const {
    return start_of(program_, program_.ops[2], ready, stream_end, [this](const OpEdge& edge) {
      return ends_.contains(edge.before) ? ends_.at(edge.before) : SimTime::max();
    });
  }

  Program program_;
  std::map<std::uint32_t, SimTime> ends_;
};

TEST_F(StartOfAnOperation, IsTheLatestOfLaunchStreamAndEdges) {
  ends_ = {{0, at(100)}, {1, at(50)}};
  EXPECT_EQ(start(at(80), at(90)).at, at(103));    // 100 + 3 against 80, 90 + 5, 50 + 40
  EXPECT_EQ(start(at(120), at(90)).at, at(120));   // its launch
  EXPECT_EQ(start(at(80), at(110)).at, at(115));   // 110 + 5
  ends_[1] = at(70);
  EXPECT_EQ(start(at(80), at(90)).at, at(110));    // 70 + 40
}

TEST_F(StartOfAnOperation, HasNoGapAsTheFirstOfItsStream) {
  ends_ = {{0, at(0)}, {1, at(0)}};
  EXPECT_EQ(start(at(41), std::nullopt).at, at(41));
}

TEST_F(StartOfAnOperation, IsUnknownUntilTheLastEdgeHasEnded) {
  ends_ = {{0, at(100)}};
  const OpStart<SimTime> start = this->start(at(80), std::nullopt);
  EXPECT_EQ(start.at, SimTime::max());
  ASSERT_NE(start.open, nullptr);
  EXPECT_EQ(start.open->before, 1U);
}

TEST(Rules, ASlowedCollectiveLastsItsOwnSpan) {
  Op op;
  op.duration = Duration{100};
  EXPECT_EQ(duration_of(op, 1.5), Duration{150});
  op.kind = WorkKind::kCollective;
  EXPECT_EQ(duration_of(op, 1.5), Duration{100});
}

TEST(Rules, ALaunchWithoutCostTakesNoPlaceInTheQueue) {
  Step step;
  EXPECT_FALSE(takes_place(step));
  step.cost = {1};
  EXPECT_TRUE(takes_place(step));
}

Step step_of(StepKind kind, std::uint32_t target, std::uint16_t count = 0) {
  Step step;
  step.kind = kind;
  step.target = target;
  step.count = count;
  return step;
}

TEST(Rules, ACallWaitsForAStreamTheDeviceOrAnOperation) {
  Program program;
  program.ops.resize(4);
  program.ops[3].stream = 7;
  const Awaited graph = awaited_by(program, step_of(StepKind::kLaunchAndWait, 2, 2));
  EXPECT_EQ(graph.kind, AwaitedKind::kStream);
  EXPECT_EQ(graph.index, 7U);  // of operation 3, the last of 2 from 2 on
  EXPECT_EQ(awaited_by(program, step_of(StepKind::kWaitStream, 5)).index, 5U);
  EXPECT_EQ(awaited_by(program, step_of(StepKind::kWaitDevice, 0)).kind, AwaitedKind::kDevice);
  EXPECT_EQ(awaited_by(program, step_of(StepKind::kLaunch, 0, 1)).kind, AwaitedKind::kNothing);
}

TEST(Rules, AWaitForAnEarlierPassNeedsFewerEnds) {
  Program program;
  program.ops.resize(2);
  program.details.resize(1);
  program.details[0].passes_back = 2;
  Step step = step_of(StepKind::kWaitOp, 1);
  EXPECT_EQ(ends_needed(awaited_by(program, step).passes_back, 4), 5U);  // of this pass, the fifth
  step.detail = 0;
  EXPECT_EQ(ends_needed(awaited_by(program, step).passes_back, 4), 3U);
  EXPECT_EQ(ends_needed(awaited_by(program, step).passes_back, 1), 0U);  // before the first
}

TEST(Rules, AHandOverCountsTheStepsOfAllPasses) {
  Program program;
  program.threads.resize(2);
  program.threads[1].steps.resize(10);
  program.details.resize(2);
  program.details[1].after_thread = 1;
  program.details[1].after_step = 3;
  Step step;
  EXPECT_EQ(hand_over(program, step), nullptr);
  step.detail = 0;
  EXPECT_EQ(hand_over(program, step), nullptr);
  step.detail = 1;
  ASSERT_NE(hand_over(program, step), nullptr);
  EXPECT_EQ(steps_needed(program, *hand_over(program, step), 2), 24U);  // 2 passes of 10, and 4
}

TEST(Rules, APassTakesTime) {
  EXPECT_EQ(next_pass(at(5), at(5)), at(6));
  EXPECT_EQ(next_pass(at(5), at(9)), at(9));
}

// Occupancy by hand: blocks an SM = min(slots, warps, threads, registers, shared memory).
hardware::SmSpec v100() {  // compute capability 7.0
  hardware::SmSpec sm;
  sm.shared_memory_bytes = 98304;
  sm.shared_memory_unit_bytes = 256;
  sm.shared_memory_reserved_bytes = 0;
  return sm;
}
hardware::SmSpec a100() {  // 8.0
  hardware::SmSpec sm;
  sm.shared_memory_bytes = 167936;
  return sm;
}
hardware::SmSpec a10() {  // 8.6
  hardware::SmSpec sm;
  sm.max_threads = 1536;
  sm.max_warps = 48;
  sm.max_blocks = 16;
  sm.shared_memory_bytes = 102400;
  return sm;
}
hardware::SmSpec t4() {  // 7.5
  hardware::SmSpec sm;
  sm.max_threads = 1024;
  sm.max_warps = 32;
  sm.max_blocks = 16;
  sm.shared_memory_bytes = 65536;
  sm.shared_memory_unit_bytes = 256;
  sm.shared_memory_reserved_bytes = 0;
  return sm;
}
hardware::SmSpec h100() {  // 9.0
  hardware::SmSpec sm;
  sm.shared_memory_bytes = 233472;
  return sm;
}

std::uint32_t blocks_per_sm(std::uint32_t threads, std::uint32_t registers, std::uint64_t shared,
                            const hardware::SmSpec& sm) {
  return residency_of({.blocks = 1, .threads_per_block = threads,
                       .registers_per_thread = registers, .shared_memory_per_block = shared},
                      sm).blocks_per_sm;
}

TEST(Occupancy, IsBoundByRegistersOnAV100) {
  // 82 * 32 = 2624 registers a warp, rounded to 2816; 65536 / 2816 = 23 warps, to fours 20;
  // 20 / 8 warps = 2 blocks. Shared memory would allow 98304 / 24576 = 4.
  const Residency r = residency_of({1, 256, 82, 24576}, v100());
  EXPECT_EQ(r.blocks_per_sm, 2u);
  EXPECT_EQ(r.warps, 8u);
  EXPECT_EQ(r.registers, 8u * 2816u);
  EXPECT_EQ(r.shared_memory_bytes, 24576u);
}

TEST(Occupancy, IsBoundBySharedMemory) {
  EXPECT_EQ(blocks_per_sm(128, 32, 24576, v100()), 4u);   // 98304 / 24576
  EXPECT_EQ(blocks_per_sm(128, 32, 24577, v100()), 3u);   // rounded to 24832
  // The driver's 1 KiB a block counts from compute capability 8.0 on:
  // 54976 + 1024 = 56000, rounded to 56064: 167936 / 56064 = 2.995.
  EXPECT_EQ(blocks_per_sm(128, 32, 54976, a100()), 2u);
  EXPECT_EQ(blocks_per_sm(128, 32, 54912, a100()), 3u);   // 167936 / 55936 = 3.002
  EXPECT_EQ(blocks_per_sm(384, 168, 232448, h100()), 1u); // 227 KiB + 1 KiB = all 228
}

TEST(Occupancy, IsBoundByWarpsAndThreads) {
  EXPECT_EQ(blocks_per_sm(1024, 16, 0, v100()), 2u);  // 2048 / 1024
  EXPECT_EQ(blocks_per_sm(1024, 16, 0, a10()), 1u);   // 1536 / 1024
  EXPECT_EQ(blocks_per_sm(1024, 16, 0, t4()), 1u);
  EXPECT_EQ(blocks_per_sm(96, 16, 0, a10()), 16u);    // 48 / 3 warps
  EXPECT_EQ(blocks_per_sm(100, 16, 0, v100()), 16u);  // 4 warps; 64 / 4
}

TEST(Occupancy, IsBoundByBlockSlots) {
  EXPECT_EQ(blocks_per_sm(32, 16, 0, v100()), 32u);
  EXPECT_EQ(blocks_per_sm(32, 16, 0, t4()), 16u);
}

TEST(Occupancy, CountsWholeWarpsInEachPartition) {
  // 255 * 32 = 8160 -> 8192 registers a warp; 65536 / 8192 = 8 warps: 8 / 8 = 1 block of 256.
  EXPECT_EQ(blocks_per_sm(256, 255, 0, a100()), 1u);
  // One-warp blocks of 82 registers: 23 warps by division, 20 in four partitions of 5.
  EXPECT_EQ(blocks_per_sm(32, 82, 0, v100()), 20u);
}

TEST(Occupancy, CountsABlockLargerThanAnSmAsOnePerSm) {
  const Residency r = residency_of({1, 1024, 255, 0}, v100());  // 32 * 8192 = 4 SMs' registers
  EXPECT_EQ(r.blocks_per_sm, 1u);
  EXPECT_EQ(r.registers, 65536u);  // clamped, so that it can be placed
  EXPECT_EQ(residency_of({1, 4096, 0, 0}, v100()).warps, 64u);
}

TEST(Occupancy, TakesAnUnrecordedRegisterCountForNone) {
  EXPECT_EQ(blocks_per_sm(256, 0, 0, v100()), 8u);
}

TEST(Profile, ScalesTheBandwidthShareWithTheSmsTouched) {
  hardware::GpuSpec spec;
  spec.sm = v100();
  spec.sm_count = 80;
  spec.contention.memory_kernel_dram_share = 0.8;
  spec.contention.memory_kernel_issue_share = 0.2;
  EXPECT_DOUBLE_EQ(profile_kernel({800, 256, 32, 0}, KernelClass::kMemory, spec).dram_share, 0.8);
  const KernelProfile small = profile_kernel({20, 256, 32, 0}, KernelClass::kMemory, spec);
  EXPECT_DOUBLE_EQ(small.dram_share, 0.2);   // 20 of 80 SMs: a quarter of 0.8
  EXPECT_DOUBLE_EQ(small.issue_share, 0.2);  // a share of the SMs that it sits on
  EXPECT_EQ(profile_kernel({0, 256, 32, 0}, KernelClass::kMemory, spec).blocks, 1u);
}

TEST(KernelClass, words_are_found_anywhere_and_in_any_case) {
  EXPECT_EQ(classify_kernel("ampere_sgemm_32x32_sliced1x4_nn"), KernelClass::kCompute);
  EXPECT_EQ(classify_kernel("Cijk_Ailk_Bljk_HB"), KernelClass::kCompute);
  EXPECT_EQ(classify_kernel("void RELU"), KernelClass::kMemory);
  EXPECT_EQ(classify_kernel("triton_poi_fused_0"), KernelClass::kMemory);
  EXPECT_EQ(classify_kernel(""), KernelClass::kUnknown);
  EXPECT_EQ(classify_kernel("triton_tem"), KernelClass::kUnknown);
}

// The second road: each word looked for by itself.
TEST(KernelClass, pieces_of_words_in_any_order_are_classed_as_by_searching_for_each_word) {
  constexpr std::array<std::string_view, 6> kCompute{"gemm", "conv",     "attention",
                                                     "xmma", "moe_gemm", "fprop"};
  constexpr std::array<std::string_view, 6> kMemory{"norm", "softmax", "cat",
                                                    "scan", "scatter", "triton_red"};
  const auto any_in = [](const auto& words, const std::string& name) {
    return std::ranges::any_of(words, [&](std::string_view word) {
      return name.find(word) != std::string::npos;
    });
  };
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string name;
    for (int piece = 0; piece < 4; ++piece) {
      const auto& words = random() % 2 == 0 ? kCompute : kMemory;
      const std::string_view word = words[random() % words.size()];
      const std::size_t from = random() % word.size();
      name += word.substr(from, 1 + random() % word.size());
    }
    const KernelClass expected = any_in(kCompute, name)  ? KernelClass::kCompute
                                 : any_in(kMemory, name) ? KernelClass::kMemory
                                                         : KernelClass::kUnknown;
    if (expected == KernelClass::kUnknown) continue;  // other words may be made of these pieces
    EXPECT_EQ(classify_kernel(name), expected) << name;
  }
}

TEST(Batching, ABatchIsDueWhenItIsFullOrItsOldestHasWaited) {
  const Batching batching{.max_batch = 4, .max_wait = Duration{100}};
  const auto due = [&](const std::vector<Duration>& arrivals) {
    return batching.due(arrivals.size(), [&](std::size_t i) { return arrivals[i]; });
  };
  using Ns = Duration;
  EXPECT_EQ(due({Ns{10}, Ns{20}, Ns{30}, Ns{60}}), Ns{60});    // the fourth fills it
  EXPECT_EQ(due({Ns{10}, Ns{20}, Ns{30}, Ns{160}}), Ns{110});  // 10 + 100
  EXPECT_EQ(due({Ns{10}, Ns{20}, Ns{30}}), Ns{110});           // the fourth is not known
  EXPECT_EQ(due({Ns{10}, Ns{20}, Ns{30}, Ns{60}, Ns{90}}), Ns{60});
}

TEST(Batching, ABatchTakesWhatWaitsUpToItsMost) {
  const Batching batching{.max_batch = 4};
  EXPECT_EQ(batching.batch_size(3), 3U);
  EXPECT_EQ(batching.batch_size(5), 4U);
}

TEST(Batching, APassGrowsByItsParts) {
  const Batching batching{.requests_per_pass = 4, .batch_cost = 0.5};
  EXPECT_DOUBLE_EQ(batching.pass_factor(1), 1);
  EXPECT_DOUBLE_EQ(batching.pass_factor(4), 1);
  EXPECT_DOUBLE_EQ(batching.pass_factor(5), 1.5);   // 2 parts
  EXPECT_DOUBLE_EQ(batching.pass_factor(12), 2.0);  // 3 parts
}

}  // namespace
}  // namespace bubblesim::program
