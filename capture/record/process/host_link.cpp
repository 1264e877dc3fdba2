#include "capture/record/process/host_link.hpp"

#include <atomic>
#include <cstdint>

#include "capture/record/host/host_event.hpp"
#include "capture/record/process/session_clock.hpp"

namespace bubblesim::capture {
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
  // No call into CUPTI: a thread that asks may be inside it, or inside a lock of the job.
  return TraceTime{Duration{realtime_ns() + clock_offset.load(std::memory_order_relaxed)}};
}

void emit_host_event(HostEvent&& event) noexcept {
  if (!recording.load(std::memory_order_acquire)) return;
  if (HostEventQueue* made = queue.load(std::memory_order_acquire)) made->push(std::move(event));
}

}  // namespace bubblesim::capture
