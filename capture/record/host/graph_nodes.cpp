// Collectives that are captured into graphs, until their kernels' nodes are known. Threads of the
// job call this: no lock, no exception.
#include <array>
#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "capture/record/host/host_event.hpp"
#include "sim/base/hash.hpp"

namespace bubblesim::capture {
namespace {

constexpr std::size_t kMostAwaiting = 4096;
constexpr std::size_t kSlots = std::size_t{1} << 16U;
constexpr std::size_t kProbes = 64;

/// Numbers of the nodes that have a collective, for the process's life: copies of a graph's
/// thousands of other nodes need not be reported.
std::array<std::atomic<std::uint64_t>, kSlots> nodes;

/// The slot that holds the node, or the first free one where it would be; null: neither.
std::atomic<std::uint64_t>* slot_of(std::uint64_t node) noexcept {
  for (std::size_t i = 0; i < kProbes; ++i) {
    auto& slot = nodes[(splitmix64(node) + i) % kSlots];
    const std::uint64_t held = slot.load(std::memory_order_acquire);
    if (held == node || held == 0) return &slot;
  }
  return nullptr;
}

bool remember(std::uint64_t node) noexcept {
  for (auto* slot = slot_of(node); slot != nullptr; slot = slot_of(node)) {
    std::uint64_t held = 0;
    if (slot->compare_exchange_strong(held, node) || held == node) return true;
  }
  return false;
}

std::vector<CollectiveEvent>& awaiting() noexcept {
  static thread_local std::vector<CollectiveEvent> events;
  return events;
}

bool of_one_communicator(const CollectiveEvent& a, const CollectiveEvent& b) noexcept {
  return a.group == b.group && a.place == b.place;
}

}  // namespace

void await_graph_node(CollectiveEvent&& event) noexcept {
  try {
    if (awaiting().size() < kMostAwaiting) awaiting().push_back(std::move(event));
  } catch (...) {
    return;  // no memory: the collective is known by its kernel's name alone
  }
}

void tell_graph_node(std::uint64_t node, std::uint64_t copy_of) noexcept {
  if (copy_of != 0) {
    const auto* slot = slot_of(copy_of);
    if (slot == nullptr || slot->load() != copy_of) return;
    if (remember(node)) emit_host_event(NodeCopyEvent{node, copy_of});
    return;
  }
  auto& events = awaiting();
  if (events.empty() || !remember(node)) return;
  const CollectiveEvent first = events.front();
  std::erase_if(events, [&](CollectiveEvent& event) {
    if (!of_one_communicator(event, first)) return false;
    event.graph_node = node;
    emit_host_event(CollectiveEvent(event));
    return true;
  });
}

}  // namespace bubblesim::capture
