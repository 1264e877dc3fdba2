// The books: who used the GPU for how long.
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

using Books = GpuTest;

TEST_F(Books, BusyTimeIsTheUnionOfOperations) {
  // A: 0-100 and 80-130 (copy). B: 200-250. Union 130 + 50.
  const ClientId a = client();
  const ClientId b = client();
  kernel_at(0, 1, a, 100, blocks_of_warps(8, 4));
  work_at(80, {.client = a, .kind = program::WorkKind::kCopy, .solo = Duration{50}, .cookie = 2});
  kernel_at(200, 3, b, 50, blocks_of_warps(8, 4));
  run();
  EXPECT_EQ(gpu_->busy(), Duration{180});
  EXPECT_EQ(gpu_->usage(a).busy, Duration{130});
  EXPECT_EQ(gpu_->usage(b).busy, Duration{50});
  EXPECT_EQ(gpu_->usage(a).kernels, 1u);
  EXPECT_EQ(gpu_->usage(a).copies, 1u);
  EXPECT_EQ(gpu_->usage(b).copies, 0u);
}

TEST_F(Books, WaitingWorkIsNotBusy) {
  const ClientId b = client();
  kernel_at(0, 1, client(), 100, blocks_of_warps(8, 4));
  kernel_at(10, 2, b, 100, blocks_of_warps(8, 4));
  run();
  EXPECT_EQ(gpu_->usage(b).busy, Duration{100});
}

TEST_F(Books, CollectivesAreToldApart) {
  const ClientId c = client();
  work_at(0, {.client = c,
              .kind = program::WorkKind::kCollective,
              .profile = keep(blocks_of_warps(1, 4)),
              .cookie = 1});
  kernel_at(50, 2, c, 100, blocks_of_warps(4, 4));
  script_.at(100, [&] { gpu_->finish_collective(ids_.at(1), SimTime{Duration{400}}); });
  run();
  EXPECT_EQ(gpu_->busy(), Duration{400});
  EXPECT_EQ(gpu_->busy_without_collectives(), Duration{100});
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
    EXPECT_EQ(gpu_->usage(c).busy, Duration{150});
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
  EXPECT_EQ(gpu_->usage(c).busy, Duration{200});
  EXPECT_EQ(gpu_->usage(c).kernels, 1U);
  EXPECT_NEAR(gpu_->usage(c).sm_seconds, 600e-9, 1e-15);
}

TEST_F(Books, FrozenContextsAreNotBusy) {
  make(small_gpu(), {.mode = program::SharingMode::kTimeSliced, .slice = Duration{100}});
  const ClientId a = client();
  const ClientId b = client();
  kernel_at(0, 1, a, 200, blocks_of_warps(8, 4));
  kernel_at(0, 2, b, 200, blocks_of_warps(8, 4));
  run();
  EXPECT_EQ(gpu_->usage(a).busy, Duration{200});
  EXPECT_EQ(gpu_->usage(b).busy, Duration{200});
  EXPECT_EQ(gpu_->busy(), Duration{400});
  EXPECT_NEAR(gpu_->usage(a).sm_seconds, 4 * 200e-9, 1e-15);
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
  kernel_at(0, 1, c, 1000, of_class(program::KernelClass::kCompute));
  kernel_at(10'000, 2, c, 1000, of_class(program::KernelClass::kMemory));
  kernel_at(20'000, 3, c, 1000, of_class(program::KernelClass::kUnknown));
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
  kernel_at(0, 1, c, 1000, of_class(program::KernelClass::kCompute));
  kernel_at(2000, 2, c, 1000, of_class(program::KernelClass::kCompute));
  kernel_at(5000, 3, c, 1000, of_class(program::KernelClass::kCompute));
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
