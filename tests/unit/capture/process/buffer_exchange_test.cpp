// Between CUPTI's callbacks and the writer, at every moment of a session.
#include "capture/record/process/buffer_exchange.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace bubblesim::capture {
namespace {

constexpr PoolLimits kTiny{.large_bytes = 256, .large_count = 1, .small_bytes = 128,
                           .small_count = 1, .discard_bytes = 64};

/// Records of 16 bytes.
cupti::Result next_of_16(std::uint8_t* buffer, std::size_t valid, void** record) {
  auto* next = *record == nullptr ? buffer : static_cast<std::uint8_t*>(*record) + 16;
  if (next + 16 > buffer + valid) return cupti::Result::kMaxLimitReached;
  *record = next;
  return cupti::Result::kSuccess;
}

TEST(BufferExchange, ABufferGoesOutAndComesBackToTheWriter) {
  BufferExchange exchange(kTiny);
  exchange.open(&next_of_16);
  std::size_t size = 0;
  std::uint8_t* const buffer = exchange.buffer_wanted(size);
  EXPECT_EQ(size, 256U);
  exchange.buffer_done(buffer, 96);
  BufferExchange::Done done;
  ASSERT_TRUE(exchange.next(done));
  EXPECT_EQ(done.buffer, buffer);
  EXPECT_EQ(done.valid, 96U);
  exchange.recycle(done.buffer);
  EXPECT_FALSE(exchange.next(done));
  exchange.close();
  EXPECT_EQ(exchange.pool().bytes(), 0U);
}

TEST(BufferExchange, RecordsOfBuffersBeyondTheLimitAreCounted) {
  BufferExchange exchange(kTiny);
  exchange.open(&next_of_16);
  std::size_t size = 0;
  std::vector<std::uint8_t*> buffers;
  for (int i = 0; i < 4; ++i) buffers.push_back(exchange.buffer_wanted(size));
  exchange.buffer_done(buffers[2], 48);  // 3 records
  exchange.buffer_done(buffers[3], 16);  // 1 record
  exchange.records_dropped(5);
  const auto losses = exchange.take_losses();
  EXPECT_EQ(losses.discarded, 4U);
  EXPECT_EQ(losses.dropped, 5U);
  exchange.buffer_done(buffers[0], 0);
  exchange.buffer_done(buffers[1], 0);
  for (BufferExchange::Done done; exchange.next(done);) exchange.recycle(done.buffer);
  exchange.close();
}

TEST(BufferExchange, WithoutASessionABufferIsGivenThatNobodyKeeps) {
  BufferExchange exchange(kTiny);
  std::size_t size = 0;
  std::uint8_t* const buffer = exchange.buffer_wanted(size);
  ASSERT_NE(buffer, nullptr);
  EXPECT_TRUE(BufferPool::is_discard(buffer));
  exchange.buffer_done(buffer, 64);
  EXPECT_EQ(exchange.take_losses().discarded, 0U);
}

TEST(BufferExchange, ABufferThatComesAfterItsSessionIsCountedAndReused) {
  BufferExchange exchange(kTiny);
  exchange.open(&next_of_16);
  std::size_t size = 0;
  std::uint8_t* const buffer = exchange.buffer_wanted(size);
  exchange.close();
  exchange.buffer_done(buffer, 32);
  EXPECT_EQ(exchange.take_losses().late, 1U);
  exchange.open(&next_of_16);
  BufferExchange::Done done;
  EXPECT_FALSE(exchange.next(done));  // nothing of the session before gets into this one
  EXPECT_EQ(exchange.buffer_wanted(size), buffer);
  exchange.buffer_done(buffer, 0);
  exchange.close();
  while (exchange.next(done)) exchange.recycle(done.buffer);
}

TEST(BufferExchange, TheFirstWordOfABrokenSessionIsKept) {
  BufferExchange exchange(kTiny);
  exchange.open(nullptr);
  EXPECT_EQ(exchange.broken(), "");
  exchange.session_broken("first");
  exchange.session_broken("second");
  EXPECT_EQ(exchange.broken(), "first");
  exchange.open(nullptr);
  EXPECT_EQ(exchange.broken(), "");
  exchange.close();
}

TEST(BufferExchange, InAForkedChildBuffersComeAndGoWithoutAWriter) {
  BufferExchange exchange(kTiny);
  exchange.open(&next_of_16);
  std::size_t size = 0;
  std::uint8_t* const before = exchange.buffer_wanted(size);
  exchange.abandon();
  exchange.buffer_done(before, 16);
  std::uint8_t* const after = exchange.buffer_wanted(size);
  EXPECT_TRUE(BufferPool::is_discard(after));
  exchange.buffer_done(after, 16);
  exchange.context_ending();
  exchange.session_broken("gone");
  EXPECT_EQ(exchange.waiting(), 0U);
  exchange.recycle(before);
}

TEST(BufferExchange, ManyThreadsKeepWithinTheLimitAndLoseNothingUncounted) {
  constexpr int kThreads = 6, kEach = 500;
  BufferExchange exchange({.large_bytes = 1024, .large_count = 4, .small_bytes = 1024,
                           .small_count = 4, .discard_bytes = 1024});
  exchange.open(&next_of_16);
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        std::size_t size = 0;
        std::uint8_t* const buffer = exchange.buffer_wanted(size);
        buffer[0] = 1;
        exchange.buffer_done(buffer, 16);
      }
      running.fetch_sub(1);
    });
  }
  std::uint64_t written = 0;
  BufferExchange::Done done;
  while (running.load() > 0 || exchange.waiting() > 0) {
    exchange.wake().wait(std::chrono::milliseconds(1));
    for (; exchange.next(done); exchange.recycle(done.buffer)) ++written;
    EXPECT_LE(exchange.pool().bytes(), 8 * 1024U);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(written + exchange.take_losses().discarded, std::uint64_t{kThreads} * kEach);
  exchange.close();
}

}  // namespace
}  // namespace bubblesim::capture
