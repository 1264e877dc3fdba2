// A kernel that follows another process's kernel comes later to the blocks' scheduler. The GPU has
// 4 SMs of 8 warps: 8 blocks of 4 warps at once.
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

using program::SharingMode;

Kernels::Setup late_comers() {
  Kernels::Setup out = shared(SharingMode::kMps);
  out.spec.client_switch = Duration{10};
  return out;
}

class KernelsOfClients : public KernelTable {};
TEST_P(KernelsOfClients, StartAndEndAsListed) { expect_row(); }

const std::vector<Kernels> kKernelsOfClients{
    {"StreamsOfOneProcessPayNothing", {{0, 0, 100, 2}, {20, 1, 100, 2}}, {{"end 2", 120}},
     {late_comers().spec, {}}},
    {"OneClientAlonePaysNothing", {{0, 0, 100}, {100, 0, 100}}, {{"end 2", 200}}, late_comers()},
    // 1 of a, 2 of b (+10), 3 of b (its own came before), 4 of a (+10); each 2 blocks of 100.
    {"AKernelAfterAnothersComesLater", {{0, 0, 100, 2}, {20, 1, 100, 2}, {40, 1, 100, 2},
     {60, 0, 100, 2}}, {{"end 1", 100}, {"end 2", 130}, {"end 3", 140}, {"end 4", 170}},
     late_comers()},
    // 2 comes at 10 and waits for 1, which ends at 100, all the same.
    {"TheOthersWorkHidesIt", {{0, 0, 100}, {0, 1, 100, 16}}, {{"start 2", 100}, {"end 2", 200}},
     late_comers()},
    // 2 comes at 15; 3, of the client that came last, no sooner; 4 (+10) finds the room that is
    // left.
    {"ItHoldsNoRoom", {{0, 0, 50, 2}, {5, 1, 100, 2}, {6, 1, 100, 2}, {8, 0, 100, 2}},
     {{"start 2", 15}, {"start 3", 15}, {"start 4", 18}}, late_comers()},
    // 1 has the GPU to itself until 2 comes at 60; its second wave ends at 200 beside it.
    {"AKernelThatComesWhileOneIsAloneChangesNothingBefore", {{0, 0, 200, 12}, {50, 1, 40, 4}},
     {{"start 2", 100}, {"end 1", 200}}, late_comers()}};
INSTANTIATE_TEST_SUITE_P(ClientSwitch, KernelsOfClients,
                         testing::ValuesIn(kKernelsOfClients), name_of_row);

// Processes of an MPS server at one priority, on a device on which each has an even part of what is
// free. The GPU has 4 SMs of 8 warps: 8 blocks of 4 warps at once.

Kernels::Setup even_parts() {
  Kernels::Setup out = shared(SharingMode::kMps);
  out.spec.client_order = hardware::ClientOrder::kEven;
  return out;
}

class EqualClients : public GpuTest {
 protected:
  EqualClients() { make(even_parts().spec, even_parts().sharing); }
};

class KernelsOfEqualClients : public KernelTable {};
TEST_P(KernelsOfEqualClients, StartAndEndAsListed) { expect_row(); }

const std::vector<Kernels> kKernelsOfEqualClients{
    // 1: 24 blocks of 100, three waves alone. 2 comes at 30 with 8 blocks of 100: 4 of 100 to 200
    // and 4 of 200 to 300, beside 4 of kernel 1 each time. 1: 8 + 4 + 4, and 8 from 300 on.
    {"ANewcomerGetsHalfOfTheNextWave", {{0, 0, 300, 24}, {30, 1, 100}}, {{"start 2", 100},
     {"end 2", 300}, {"end 1", 400}}, even_parts()},
    {"StreamsOfOneProcessStandInLine", {{0, 0, 300, 24}, {30, 1, 100}}, {{"start 2", 300}}, {}},
    {"InOrderOfArrivalTheyStandInLineToo", {{0, 0, 300, 24}, {30, 1, 100}}, {{"start 2", 300}},
     shared(SharingMode::kMps)},
    // 2 of the same client as 1 waits for its last wave; 3 of another does not. 2 starts at 200:
    // with the last 4 blocks of kernel 1.
    {"KernelsOfOneClientStandInLine", {{0, 0, 200, 16}, {10, 0, 100, 4}, {20, 1, 100, 4}},
     {{"start 3", 100}, {"start 2", 200}, {"end 1", 300}}, even_parts()},
    // 2 ends at 300: all of it from 100 to 300.
    {"PriorityComesFirst", {{0, 0, 300, 24}, {30, 1, 200, 16, 4, 1}}, {{"end 2", 300},
     {"end 1", 500}}, even_parts()},
    // 2's blocks are of one warp: 16 of them cover the two SMs that are its part. 2 ends at 300: 16
    // at 100, 16 at 200. 1 ends at 300: 8 at 0, 4 at 100, 4 at 200.
    {"PartsAreOfSmsNotOfBlocks", {{0, 0, 200, 16}, {10, 1, 100, 32, 1}}, {{"end 2", 300},
     {"end 1", 300}}, even_parts()},
    // 2 may cover one SM, the last: 1 has the part of three, and spreads it over all four, so that
    // at first a block of 2 has the company of one of 1's there. 2 ends at 400: 1 at 100, 1 at 200,
    // 2 at 300. 1 ends at 400: 8, 6, 6, 4.
    {"WhatACappedClientCannotUseOthersHave", {{0, 0, 300, 24}, {10, 1, 100, 4, 4, 0, 1}},
     {{"end 2", 400}, {"end 1", 400}}, even_parts()}};
INSTANTIATE_TEST_SUITE_P(EqualClients, KernelsOfEqualClients,
                         testing::ValuesIn(kKernelsOfEqualClients), name_of_row);

TEST_F(EqualClients, ACollectiveGetsAllItsBlocksAtOnce) {
  // 6 of 8 blocks, more than its part; they are of use only together.
  kernel_at(0, 1, client(), 300, blocks_of_warps(24, 4));
  work_at(10, {.client = client(), .kind = program::WorkKind::kCollective,
               .profile = keep(blocks_of_warps(6, 4)), .cookie = 2});
  on_start_ = [&](std::uint64_t name, WorkId id) {
    if (name == 2) gpu_->finish_collective(id, SimTime{Duration{150}});
  };
  expect_run({{"start 2", 100}, {"end 2", 150}});
}

TEST_F(EqualClients, WavesThatReplaceThemselvesCostNoEvents) {
  // Two kernels of a thousand waves each on half of the GPU: two submissions, the first wave that
  // is shared, two last placements, two ends.
  kernel_at(0, 1, client(), 1'000'000, blocks_of_warps(8'000, 4));
  kernel_at(10, 2, client(), 1'000'000, blocks_of_warps(8'000, 4));
  expect_run({{"end 1", 1'999'000}, {"end 2", 2'000'000}});
  EXPECT_LE(engine_.events(), 10u);
}

}  // namespace
}  // namespace bubblesim::gpu
