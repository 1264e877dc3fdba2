// Memory for CUPTI: bounded, zeroed, never refused.
#include "capture/record/process/buffer_exchange.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace bubblesim::capture {
namespace {

constexpr PoolLimits kSmall{.large_bytes = 4096, .large_count = 2, .small_bytes = 1024,
                            .small_count = 3, .discard_bytes = 512};

TEST(BufferPool, HandsOutLargeThenSmallThenWhatIsDiscarded) {
  BufferPool pool(kSmall);
  std::vector<std::size_t> sizes;
  std::vector<std::uint8_t*> buffers;
  for (int i = 0; i < 7; ++i) {
    std::size_t size = 0;
    buffers.push_back(pool.take(size));
    sizes.push_back(size);
    EXPECT_EQ(BufferPool::is_discard(buffers.back()), i >= 5);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffers.back()) % 64, 0U);
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{4096, 4096, 1024, 1024, 1024, 512, 512}));
  EXPECT_NE(buffers[5], buffers[6]);  // two threads never write into one
  EXPECT_EQ(pool.out(), 5U);
  EXPECT_EQ(pool.bytes(), 2 * 4096U + 3 * 1024U);
  for (std::uint8_t* buffer : buffers) pool.give_back(buffer);
  EXPECT_EQ(pool.out(), 0U);
}

TEST(BufferPool, WhatComesBackIsZeroedAndUsedAgain) {
  BufferPool pool({.large_bytes = 4096, .large_count = 1, .small_bytes = 64, .small_count = 1});
  std::size_t size = 0;
  std::uint8_t* const first = pool.take(size);
  std::memset(first, 0xAB, size);
  pool.give_back(first);
  std::uint8_t* const again = pool.take(size);
  EXPECT_EQ(again, first);
  EXPECT_TRUE(std::all_of(again, again + size, [](std::uint8_t byte) { return byte == 0; }));
  pool.give_back(again);
}

TEST(BufferPool, PreparesWithinItsLimitAndFreesWhatIsNotOut) {
  BufferPool pool(kSmall);
  pool.prepare(10);
  EXPECT_EQ(pool.bytes(), 2 * 4096U);
  std::size_t size = 0;
  std::uint8_t* const out = pool.take(size);
  pool.trim();
  EXPECT_EQ(pool.bytes(), 4096U);
  pool.give_back(out);
}

TEST(BufferPool, ByDefaultHoldsNoMoreThan64MiB) {
  const PoolLimits limits;
  EXPECT_EQ(limits.large_bytes * limits.large_count + limits.small_bytes * limits.small_count,
            std::size_t{64} << 20U);
}

}  // namespace
}  // namespace bubblesim::capture
