// The inside of the fake driver: its objects and its timeline. All of it behind one lock.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "tests/fakes/driver/fake_driver.hpp"

namespace fake_driver {

struct FakeGraph;

/// Something to run: how long, and what it does at its start and end (given the device's time).
struct Work {
  Execution shown;
  std::function<std::int64_t()> duration;
  std::function<void(std::uint64_t device_ns)> at_start;
  std::function<void(std::uint64_t device_ns)> at_end;
  std::int64_t gap = 0;  ///< from its end to the start of the stream's next work
};

struct FakeStream {
  std::uint32_t number = 0;
  std::int64_t ready = 0;
  FakeGraph* capture = nullptr;
  std::set<std::size_t> after;  ///< nodes that the stream's next node waits for
};
struct FakeEvent {
  std::int64_t when = 0;
  FakeGraph* capture = nullptr;
  std::set<std::size_t> after;
};
struct FakeNode {
  Work work;
  std::set<std::size_t> after;
};
struct FakeGraph {
  std::vector<FakeNode> nodes;
};
struct FakeExec {
  FakeGraph graph;
  std::int64_t ready = 0;
};
struct FakeGreen {
  std::uint32_t first_sm = 0;
  std::uint32_t sms = 0;
};

struct State {
  std::int64_t now = 0;
  std::int64_t offset = 0;
  std::int64_t quantum = 1;
  abi::Status broken = abi::Status::kSuccess;
  bool hung = false;
  bool loses_records = false;
  bool green_broken = false;
  std::map<std::string, std::pair<abi::Status, int>> failures;
  std::map<std::string, std::uint64_t> calls;
  std::multimap<std::int64_t, std::function<void()>> due;
  std::vector<Execution> executions;
  std::vector<Stream> shown_streams;
  std::map<void*, std::unique_ptr<FakeStream>> streams;
  FakeStream default_stream;
  std::map<void*, std::unique_ptr<FakeEvent>> events;
  std::map<void*, std::unique_ptr<FakeGraph>> graphs;
  std::map<void*, std::unique_ptr<FakeExec>> execs;
  std::map<void*, std::unique_ptr<FakeGreen>> greens;
  std::map<void*, FakeGreen> descs;
  std::map<void*, std::unique_ptr<std::string>> kernels;
  std::map<void*, std::size_t> most_shared;  ///< by kernel, where it was set
  std::map<abi::DevicePointer, std::pair<std::uint64_t, std::unique_ptr<char[]>>> memory;
  std::map<void*, std::unique_ptr<char[]>> host_memory;
  abi::DevicePointer next_address = 0x700000000000;
  int retained = 0;
  int libraries = 0;

  [[nodiscard]] std::uint64_t bytes_held() const {
    std::uint64_t bytes = 0;
    for (const auto& [address, held] : memory) bytes += held.first;
    return bytes;
  }
};
State& state();
std::mutex& mutex();

/// At the head of each call: counts it, and gives the failure that a test asked for.
[[nodiscard]] abi::Status enter(State& all, const char* name);
[[nodiscard]] FakeStream& stream_of(State& all, abi::StreamHandle handle);
/// On the stream's timeline, or into the graph that it is captured into.
void put(State& all, FakeStream& stream, Work work);
/// Runs the work at `start` or later; returns the time at which the stream's next work may start.
std::int64_t run_at(State& all, const Work& work, std::int64_t start);

}  // namespace fake_driver

#define FAKE_ENTER(name)                                              \
  const std::lock_guard lock(::fake_driver::mutex());                 \
  auto& all = ::fake_driver::state();                                 \
  if (const auto failed = ::fake_driver::enter(all, name);            \
      failed != ::fake_driver::abi::Status::kSuccess)                 \
  return failed

#define FAKE_CALL extern "C" FAKE_DRIVER_API ::fake_driver::abi::Status
