// The clock: kernels slow by the part of their time that DRAM does not bound.
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

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
