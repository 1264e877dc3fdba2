#include "capture/record/host/host_event.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/utf8.hpp"

namespace bubblesim::capture {
namespace {

bool cut(std::string& text) noexcept {
  const std::size_t kept = uncut_length(text, kMaxEventText);
  if (kept == text.size()) return false;
  text.resize(kept);
  return true;
}

bool cut(std::vector<std::uint32_t>& peers) noexcept {
  if (peers.size() <= kMaxEventPeers) return false;
  peers.clear();  // a part of a group would be read as a whole group
  return true;
}

bool bound(RangeEvent& event) noexcept { return cut(event.name) | cut(event.domain); }
bool bound(CollectiveEvent& event) noexcept { return cut(event.group) | cut(event.peers); }
bool bound(MarkEvent& event) noexcept { return cut(event.name); }
bool bound(NodeCopyEvent&) noexcept { return false; }
bool bound(StreamValueEvent&) noexcept { return false; }

std::atomic<std::uint32_t> generation{1};

struct Remembered {
  std::uint64_t thread = 0;
  std::uint32_t generation = 0;
};
thread_local Remembered remembered;

}  // namespace

void HostEventQueue::push(HostEvent&& event) noexcept {
  const bool was_cut = std::visit([](auto& held) noexcept { return bound(held); }, event);
  if (was_cut) cut_.fetch_add(1, std::memory_order_relaxed);
  if (!events_.push(std::move(event))) dropped_.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t host_thread_id() noexcept {
  const std::uint32_t now = generation.load(std::memory_order_relaxed);
  if (remembered.generation != now) {
    remembered = {static_cast<std::uint64_t>(::syscall(SYS_gettid)), now};
  }
  return remembered.thread;
}

void forget_host_threads() noexcept { generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace bubblesim::capture
