#include "tests/fakes/driver/fake_driver_state.hpp"

#include <algorithm>

namespace fake_driver {

State& state() {
  static State all;
  return all;
}
std::mutex& mutex() {
  static std::mutex one;
  return one;
}

abi::Status enter(State& all, const char* name) {
  ++all.calls[name];
  const auto found = all.failures.find(name);
  if (found == all.failures.end() || found->second.second-- > 0) return abi::Status::kSuccess;
  const abi::Status status = found->second.first;
  all.failures.erase(found);
  return status;
}

FakeStream& stream_of(State& all, abi::StreamHandle handle) {
  const auto found = all.streams.find(handle);
  return found == all.streams.end() ? all.default_stream : *found->second;
}

std::int64_t run_at(State& all, const Work& work, std::int64_t start) {
  const std::int64_t end = start + work.duration();
  Execution shown = work.shown;
  shown.start_ns = start;
  shown.end_ns = end;
  all.executions.push_back(shown);
  if (work.at_start)
    all.due.emplace(start, [&all, work, start] {
      work.at_start(static_cast<std::uint64_t>(start + all.offset));
    });
  all.due.emplace(end, [&all, work, end] {
    const bool stuck = all.hung || all.broken != abi::Status::kSuccess;
    if (work.at_end && !stuck) work.at_end(static_cast<std::uint64_t>(end + all.offset));
  });
  return end + work.gap;
}

void put(State& all, FakeStream& stream, Work work) {
  work.shown.stream = stream.number;
  if (stream.capture != nullptr) {
    stream.capture->nodes.push_back({std::move(work), stream.after});
    stream.after = {stream.capture->nodes.size() - 1};
    return;
  }
  stream.ready = run_at(all, work, std::max(stream.ready, all.now + kLaunchNs));
}

void reset() {
  const std::lock_guard lock(mutex());
  state() = {};
}

void advance_to(std::int64_t host_ns) {
  const std::lock_guard lock(mutex());
  State& all = state();
  all.now = std::max(all.now, host_ns);
  while (!all.due.empty() && all.due.begin()->first <= all.now) {
    const auto next = all.due.begin()->second;
    all.due.erase(all.due.begin());
    next();
  }
}

namespace {

struct Locked {
  std::lock_guard<std::mutex> lock{mutex()};
  State* operator->() { return &state(); }
};

}  // namespace

void set_clock_offset(std::int64_t ns) { Locked{}->offset = ns; }
void fail_call(const std::string& name, abi::Status status, int after) {
  Locked{}->failures[name] = {status, after};
}
void break_device(abi::Status status) { Locked{}->broken = status; }
void hang_device() { Locked{}->hung = true; }
void lose_records() { Locked{}->loses_records = true; }
void set_quantum(std::int64_t ns) { Locked{}->quantum = ns; }
void set_green_contexts_broken(bool broken) { Locked{}->green_broken = broken; }
std::vector<Execution> executions() { return Locked{}->executions; }
std::vector<Stream> streams() { return Locked{}->shown_streams; }
std::uint64_t calls(const std::string& name) { return Locked{}->calls[name]; }
std::uint64_t device_bytes_held() { return Locked{}->bytes_held(); }
std::uint64_t things_held() {
  const std::lock_guard lock(mutex());
  const State& all = state();
  return all.streams.size() + all.events.size() + all.graphs.size() + all.execs.size() +
         all.greens.size() + all.memory.size() + all.host_memory.size() +
         static_cast<std::uint64_t>(all.retained) + static_cast<std::uint64_t>(all.libraries);
}

}  // namespace fake_driver
