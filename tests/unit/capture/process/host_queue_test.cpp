// The queue between threads of the job and the writer.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "capture/record/host/host_event.hpp"

namespace bubblesim::capture {
namespace {

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

}  // namespace
}  // namespace bubblesim::capture
