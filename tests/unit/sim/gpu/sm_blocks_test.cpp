#include "sim/gpu/sm_blocks.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

struct PooledKernel {
  program::Residency needs;
  SmRange sms;
  FootprintId placed;
  std::uint64_t blocks = 0;
};

// Kernels of blocks of 1, 2 or 3 warps, on all of the 4 SMs or the last 2.
std::vector<PooledKernel> some_kernels() {
  std::vector<PooledKernel> kernels;
  for (const std::uint32_t warps : {1U, 2U, 3U}) {
    const program::Residency needs = blocks_of_warps(1, warps).residency;
    for (const std::uint32_t begin : {0U, 2U}) kernels.push_back({needs, {begin, 4}, {}, 0});
  }
  return kernels;
}

// A pool and its kernels, of which blocks come and leave as random numbers say. The kernel before a
// kernel is not in its way, every other time.
class RandomMoves {
 public:
  explicit RandomMoves(std::size_t most_moves) : pool_(small_gpu(), most_moves) {}

  void move() {
    const std::size_t at = random_() % kernels_.size();
    PooledKernel& kernel = kernels_[at];
    const PooledKernel& before = kernels_[(at + kernels_.size() - 1) % kernels_.size()];
    SmBlocks::Kernel in_pool{kernel.needs, kernel.placed, kernel.sms};
    if (random_() % 2 == 0 && before.blocks > 0) {
      in_pool.passed_over = pool_.add({}, before.needs, before.placed);
    }
    const std::uint64_t blocks = 1 + random_() % 8;
    if (random_() % 2 == 0) {
      came_ = pool_.find_room(in_pool, blocks);
      pool_.take(kernel.placed);
      kernel.blocks += came_;
    } else if (kernel.blocks > blocks) {
      pool_.give(in_pool, kernel.placed, blocks);
      kernel.blocks -= blocks;
    } else if (kernel.blocks > 0) {
      leave(kernel);
    }
  }
  void all_leave() {
    for (PooledKernel& kernel : kernels_) leave(kernel);
  }

  void expect_equal(const RandomMoves& other) const {
    ASSERT_EQ(came_, other.came_);
    ASSERT_EQ(pool_.held(), other.pool_.held());
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      ASSERT_EQ(pool_.footprint(kernels_[i].placed),
                other.pool_.footprint(other.kernels_[i].placed));
    }
  }
  // What is held is what the kernels hold.
  void expect_sum() const {
    Held sum(4);
    for (const PooledKernel& kernel : kernels_) {
      const Held before = sum;
      sum.become_changed(before, pool_.footprint(kernel.placed),
                         [&](SmLoad& here, std::uint32_t blocks) {
                           here += load_of(kernel.needs) * blocks;
                         });
    }
    ASSERT_EQ(pool_.held(), sum);
  }
  [[nodiscard]] const SmBlocks& pool() const { return pool_; }

 private:
  void leave(PooledKernel& kernel) {
    pool_.give_all(kernel.needs, kernel.placed);
    kernel.blocks = 0;
  }

  std::mt19937 random_{7};
  SmBlocks pool_;
  std::vector<PooledKernel> kernels_ = some_kernels();
  std::uint64_t came_ = 0;
};

TEST(SmBlocks, MovesThatAreRememberedAreAsIfWorkedOutAnew) {
  RandomMoves remembered(100'000);
  RandomMoves worked_out(1);
  for (int i = 0; i < 20'000; ++i) {
    remembered.move();
    worked_out.move();
    ASSERT_NO_FATAL_FAILURE(remembered.expect_equal(worked_out));
    ASSERT_NO_FATAL_FAILURE(remembered.expect_sum());
  }
  EXPECT_LE(worked_out.pool().moves(), 1U);
  EXPECT_GT(remembered.pool().moves(), 1'000U);
}

TEST(SmBlocks, KeepsNoMoreThanItIsToldAndWhatIsThere) {
  constexpr std::size_t kMoves = 20;
  RandomMoves moves(kMoves);
  for (int i = 0; i < 20'000; ++i) {
    moves.move();
    ASSERT_LE(moves.pool().moves(), kMoves);
    // Each move adds two at most. Besides there are two of nothing, what is held, what was passed
    // over, and six footprints.
    ASSERT_LE(moves.pool().values(), 2 * kMoves + 10);
  }
}

TEST(SmBlocks, IsEmptyWhenAllHaveLeft) {
  RandomMoves moves(1);
  const program::Residency wave = blocks_of_warps(8, 4).residency;
  for (int i = 0; i < 100; ++i) moves.move();
  EXPECT_FALSE(moves.pool().has_room_for_all(wave));
  moves.all_leave();
  EXPECT_EQ(moves.pool().held(), Held(4));
  EXPECT_TRUE(moves.pool().has_room_for_all(wave));
}

}  // namespace
}  // namespace bubblesim::gpu
