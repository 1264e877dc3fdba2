#include "capture/record/nvtx/thread_ranges.hpp"

#include <cstddef>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace bubblesim::capture {
namespace {

using namespace nvtx_abi;

constexpr std::size_t kDeepest = 256;
constexpr std::size_t kMostStacks = 64;     // domains in which one thread has open ranges
constexpr std::size_t kMostStarted = 4'096;

/// A domain's open ranges. Those above `kept` are only counted: pushed while nothing recorded,
/// or too deep.
struct Stack {
  Domain domain = nullptr;
  std::vector<std::optional<HostEvent>> kept;
  std::uint64_t not_kept = 0;
};

struct ThreadStacks {
  std::vector<Stack> stacks;
  std::size_t kept = 0;  ///< in all of them

  Stack* find(Domain domain) noexcept {
    for (Stack& stack : stacks) {
      if (stack.domain == domain) return &stack;
    }
    return nullptr;
  }
};

// A plain pointer costs nothing to read and outlives the thread's other data: libraries call NVTX
// from their destructors. After the owner's end the thread tracks nothing.
thread_local ThreadStacks* thread_stacks = nullptr;
thread_local bool thread_ends = false;

struct Owner {
  Owner() = default;
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() {
    thread_ends = true;
    thread_stacks = nullptr;
  }
  ThreadStacks stacks;
};

ThreadStacks* stacks_of_thread() {
  if (thread_stacks != nullptr || thread_ends) return thread_stacks;
  static thread_local Owner owner;
  thread_stacks = &owner.stacks;
  return thread_stacks;
}

/// The place for a domain's ranges: its own, or one that is empty.
Stack* stack_for(ThreadStacks& thread, Domain domain) {
  if (Stack* own = thread.find(domain)) return own;
  for (Stack& stack : thread.stacks) {
    if (!stack.kept.empty()) continue;
    stack.domain = domain;
    return &stack;
  }
  if (thread.stacks.size() == kMostStacks) return nullptr;
  thread.stacks.push_back(Stack{domain, {}, 0});
  return &thread.stacks.back();
}

struct Started {
  BoundedLock lock;
  std::unordered_map<RangeId, HostEvent> open;
  RangeId next = 0;
};
// Never destroyed: libraries call NVTX while the process ends.
Started& started() noexcept {
  alignas(Started) static std::byte place[sizeof(Started)];
  static auto& table = *new (place) Started;
  return table;
}

}  // namespace

bool tracks_ranges() noexcept {
  return host_recording() || (thread_stacks != nullptr && thread_stacks->kept > 0);
}

int push_range(NvtxCall&& call) {
  if (!host_recording()) {
    Stack* open = thread_stacks == nullptr ? nullptr : thread_stacks->find(call.domain);
    if (open != nullptr && !open->kept.empty()) ++open->not_kept;
    return kNotTracked;
  }
  ThreadStacks* thread = stacks_of_thread();
  Stack* stack = thread == nullptr ? nullptr : stack_for(*thread, call.domain);
  if (stack == nullptr) return kNotTracked;
  if (stack->not_kept > 0 || stack->kept.size() == kDeepest) {
    ++stack->not_kept;
    return kNotTracked;
  }
  // The place first: if there is no memory for the event, the stack is still balanced.
  stack->kept.emplace_back();
  ++thread->kept;
  stack->kept.back() = range_begins(std::move(call));
  return static_cast<int>(stack->kept.size()) - 1;
}

int pop_range(Domain domain) noexcept {
  Stack* stack = thread_stacks == nullptr ? nullptr : thread_stacks->find(domain);
  if (stack == nullptr || stack->kept.empty()) return kNotTracked;
  if (stack->not_kept > 0) {
    --stack->not_kept;
    return kNotTracked;
  }
  std::optional<HostEvent> event = std::move(stack->kept.back());
  stack->kept.pop_back();
  --thread_stacks->kept;
  if (event) range_ends(std::move(*event));
  return static_cast<int>(stack->kept.size());
}

RangeId start_range(NvtxCall&& call) {
  std::optional<HostEvent> event = range_begins(std::move(call));
  if (!event) return 0;
  Started& table = started();
  const BoundedLock::Held held(table.lock);
  if (!held || table.open.size() == kMostStarted) return 0;
  table.open.emplace(table.next + 1, std::move(*event));
  return ++table.next;
}

void end_range(RangeId id) noexcept {
  if (id == 0) return;
  std::optional<HostEvent> event;
  {
    Started& table = started();
    const BoundedLock::Held held(table.lock);
    if (!held) return;
    const auto place = table.open.find(id);
    if (place == table.open.end()) return;
    event = std::move(place->second);
    table.open.erase(place);
  }
  range_ends(std::move(*event));
}

}  // namespace bubblesim::capture
