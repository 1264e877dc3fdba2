// What kernels of different clients cost each other. 4 SMs; kernels of 4 blocks of 4 warps sit on
// all of them and leave half of each free.
#include "sim/gpu/contention.hpp"
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

using ContentionOnGpu = GpuTest;
using Books = GpuTest;
using enum program::KernelClass;

program::KernelProfile shares(program::KernelClass kernel_class, double dram, double issue) {
  program::KernelProfile profile = blocks_of_warps(4, 4);
  profile.kernel_class = kernel_class;
  profile.dram_share = dram;
  profile.issue_share = issue;
  return profile;
}

/// Kernel 1 comes at 0, kernel 2 at `second_at`; when they end.
struct Pair {
  std::string name;
  program::KernelProfile first, second;
  std::int64_t first_ends, second_ends;
  std::int64_t second_at = 0, second_solo = 100;
  bool one_client = false;
};

program::KernelProfile on_two_sms(program::KernelProfile profile) {
  profile.blocks = 2;
  return profile;
}

class Pairs : public GpuTest, public testing::WithParamInterface<Pair> {};

TEST_P(Pairs, EndAsListed) {
  const Pair& pair = GetParam();
  const ClientId first = client();
  kernel_at(0, 1, first, 100, pair.first);
  kernel_at(pair.second_at, 2, pair.one_client ? first : client(), pair.second_solo, pair.second);
  expect_run({{"end 1", pair.first_ends}, {"end 2", pair.second_ends}});
}

const program::KernelProfile kAllOfDram = shares(kMemory, 1, 0);

INSTANTIATE_TEST_SUITE_P(ContentionOnGpu, Pairs, testing::ValuesIn(std::vector<Pair>{
    {"TwoMemoryBoundKernelsRunAtHalfSpeed", kAllOfDram, kAllOfDram, 200, 200},
    {"ComplementaryKernelsRunAtFullSpeed", shares(kMemory, 0.9, 0.2), shares(kCompute, 0.1, 0.8),
     100, 100},
    // Both at half speed until 200 (100 done each), then the second alone: 200 more.
    {"ProcessorSharingOfUnequalJobs", kAllOfDram, kAllOfDram, 200, 400, 0, 300},
    // 1 alone until 60; both at half speed: 1 has 40 left, ends at 140; 2 has 40 of 100 done then,
    // 60 left alone.
    {"ProcessorSharingOfALateComer", kAllOfDram, kAllOfDram, 140, 200, 60},
    // D = 2. Compute (0.1 bound): 1 / (0.9 + 0.1 * 2) -> 100 ns take 110. Then the memory kernel,
    // 110 ns at half speed = 55 done, runs its last 45 alone.
    {"OnlyTheMemoryBoundPartSlows", shares(kCompute, 1, 0), kAllOfDram, 110, 155},
    {"KernelsOfOneClientDoNotSlowEachOther", shares(kMemory, 1, 1), shares(kMemory, 1, 1), 100, 100,
     0, 100, true},
    {"JobsThatNeverOverlapDoNotInteract", shares(kMemory, 1, 1), shares(kMemory, 1, 1), 100, 200,
     100},
    // I = 0.75 + 0.75 = 1.5 on all four SMs; compute kernels are 0.9 bound by issue:
    // 0.1 + 0.9 * 1.5 = 1.45.
    {"IssueSlotsAreSharedOnTheSameSms", shares(kCompute, 0, 0.75), shares(kCompute, 0, 0.75), 145,
     145},
    // Two blocks each: two SMs each, I = 2 * 0.75 * 2/4 = 0.75.
    {"IssueSlotsOfDifferentSmsAreNotShared", on_two_sms(shares(kCompute, 0, 0.75)),
     on_two_sms(shares(kCompute, 0, 0.75)), 100, 100}}),
    [](const auto& pair) { return pair.param.name; });

TEST_F(ContentionOnGpu, NeighboursBandwidthSlowsThroughL2) {
  hardware::GpuSpec spec = small_gpu();
  spec.contention.l2_slowdown = 0.2;
  make(spec);
  // D = 0.9 fits; 1 sees 0.4 of the other: 1 + 0.2 * 0.4 = 1.08; 2 sees 0.5: 1.1.
  kernel_at(0, 1, client(), 1000, shares(kMemory, 0.5, 0));
  kernel_at(0, 2, client(), 1000, shares(kMemory, 0.4, 0));
  // 2: 1080 / 1.1 = 981.8 done, 18.2 left alone: 1098.2, seen at the next whole nanosecond.
  expect_run({{"end 1", 1080}, {"end 2", 1099}});
}

TEST_F(ContentionOnGpu, HalfOfTheBlocksDemandHalfOfTheBandwidth) {
  const Contention contention(hardware::ContentionSpec{}, 4);
  DemandSum demands;
  demands.set_clients(2);
  const program::KernelProfile memory = shares(kMemory, 1, 0);
  demands.add(ClientId{1}, Contention::demand(memory, 2, 4, 1));
  demands.add(ClientId{0}, Contention::demand(memory, 4, 4, 1));
  const Pressure all = contention.pressure(demands.total());  // D = 1.5
  const double own = demands.demand_of(ClientId{0}).dram;
  EXPECT_DOUBLE_EQ(contention.rate(all, own, kMemory), 1 / 1.5);
  EXPECT_DOUBLE_EQ(contention.rate(all, own, kUnknown),
                   1 / (0.7 + 0.3 * 1.5));
}

TEST_F(ContentionOnGpu, AClientDemandsAtMostAllAndARoundForgetsTheOneBefore) {
  DemandSum demands;
  demands.set_clients(3);
  demands.add(ClientId{2}, {0.8, 0.5});
  demands.add(ClientId{0}, {0.3, 0.1});
  demands.add(ClientId{2}, {0.8, 0.25});
  const Demand total = demands.total();
  EXPECT_DOUBLE_EQ(total.dram, 1.3);  // 1 of client 2
  EXPECT_DOUBLE_EQ(total.issue, 0.85);
  EXPECT_EQ(demands.demand_of(ClientId{2}).dram, 1);
  demands.clear();
  EXPECT_EQ(demands.total().dram, 0);
  EXPECT_EQ(demands.demand_of(ClientId{2}).issue, 0);
  demands.clear();
  demands.add(ClientId{1}, {0.25, 0});
  demands.add(ClientId{0}, {0.5, 0});
  EXPECT_EQ(demands.total().dram, 0.75);  // nothing of the rounds before
  demands.clear();
  demands.add(ClientId{1}, {0.5, 0});
  EXPECT_EQ(demands.total().dram, 0.5);
  EXPECT_EQ(demands.demand_of(ClientId{0}).dram, 0);
}

// The books: who used how much of the GPU.
TEST_F(Books, WaitingWorkUsesNothing) {
  const ClientId b = client();
  kernel_at(0, 1, client(), 100, blocks_of_warps(8, 4));
  kernel_at(10, 2, b, 100, blocks_of_warps(8, 4));
  expect_run({{"start 2", 100}, {"end 2", 200}});
  EXPECT_NEAR(gpu_->usage(b).sm_seconds, 4 * 100e-9, 1e-15);
}

TEST_F(Books, SmTimeFollowsTheWaves) {
  // 12 blocks, 2 an SM: 4 SMs for 100 ns, then 2 SMs for 100 ns = 600 SM ns.
  const ClientId c = client();
  kernel_at(0, 1, c, 200, blocks_of_warps(12, 4));
  run();
  EXPECT_NEAR(gpu_->usage(c).sm_seconds, 600e-9, 1e-15);
}

TEST_F(Books, CanBeReadWhileAKernelRuns) {
  const ClientId c = client();
  kernel_at(0, 1, c, 200, blocks_of_warps(12, 4));
  script_.at(150, [&] {
    EXPECT_NEAR(gpu_->usage(c).sm_seconds, 500e-9, 1e-15);
  });
  run();
  EXPECT_EQ(end(1), 200);  // looking changes nothing
}

// A kernel that has the GPU to itself is kept apart until something else happens: here a cap that
// changes nothing, in its second wave.
TEST_F(Books, AKernelAloneHasTheSameBooksIfItsContextTakesItOver) {
  const ClientId c = client();
  kernel_at(0, 1, c, 200, blocks_of_warps(12, 4));
  script_.at(150, [&] { gpu_->set_sm_cap(c, small_gpu().sm_count); });
  expect_run({{"end 1", 200}});
  EXPECT_NEAR(gpu_->usage(c).sm_seconds, 600e-9, 1e-15);
}

TEST_F(Books, FrozenContextsUseNothing) {
  make(small_gpu(), {.mode = program::SharingMode::kTimeSliced, .slice = Duration{100}});
  const ClientId a = client();
  const ClientId b = client();
  kernel_at(0, 1, a, 200, blocks_of_warps(8, 4));
  kernel_at(0, 2, b, 200, blocks_of_warps(8, 4));
  run();
  EXPECT_NEAR(gpu_->usage(a).sm_seconds, 4 * 200e-9, 1e-15);
  EXPECT_NEAR(gpu_->usage(b).sm_seconds, 4 * 200e-9, 1e-15);
}

// Two kernels of a recorded job, on three of four SMs each, from 50 to 100 at the same time. The
// filler's block covers one SM from 20 to 60, and so leaves three from 50 to 60.
TEST_F(Books, KernelsThatOverlapAsRecordedUseNoMoreSmsThanThereAre) {
  make(small_gpu());
  const ClientId job =
      gpu_->add_client({.name = "job", .own_kernels = program::OwnKernels::kAsRecorded}, *this);
  const ClientId filler = client();
  kernel_at(0, 1, job, 100, blocks_of_warps(3, 8));
  kernel_at(20, 2, filler, 40, blocks_of_warps(1, 8));
  kernel_at(50, 3, job, 100, blocks_of_warps(3, 8));
  expect_run({{"end 1", 100}, {"end 3", 150}});
  EXPECT_DOUBLE_EQ(gpu_->usage(filler).sm_seconds, 40e-9);
  // 3 until 50, 3 until 60 (of 6 covered), 4 until 100, 3 until 150.
  EXPECT_DOUBLE_EQ(gpu_->usage(job).sm_seconds, (3 * 50 + 3 * 10 + 4 * 40 + 3 * 50) * 1e-9);
}

// Two recorded jobs with two kernels each at a time, of 2 and 2 SMs and of 1 and 1: 6 are covered,
// 4 there are.
TEST_F(Books, SeveralThatOverlapAsRecordedShareTheSmsInProportion) {
  make(small_gpu());
  const ClientSetup recorded{.name = "job", .own_kernels = program::OwnKernels::kAsRecorded};
  const ClientId large = gpu_->add_client(recorded, *this);
  const ClientId small = gpu_->add_client(recorded, *this);
  kernel_at(0, 1, small, 100, blocks_of_warps(1, 8));
  kernel_at(0, 2, small, 100, blocks_of_warps(1, 8));
  kernel_at(0, 3, large, 100, blocks_of_warps(2, 8));
  kernel_at(0, 4, large, 100, blocks_of_warps(2, 8));
  run();
  const double all = gpu_->usage(large).sm_seconds + gpu_->usage(small).sm_seconds;
  EXPECT_NEAR(all, 4 * 100e-9, 1e-15);
  EXPECT_NEAR(gpu_->usage(large).sm_seconds, 2 * gpu_->usage(small).sm_seconds, 1e-15);
}

// The clock: kernels slow by the part of their time that DRAM does not bound.

using Clock = GpuTest;

program::KernelProfile of_class(program::KernelClass kernel_class) {
  program::KernelProfile profile = blocks_of_warps(8, 4);
  profile.kernel_class = kernel_class;
  return profile;
}

TEST_F(Clock, AtHalfTheClockAKernelTakesWhatItsClassSays) {
  // Bound by DRAM: 0.1, 1 and 0.3 of the time; the rest takes twice as long.
  hardware::GpuSpec spec = small_gpu();
  spec.clock = 0.5;
  make(spec);
  const ClientId c = client();
  kernel_at(0, 1, c, 1000, of_class(kCompute));
  kernel_at(10'000, 2, c, 1000, of_class(kMemory));
  kernel_at(20'000, 3, c, 1000, of_class(kUnknown));
  expect_run({{"end 1", 1900}, {"end 2", 11'000}, {"end 3", 21'700}});
}

/// Half the clock from 500 to 2500 ns.
class HalfForAWhile final : public Governor {
 public:
  double clock_at(SimTime now) override {
    return now >= SimTime{Duration{500}} && now < SimTime{Duration{2500}} ? 0.5 : 1;
  }
};

TEST_F(Clock, AGovernorIsAskedWhenAKernelComesWhichKeepsThatClock) {
  HalfForAWhile governor;
  const ClientId c = client();
  gpu_->set_governor(&governor);
  kernel_at(0, 1, c, 1000, of_class(kCompute));
  kernel_at(2000, 2, c, 1000, of_class(kCompute));
  kernel_at(5000, 3, c, 1000, of_class(kCompute));
  expect_run({{"end 1", 1000}, {"end 2", 3900}, {"end 3", 6000}});
}

TEST_F(Clock, CopiesDoNotFollowIt) {
  hardware::GpuSpec spec = small_gpu();
  spec.clock = 0.5;
  make(spec);
  work_at(0, {.client = client(), .kind = program::WorkKind::kCopy, .solo = Duration{50},
              .cookie = 1});
  expect_run({{"end 1", 50}});
}

}  // namespace
}  // namespace bubblesim::gpu
