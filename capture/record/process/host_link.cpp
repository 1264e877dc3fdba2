#include "capture/record/process/host_link.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <limits>
#include <string>
#include <variant>

#include "capture/record/host/host_event.hpp"
#include "capture/record/process/counters.hpp"
#include "traces/names/collective_names.hpp"

namespace bubblesim::capture {
namespace {

constexpr int kReadings = 5;

std::int64_t read(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::int64_t cupti_now(const CuptiApi& api) noexcept {
  std::uint64_t now = 0;
  const bool good =
      api.get_timestamp != nullptr && api.get_timestamp(&now) == cupti::Result::kSuccess;
  return good ? static_cast<std::int64_t>(now) : read(CLOCK_REALTIME);
}

}  // namespace

std::int64_t realtime_ns() noexcept { return read(CLOCK_REALTIME); }
std::int64_t monotonic_ns() noexcept { return read(CLOCK_MONOTONIC); }

ClockReading read_clocks(const CuptiApi& api) noexcept {
  ClockReading best;
  std::int64_t tightest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kReadings; ++i) {
    const std::int64_t before = read(CLOCK_REALTIME);
    const std::int64_t cupti = cupti_now(api);
    const std::int64_t monotonic = read(CLOCK_MONOTONIC);
    const std::int64_t after = read(CLOCK_REALTIME);
    // A step of the clock in between gives a negative span: the reading is not used.
    if (after < before || after - before >= tightest) continue;
    tightest = after - before;
    const std::int64_t middle = before + (after - before) / 2;
    best.pair = {TraceTime{Duration{cupti}}, middle, monotonic};
    best.offset = Duration{cupti >= before && cupti <= after ? 0 : cupti - middle};
  }
  return best;
}

namespace {

/// 16384 events of some 150 bytes. The writer looks twenty times a second.
constexpr std::size_t kQueueLength = 16384;

std::atomic<bool> recording{false};
std::atomic<HostEventQueue*> queue{nullptr};
std::atomic<std::int64_t> clock_offset{0};

}  // namespace

HostEventQueue& host_queue() {
  if (HostEventQueue* made = queue.load(std::memory_order_acquire)) return *made;
  auto* fresh = new HostEventQueue(kQueueLength);
  HostEventQueue* expected = nullptr;
  if (queue.compare_exchange_strong(expected, fresh)) return *fresh;
  delete fresh;
  return *expected;
}

void open_host_link(Duration offset) noexcept {
  adjust_host_link(offset);
  recording.store(true, std::memory_order_release);
}

void adjust_host_link(Duration offset) noexcept {
  clock_offset.store(to_ns(offset), std::memory_order_relaxed);
}

void close_host_link() noexcept { recording.store(false, std::memory_order_release); }

bool host_recording() noexcept { return recording.load(std::memory_order_relaxed); }

TraceTime host_now() noexcept {
  // Does not call CUPTI: the thread may be inside CUPTI, or hold a lock of the job.
  return TraceTime{Duration{realtime_ns() + clock_offset.load(std::memory_order_relaxed)}};
}

void emit_host_event(HostEvent&& event) noexcept {
  if (!recording.load(std::memory_order_acquire)) return;
  if (HostEventQueue* made = queue.load(std::memory_order_acquire)) made->push(std::move(event));
}

namespace {

/// The job's name for the thread; empty if the thread has ended already.
std::string name_of_thread(std::uint64_t system_id) {
  std::ifstream file("/proc/self/task/" + std::to_string(system_id) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

}  // namespace

ThreadId HostRecords::thread(std::uint64_t system_id) {
  const ThreadId id = tables_.thread(system_id);
  if (threads_.try_emplace(system_id).second) tables_.name_thread(id, name_of_thread(system_id));
  return id;
}

void HostRecords::begin_at(TraceTime since) {
  since_ = since;
  iterations_ = 0;
  for (auto& [thread, count] : threads_) count = 0;
}

void HostRecords::add(const HostEvent& event, RecordedBatch& batch) {
  std::visit([&](const auto& held) { add(held, batch); }, event);
}

void HostRecords::add(const RangeEvent& event, RecordedBatch& batch) {
  if (event.start < since_) {
    counters_.add(kRangesBegunBefore);
    return;
  }
  const traces::MarkerClass what = traces::classify_marker(event.name);
  const std::string full = event.domain.empty() ? event.name : event.domain + ": " + event.name;
  // The name tells what a range marks; other ranges' names belong to the job.
  const bool own = what.kind == traces::MarkerKind::kUser;
  batch.markers.push_back({event.start, event.duration,
                           own ? tables_.hidden_name(full) : tables_.name(full),
                           thread(event.thread), what.kind, what.number});
  if (what.kind != traces::MarkerKind::kIteration || event.duration == Duration{}) return;
  iterations_ = std::max(iterations_, ++threads_[event.thread]);
}

void HostRecords::add(const NodeCopyEvent& event, RecordedBatch&) {
  tables_.copy_node(event.node, event.copy_of);
}

void HostRecords::add(const CollectiveEvent& event, RecordedBatch& batch) {
  traces::Collective record{event.kind, event.bytes, tables_.name(event.group),
                            event.group_size, event.peers, event.sequence,
                            event.sequence_recorded, event.place};
  if (event.graph_node != 0) return tables_.announce(event.graph_node, record);
  const auto index = static_cast<std::uint32_t>(batch.collectives.size());
  batch.collectives.push_back(std::move(record));
  batch.notes.push_back(
      {event.start, event.duration, thread(event.thread), event.source, index});
}

void HostRecords::add(const MarkEvent& event, RecordedBatch& batch) {
  const traces::MarkerClass what = traces::classify_marker(event.name);
  batch.markers.push_back(
      {event.at, Duration{}, tables_.name(event.name), thread(event.thread), what.kind,
       what.number});
}

}  // namespace bubblesim::capture
