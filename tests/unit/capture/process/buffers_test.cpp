// Memory for CUPTI: bounded, zeroed, never refused.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "capture/record/host/host_event.hpp"
#include "capture/record/process/buffer_exchange.hpp"
#include "capture/record/process/output_file.hpp"
#include "tests/fault.hpp"
#include "tests/temp_folder.hpp"

namespace bubblesim::capture {
namespace {

constexpr BufferLimits kTiny{.large_bytes = 256, .large_count = 1, .small_bytes = 128,
                             .small_count = 1, .discard_bytes = 64};

TEST(BufferExchange, HandsOutLargeThenSmallThenWhatIsDiscarded) {
  BufferExchange exchange({.large_bytes = 4096, .large_count = 2, .small_bytes = 1024,
                           .small_count = 3, .discard_bytes = 512});
  exchange.open(nullptr);
  EXPECT_EQ(exchange.bytes(), 2 * 4096U);  // ready beforehand
  std::vector<std::size_t> sizes;
  std::vector<std::uint8_t*> buffers;
  for (int i = 0; i < 7; ++i) {
    std::size_t size = 0;
    buffers.push_back(exchange.buffer_wanted(size));
    sizes.push_back(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffers.back()) % 64, 0U);
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{4096, 4096, 1024, 1024, 1024, 512, 512}));
  EXPECT_NE(buffers[5], buffers[6]);  // two threads never write into one
  EXPECT_EQ(exchange.bytes(), 2 * 4096U + 3 * 1024U);
  for (std::size_t i = 1; i < buffers.size(); ++i) exchange.recycle(buffers[i]);
  exchange.close();
  EXPECT_EQ(exchange.bytes(), 4096U);  // what CUPTI still has
  exchange.recycle(buffers[0]);
}

TEST(BufferExchange, WhatComesBackIsZeroedAndUsedAgain) {
  BufferExchange exchange(kTiny);
  exchange.open(nullptr);
  std::size_t size = 0;
  std::uint8_t* const first = exchange.buffer_wanted(size);
  std::memset(first, 0xAB, size);
  exchange.recycle(first);
  std::uint8_t* const again = exchange.buffer_wanted(size);
  EXPECT_EQ(again, first);
  EXPECT_TRUE(std::all_of(again, again + size, [](std::uint8_t byte) { return byte == 0; }));
  exchange.recycle(again);
}

TEST(BufferExchange, ByDefaultHoldsNoMoreThan64MiB) {
  const BufferLimits limits;
  EXPECT_EQ(limits.large_bytes * limits.large_count + limits.small_bytes * limits.small_count,
            std::size_t{64} << 20U);
}

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
  EXPECT_EQ(exchange.bytes(), 0U);
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
  EXPECT_EQ(size, kTiny.discard_bytes);
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
  EXPECT_EQ(size, kTiny.discard_bytes);
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
    EXPECT_LE(exchange.bytes(), 8 * 1024U);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(written + exchange.take_losses().discarded, std::uint64_t{kThreads} * kEach);
  exchange.close();
}

// The queue between threads of the job and the writer.
MarkEvent mark(std::uint64_t thread, std::int64_t number) {
  return {TraceTime{Duration{number}}, thread, "m"};
}

TEST(BoundedQueue, GivesBackInOrderAndRefusesWhenFull) {
  BoundedQueue<int> queue(3);  // rounded up to 4
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(queue.push(int{i}));
  EXPECT_FALSE(queue.push(99));
  EXPECT_EQ(queue.size(), 4U);
  int item = -1;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(queue.pop(item));
    EXPECT_EQ(item, i);
  }
  EXPECT_FALSE(queue.pop(item));
}

TEST(BoundedQueue, GoesRoundManyTimes) {
  BoundedQueue<int> queue(2);
  int item = -1;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(queue.push(int{i}));
    ASSERT_TRUE(queue.pop(item));
    EXPECT_EQ(item, i);
  }
}

TEST(HostEventQueue, WhatFindsNoRoomIsCountedOnce) {
  HostEventQueue queue(4);
  for (int i = 0; i < 10; ++i) queue.push(mark(1, i));
  EXPECT_EQ(queue.take_dropped(), 6U);
  EXPECT_EQ(queue.take_dropped(), 0U);
}

TEST(HostEventQueue, NothingIsLostOrDoubledAmongManyProducers) {
  constexpr std::uint64_t kThreads = 8;
  constexpr std::int64_t kEach = 2000;
  HostEventQueue queue(256);
  std::atomic<std::uint64_t> running{kThreads};
  std::vector<std::thread> producers;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    producers.emplace_back([&, t] {
      for (std::int64_t i = 0; i < kEach; ++i) queue.push(mark(t, i));
      running.fetch_sub(1);
    });
  }
  std::vector<std::int64_t> last(kThreads, -1);
  std::uint64_t seen = 0;
  for (HostEvent event; running.load() > 0 || queue.size() > 0;) {
    if (!queue.pop(event)) continue;
    const auto& got = std::get<MarkEvent>(event);
    EXPECT_GT(to_ns(got.at), last[got.thread]);  // a thread's own events stay in order
    last[got.thread] = to_ns(got.at);
    ++seen;
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(seen + queue.take_dropped(), kThreads * static_cast<std::uint64_t>(kEach));
}

TEST(HostEventQueue, LongNamesAreCutAtACharacter) {
  HostEventQueue queue(4);
  std::string name(kMaxEventText - 1, 'x');
  name += "\xc3\xa4 and more";  // the two bytes of the umlaut straddle the limit
  queue.push(MarkEvent{{}, 1, name});
  HostEvent event;
  ASSERT_TRUE(queue.pop(event));
  EXPECT_EQ(std::get<MarkEvent>(event).name, std::string(kMaxEventText - 1, 'x'));
  EXPECT_EQ(queue.take_cut(), 1U);
}

TEST(HostEventQueue, TooManyPeersAreNone) {
  HostEventQueue queue(4);
  CollectiveEvent collective;
  collective.peers.resize(kMaxEventPeers + 1);
  queue.push(std::move(collective));
  HostEvent event;
  ASSERT_TRUE(queue.pop(event));
  EXPECT_TRUE(std::get<CollectiveEvent>(event).peers.empty());
  EXPECT_EQ(queue.take_cut(), 1U);
}

TEST(HostThread, IsTheSystemsNumberAndDiffersByThread) {
  const std::uint64_t here = host_thread_id();
  EXPECT_EQ(host_thread_id(), here);
  std::uint64_t there = here;
  std::thread([&there] { there = host_thread_id(); }).join();
  EXPECT_NE(there, here);
}

// Names of recordings; no file that is there is ever touched.
class OutputFiles : public ::testing::Test {
 protected:
  [[nodiscard]] std::string in(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] bool there(const std::string& name) const {
    return std::filesystem::exists(folder_ / name);
  }
  const TempFolder temp_;
  const std::filesystem::path folder_{temp_.path()};
};

TEST_F(OutputFiles, GrowUnderOneNameAndEndUnderAnother) {
  auto file = must(RecordingFile::claim(folder_.string(), 3, 77, Readers::kOwner));
  EXPECT_EQ(file.path(), in("rank3.recording.btr"));
  ASSERT_TRUE(file.complete());
  EXPECT_EQ(file.path(), in("rank3.btr"));
  EXPECT_FALSE(there("rank3.recording.btr"));
}

TEST_F(OutputFiles, AFolderIsMadeAndAFilesNameIsKept) {
  EXPECT_TRUE(RecordingFile::claim(in("a/b"), 0, 77, Readers::kOwner));
  EXPECT_TRUE(there("a/b/rank0.recording.btr"));
  auto file = must(RecordingFile::claim(in("c/mine.btr"), 5, 77, Readers::kOwner));
  ASSERT_TRUE(file.complete());
  EXPECT_EQ(file.path(), in("c/mine.btr"));
}

TEST_F(OutputFiles, WhatIsThereAlreadyIsLeftAlone) {
  std::ofstream(in("rank0.recording.btr")) << "of a job that was killed";
  std::ofstream(in("rank0.btr")) << "of a job before";
  auto file = must(RecordingFile::claim(folder_.string(), 0, 77, Readers::kOwner));
  EXPECT_EQ(file.path(), in("rank0.pid77.recording.btr"));
  auto second = must(RecordingFile::claim(folder_.string(), 0, 77, Readers::kOwner));
  EXPECT_EQ(second.path(), in("rank0.pid77.2.recording.btr"));
  ASSERT_TRUE(file.complete());
  EXPECT_EQ(file.path(), in("rank0.pid77.btr"));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "rank0.btr"), 15U);
}

TEST_F(OutputFiles, OnlyTheOwnerReadsThemUnlessAllMay) {
  using std::filesystem::perms;
  const mode_t before = ::umask(022);
  const auto own = RecordingFile::claim(in("own"), 0, 77, Readers::kOwner);
  const auto shown = RecordingFile::claim(in("shown"), 0, 77, Readers::kAll);
  ::umask(before);
  ASSERT_TRUE(own && shown);
  EXPECT_EQ(std::filesystem::status(own->path()).permissions(), perms{0600});
  EXPECT_EQ(std::filesystem::status(shown->path()).permissions(), perms{0644});
}

TEST_F(OutputFiles, OfNothingRecordedNothingIsLeft) {
  auto file = must(RecordingFile::claim(folder_.string(), 0, 77, Readers::kOwner));
  file.discard();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(OutputFiles, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(in("file")) << "no folder";
  const auto file = error_of(RecordingFile::claim(in("file/below"), 0, 77, Readers::kOwner));
  EXPECT_NE(file.text().find(in("file/below")), std::string::npos);
}

}  // namespace
}  // namespace bubblesim::capture
