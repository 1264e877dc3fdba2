// Copies and memsets.
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

class CopiesAndMemsets : public GpuTest {
 protected:
  void copy_at(std::int64_t ns, std::uint64_t name, ClientId client, std::int64_t length) {
    work_at(ns, {.client = client, .kind = program::WorkKind::kCopy, .solo = Duration{length},
                 .cookie = name});
  }
};

TEST_F(CopiesAndMemsets, QueueForTheCopyEngines) {
  // Two engines: 1 and 2 run 0-100 and 0-50; 3 runs 50-80; 4 runs 80-90.
  const ClientId c = client();
  copy_at(0, 1, c, 100);
  copy_at(0, 2, c, 50);
  copy_at(0, 3, c, 30);
  copy_at(0, 4, c, 10);
  expect_run({{"end 1", 100}, {"start 3", 50}, {"end 3", 80}, {"start 4", 80}, {"end 4", 90}});
}

TEST_F(CopiesAndMemsets, RunBesideKernels) {
  const ClientId c = client();
  kernel_at(0, 1, c, 100, blocks_of_warps(8, 4));
  copy_at(0, 2, c, 100);
  work_at(0, {.client = c, .kind = program::WorkKind::kMemset, .solo = Duration{40}, .cookie = 3});
  expect_run({{"end 1", 100}, {"end 2", 100}, {"end 3", 40}});
}

TEST_F(CopiesAndMemsets, MemsetsNeverQueue) {
  const ClientId c = client();
  for (std::uint64_t name = 1; name <= 10; ++name) {
    work_at(
        0, {.client = c, .kind = program::WorkKind::kMemset, .solo = Duration{40}, .cookie = name});
  }
  run();
  for (std::uint64_t name = 1; name <= 10; ++name) EXPECT_EQ(end(name), 40);
}

TEST_F(CopiesAndMemsets, DoNotWaitForTheirContextsTurn) {
  make(small_gpu(), {.mode = program::SharingMode::kTimeSliced, .slice = Duration{100}});
  const ClientId a = client();
  const ClientId b = client();
  kernel_at(0, 1, a, 1000, blocks_of_warps(8, 4));
  copy_at(10, 2, b, 50);
  expect_run({{"end 2", 60}, {"end 1", 1000}});
}

TEST_F(CopiesAndMemsets, ManyCopiesPassInOrder) {
  const ClientId c = client();
  for (std::uint64_t name = 0; name < 1000; ++name) copy_at(0, name, c, 10);
  run();
  EXPECT_EQ(end(999), 5000);  // two at a time
  EXPECT_TRUE(std::is_sorted(order_.begin(), order_.end()));
}

}  // namespace
}  // namespace bubblesim::gpu
