// SM caps, as MPS active-thread percentages set them, and clients as equals.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/gpu/hash_index.hpp"
#include "sim/gpu/value_table.hpp"
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

using enum program::KernelClass;
using program::SharingMode;

class CappedKernels : public KernelTable {};
TEST_P(CappedKernels, StartAndEndAsListed) { expect_row(); }

constexpr SharingSetup kProcesses{.mode = SharingMode::kMps};

Kernels::Setup with_sms(std::uint32_t sms, const SharingSetup& sharing = {}) {
  Kernels::Setup out{small_gpu(), sharing};
  out.spec.sm_count = sms;
  return out;
}

const std::vector<Kernels> kCappedKernels{
    // 1: 4 blocks fit 2 SMs.
    {"ASmallKernelDoesNotFeelACap", {{0, 0, 100, 4, 4, 0, 2}}, {{"end 1", 100}}},
    // Its blocks are there until it ends: on 2 of 4 SMs four blocks from 0 to 200, and who comes at
    // 50 for these SMs waits for them. 2: two SMs at once, two from 200 on.
    {"BlocksOfASizedGridStayUntilItEnds", {{0, 0, 100, 8, 4, 0, 2}, {50, 1, 100, 8, 4, 1}},
     {{"end 1", 200}, {"start 2", 50}, {"end 2", 250}}, shared(SharingMode::kMps)},
    // Who is capped later had launched grids for the whole GPU.
    {"ACapThatComesLaterIsNotTold", {{20, 0, 100}}, {{"end 1", 220}}, shared(SharingMode::kMps),
     {{10, 0, sm_cap(3)}}},
    // Cap 2 SMs = 4 blocks of 4 warps. Kernel 1 has 3 of them; kernel 2 gets 1 at a time, then 4. 2
    // ends at 200: 1 block 0-100, 3 blocks 100-200.
    {"CountAllKernelsOfTheClient", {{0, 0, 100, 3, 4, 0, 2}, {0, 0, 100, 4}}, {{"end 1", 100},
     {"end 2", 200}}},
    // 1 is capped to 2 SMs and has 4 waves of 4 blocks; 2 takes the other 2 SMs at once.
    {"ACappedKernelDoesNotBlockOthers", {{0, 0, 200, 16, 4, 1, 2}, {0, 1, 100, 4}}, {{"end 1", 400},
     {"start 2", 0}, {"end 2", 100}}},
    // Each has 16 blocks, two waves of 100 alone, four waves on half of the SMs.
    {"TwoHalvesRunSideBySide", {{0, 0, 200, 16, 4, 0, 2}, {0, 1, 200, 16, 4, 0, 2}},
     {{"end 1", 400}, {"end 2", 400}}},
    // 16 blocks: 8 run 0-100 on all SMs. Cap 1 SM from 50 on: 2 blocks a wave from 100 on.
    {"ANewCapLeavesResidentBlocks", {{0, 0, 200, 16}}, {{"end 1", 100 + 4 * 100}}, {},
     {{50, 0, sm_cap(1)}}},
    // 16 blocks, cap 1 SM: 2 blocks 0-100. At 50 the cap goes: 6 more at 50, to 150; 2 at 100, to
    // 200; 6 at 150, to 250.
    {"ALiftedCapIsUsedAtOnce", {{0, 0, 200, 16, 4, 0, 1}}, {{"end 1", 250}}, {},
     {{50, 0, sm_cap(kAllSms)}}},
    {"ACapAboveTheDeviceIsNone", {{0, 0, 200, 16, 4, 0, 1000}}, {{"end 1", 200}}},
    // 1: two blocks of 4 warps under a cap of one SM sit on that, although they would be spread
    // over two without it. So three blocks that take whole SMs have room at once.
    {"LeaveWholeSmsToOthers", {{0, 0, 300, 2, 4, 0, 1}, {10, 1, 50, 3, 8}}, {{"end 1", 300},
     {"end 2", 60}}},
    // Caps of 1 and 2 SMs of 4: blocks of whole SMs, four of each client, at once as many as SMs.
    {"OfTwoClientsAreApartAsLongAsThereAreSms", {{0, 0, 100, 4, 8, 0, 1}, {0, 1, 100, 4, 8, 0, 2},
     {0, 2, 50, 1, 8}}, {{"end 1", 400}, {"end 2", 200}, {"end 3", 50}}},
    // 3 SMs, 1 to 3, and 2, 0 and 1: SM 1 is both's. 1 takes its three; of 2 one block is at once
    // on SM 0; SM 1 is taken for both waves of 1, and has one of the other two then.
    {"BeyondAllSmsShareOnlyWhatThereIsTooLittleOf", {{0, 0, 100, 6, 8, 0, 3},
     {0, 1, 100, 3, 8, 0, 2}}, {{"end 1", 100}, {"end 2", 200}}},
    // 320 blocks, 2 an SM: 160 at once = 2 waves of 100 on 80 SMs; on 40 SMs 80 at once = 4 waves.
    {"HalfTheSmsDoubleTheWaves", {{0, 0, 200, 320, 4, 0, 40}}, {{"end 1", 400}}, with_sms(80)},
    // 132 blocks on 132 SMs. Of 130 SMs or 66, each takes 132/130 of the tiles, or twice as many.
    // 131 blocks are not sized: two waves.
    {"AGridSizedByTheSmsFollowsThoseThatItsProcessHas", {{0, 0, 6500, 132, 8, 0, 130},
     {20'000, 1, 6500, 132, 8, 0, 66}, {40'000, 0, 6500, 131, 8}}, {{"end 1", 6600},
     {"end 2", 20'000 + 13'000}, {"end 3", 40'000 + 13'000}}, with_sms(132, kProcesses)},
    // Halves: client 0 has SMs 2 and 3, client 1 SMs 0 and 1, client 2 again 2 and 3. 2 waits for 1
    // until 100, and 3, behind it, goes at once; 4, which may use all, waits behind 2, and 5,
    // behind 4, with it, though SMs 0 and 1 are free from 70 on.
    {"KeepNobodyWaitingWhoMayNotUseTheirSms", {{0, 0, 100, 2, 8, 0, 2}, {10, 2, 100, 2, 8, 0, 2},
     {20, 1, 50, 2, 8}, {30, 3, 50, 2, 8}, {40, 1, 50, 2, 8}}, {{"start 3", 20}, {"end 3", 70},
     {"start 2", 100}, {"start 4", 100}, {"start 5", 150}}}};
INSTANTIATE_TEST_SUITE_P(Caps, CappedKernels, testing::ValuesIn(kCappedKernels), name_of_row);

// Kernels of clients that may use a part of the SMs. 4 SMs; a kernel of 8 blocks of 4 warps fills
// them, and takes two waves on two of them.

constexpr std::int64_t kSolo = 1'000'000;

class PartOfSms : public GpuTest {
 protected:
  PartOfSms() {
    spec_.part = {.dram_saturating_sms = 0.5, .dark_clock_gain = 1.2};
    spec_.contention.compute_kernel_memory_boundness = 0;
    spec_.contention.memory_kernel_memory_boundness = 1;
  }
  /// Relative to all SMs.
  double time_on(std::uint32_t sms, program::KernelClass kernel_class, std::uint64_t blocks = 8) {
    make(spec_, {.mode = program::SharingMode::kMps});
    program::KernelProfile profile = blocks_of_warps(blocks, 4);
    profile.kernel_class = kernel_class;
    const std::int64_t now = to_ns(engine_.now());
    kernel_at(now, ++kernels_, client(0, sms), kSolo, profile);
    run(now + 10 * kSolo);
    return static_cast<double>(end(kernels_) - now) / kSolo;
  }
  hardware::GpuSpec spec_ = small_gpu();
  std::uint64_t kernels_ = 0;
};

TEST_F(PartOfSms, WhatSitsOnItsSmsAsRecordedTakesAsLong) {
  EXPECT_EQ(time_on(4, kMemory), 1);
  EXPECT_EQ(time_on(4, kCompute), 1);
  EXPECT_EQ(time_on(2, kMemory, 2), 1);   // two blocks
  EXPECT_EQ(time_on(2, kCompute, 4), 1);  // blocks that compute were recorded with that clock
}

TEST_F(PartOfSms, ATimeIsOfWavesOfTheBandwidthAndOfTheClock) {
  // DRAM knows no waves. On s of the SMs it gives m(s) of what it gives on all, m^4 = (s^4 + a^4) /
  // (1 + a^4) with a = 1/2: ((3/4)^4 + (1/2)^4) / (1 + (1/2)^4) = 97 / 272, 2 / 17, and 1 / 16.
  const double three = std::pow(97.0 / 272, 0.25) / 0.75;
  const double two = std::pow(2.0 / 17, 0.25) / 0.5;
  const double clock = std::cbrt(4.0 / 3);  // of three SMs, over the full one
  struct Row {
    const char* what;
    std::uint32_t sms;
    program::KernelClass kernel_class;
    std::uint64_t blocks;
    double time;
  };
  for (const Row& row : {
           Row{"three SMs hold 6 of 8 blocks", 3, kMemory, 8, three},
           Row{"12 blocks take two waves on four SMs and on three", 3, kMemory, 12, three},
           Row{"half of the SMs ask for most of the bandwidth", 2, kMemory, 8, two},
           Row{"one SM is far from saturating it: 4 (1 / 16)^(1/4)", 1, kMemory, 8, 2},
           Row{"12 blocks take two waves, at a clock that rises", 3, kCompute, 12, 1 / clock},
           Row{"7 blocks take two waves in place of one", 3, kCompute, 7, 2 / clock},
           Row{"8 fill the GPU: a grid sized by the SMs", 3, kCompute, 8, 4.0 / 3 / clock},
           Row{"the clock's most is 1.2", 2, kCompute, 8, 2 / 1.2},
           Row{"4 blocks sit on four SMs alone, two each on two", 2, kMemory, 4, two}}) {
    EXPECT_NEAR(time_on(row.sms, row.kernel_class, row.blocks), row.time, 1e-5) << row.what;
  }
}

TEST_F(PartOfSms, TheClockStaysWhileOthersUseTheRest) {
  // Half of the kernel in 1,000,000 ns beside the other client; the other half at 1.2 times that.
  make(spec_, {.mode = program::SharingMode::kMps});
  program::KernelProfile compute = blocks_of_warps(8, 4);
  compute.kernel_class = kCompute;
  kernel_at(0, 1, client(0, 2), kSolo, compute);
  program::KernelProfile other = blocks_of_warps(4, 4);
  other.kernel_class = kCompute;
  kernel_at(0, 2, client(0, 2), kSolo, other);
  expect_run({{"end 2", kSolo}});
  EXPECT_NEAR(static_cast<double>(end(1)), kSolo + kSolo / 1.2, 2);
}

TEST_F(PartOfSms, APartitionsBandwidthBoundsIt) {
  // On one SM it would ask for half of the bandwidth, and has a quarter: 4 waves of 1/2 x 2.
  make(spec_, {.mode = program::SharingMode::kPartitioned});
  program::KernelProfile profile = blocks_of_warps(8, 4);
  profile.kernel_class = kMemory;
  profile.dram_share = 1;
  const ClientId own = gpu_->add_client({.name = "c", .sm_cap = 1, .bandwidth = 0.25}, *this);
  kernel_at(0, 1, own, kSolo, profile);
  run();
  EXPECT_NEAR(static_cast<double>(end(1)) / kSolo, 4, 1e-5);
}

TEST_F(PartOfSms, AnUnknownPartIsInProportion) {
  spec_.part = {};
  EXPECT_EQ(time_on(2, kMemory), 2);
  EXPECT_EQ(time_on(2, kCompute), 2);
}

// A kernel that follows another process's kernel comes later to the blocks' scheduler. The GPU has
// 4 SMs of 8 warps: 8 blocks of 4 warps at once.
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

std::uint32_t find_in(const HashIndex& index, std::uint64_t hash, std::uint32_t wanted) {
  return index.find(hash, [wanted](std::uint32_t position) { return position == wanted; });
}

// Hashes from all over 64 bits; every third is that of the one before.
std::uint64_t hash_at(std::uint32_t position) {
  return (position - (position % 3 == 2 ? 1 : 0)) * 0x9e3779b97f4a7c15;
}

TEST(HashIndex, FindsWhatWasAddedHoweverMuchItIs) {
  HashIndex index;
  for (std::uint32_t added = 0; added < 1000; ++added) {
    index.add(hash_at(added), added);
    for (std::uint32_t i = 0; i <= added; i += 7) ASSERT_EQ(find_in(index, hash_at(i), i), i);
    ASSERT_EQ(find_in(index, hash_at(added + 3), added + 3), HashIndex::kNowhere);
  }
}

TEST(HashIndex, PlacesAtTheEndGoOnAtTheBeginning) {
  HashIndex index;
  const std::uint64_t last = ~std::uint64_t{0};
  for (std::uint32_t i = 0; i < 4; ++i) index.add(last, i);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(find_in(index, last, i), i);
  EXPECT_EQ(find_in(index, last, 4), HashIndex::kNowhere);
  index.clear();
  EXPECT_EQ(find_in(index, last, 0), HashIndex::kNowhere);
}

using Table = ValueTable<std::uint32_t>;

// Of 8 SMs, the first ones have 1.
Table::Value first_sms(std::uint32_t sms) {
  Table::Value value;
  value.restart();
  value.append(sms, 1);
  value.append(8, 0);
  return value;
}

TEST(ValueTable, ForgetsWhatNobodyKeeps) {
  Table table(8);
  Table::Id kept, left;
  table.replace(kept, table.id_of(first_sms(3)));
  table.replace(left, table.id_of(first_sms(5)));
  table.replace(left, Table::Id{});
  table.forget_others();
  EXPECT_EQ(table.size(), 2U);  // `kept`, and that of which nothing has been said
  EXPECT_EQ(table[kept], first_sms(3));
  EXPECT_EQ(table.id_of(first_sms(3)), kept);
  EXPECT_EQ(table.id_of(first_sms(0)), Table::Id{});
  EXPECT_EQ(table[table.id_of(first_sms(6))], first_sms(6));
  EXPECT_EQ(table.size(), 3U);
  table.replace(kept, Table::Id{});
  table.forget_others();
  EXPECT_EQ(table.size(), 1U);
}

}  // namespace
}  // namespace bubblesim::gpu
