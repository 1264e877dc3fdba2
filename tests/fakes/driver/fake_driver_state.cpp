#include "tests/fakes/driver/fake_driver_state.hpp"

#include <algorithm>

namespace fake_driver {

State& state() {
  static State all;
  return all;
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
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.now = all.offset = 0;
  all.quantum = 1;
  all.broken = abi::Status::kSuccess;
  all.hung = all.loses_records = all.green_broken = false;
  all.failures.clear();
  all.calls.clear();
  all.due.clear();
  all.executions.clear();
  all.shown_streams.clear();
  all.streams.clear();
  all.default_stream = {};
  all.events.clear();
  all.graphs.clear();
  all.execs.clear();
  all.greens.clear();
  all.descs.clear();
  all.kernels.clear();
  all.memory.clear();
  all.host_memory.clear();
  all.retained = all.libraries = 0;
}

void advance_to(std::int64_t host_ns) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.now = std::max(all.now, host_ns);
  while (!all.due.empty() && all.due.begin()->first <= all.now) {
    const auto next = all.due.begin()->second;
    all.due.erase(all.due.begin());
    next();
  }
}

void set_clock_offset(std::int64_t ns) {
  const std::lock_guard lock(state().mutex);
  state().offset = ns;
}
void fail_call(const std::string& name, abi::Status status, int after) {
  const std::lock_guard lock(state().mutex);
  state().failures[name] = {status, after};
}
void break_device(abi::Status status) {
  const std::lock_guard lock(state().mutex);
  state().broken = status;
}
void hang_device() {
  const std::lock_guard lock(state().mutex);
  state().hung = true;
}
void lose_records() {
  const std::lock_guard lock(state().mutex);
  state().loses_records = true;
}
void set_quantum(std::int64_t ns) {
  const std::lock_guard lock(state().mutex);
  state().quantum = ns;
}
void set_green_contexts_broken(bool broken) {
  const std::lock_guard lock(state().mutex);
  state().green_broken = broken;
}
std::vector<Execution> executions() {
  const std::lock_guard lock(state().mutex);
  return state().executions;
}
std::vector<Stream> streams() {
  const std::lock_guard lock(state().mutex);
  return state().shown_streams;
}
std::uint64_t calls(const std::string& name) {
  const std::lock_guard lock(state().mutex);
  return state().calls[name];
}
std::uint64_t device_bytes_held() {
  const std::lock_guard lock(state().mutex);
  std::uint64_t bytes = 0;
  for (const auto& [address, held] : state().memory) bytes += held.first;
  return bytes;
}
std::uint64_t things_held() {
  const State& all = state();
  const std::lock_guard lock(state().mutex);
  return all.streams.size() + all.events.size() + all.graphs.size() + all.execs.size() +
         all.greens.size() + all.memory.size() + all.host_memory.size() +
         static_cast<std::uint64_t>(all.retained) + static_cast<std::uint64_t>(all.libraries);
}

}  // namespace fake_driver
