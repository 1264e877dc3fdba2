#include "sim/engine/event_queue.hpp"

#include "sim/base/check.hpp"

namespace bubblesim::engine {
namespace {

constexpr EventKey kNoEvent{SimTime::max(), Phase::kObserve, UINT64_MAX};
constexpr PackedKey kNone{kNoEvent};
// Trees with no more leaves are walked to the root: that is shorter than a branch that is often
// taken for the wrong one.
constexpr std::size_t kSmall = 32;

}  // namespace

EntityId EventQueue::add() {
  const EntityId id{static_cast<std::uint32_t>(count_++)};
  if (count_ > capacity_) rebuild();
  return id;
}

void EventQueue::set(EntityId entity, const EventKey& key) {
  BUBBLESIM_DCHECK(entity.index() < count_, "no such entity");
  keys_[entity.index()] = PackedKey{key};
  replay(entity.value);
}

void EventQueue::clear(EntityId entity) {
  if (pending(entity)) set(entity, kNoEvent);
}

// Plays the matches on the path from a leaf towards the root. In a large tree up to the first that
// the leaf neither won before nor wins now: above it, nothing has changed.
void EventQueue::replay(std::uint32_t leaf) {
  const std::uint32_t sibling = leaf ^ 1U;
  std::uint32_t winner = keys_[sibling] < keys_[leaf] ? sibling : leaf;
  if (capacity_ <= kSmall) {
    std::size_t node = (leaf + capacity_) / 2;
    winners_[node] = winner;
    while (node > 1) {
      const std::uint32_t rival = winners_[node ^ 1U];
      winner = keys_[rival] < keys_[winner] ? rival : winner;
      node /= 2;
      winners_[node] = winner;
    }
    return;
  }
  for (std::size_t node = (leaf + capacity_) / 2;; node /= 2) {
    if (winner != leaf && winners_[node] == winner) return;
    winners_[node] = winner;
    if (node == 1) return;
    const std::uint32_t rival = winners_[node ^ 1U];
    if (keys_[rival] < keys_[winner]) winner = rival;
  }
}

// Doubles the leaves and plays every match again.
void EventQueue::rebuild() {
  capacity_ = capacity_ == 0 ? 2 : capacity_ * 2;
  keys_.resize(capacity_, kNone);
  winners_.assign(capacity_, 0);
  for (std::size_t leaf = 0; leaf < capacity_; leaf += 2) {
    winners_[(leaf + capacity_) / 2] =
        static_cast<std::uint32_t>(keys_[leaf + 1] < keys_[leaf] ? leaf + 1 : leaf);
  }
  for (std::size_t node = capacity_ / 2 - 1; node >= 1; --node) {
    const std::uint32_t left = winners_[2 * node];
    const std::uint32_t right = winners_[2 * node + 1];
    winners_[node] = keys_[right] < keys_[left] ? right : left;
  }
}

}  // namespace bubblesim::engine
