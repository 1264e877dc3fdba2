#include "sim/engine/event_queue.hpp"

#include "sim/base/check.hpp"

namespace bubblesim::engine {
namespace {

constexpr EventKey kNoEvent{SimTime::max(), Phase::kObserve, UINT64_MAX};

}  // namespace

EntityId EventQueue::add() {
  const EntityId id{static_cast<std::uint32_t>(count_++)};
  if (count_ > capacity_) rebuild();
  return id;
}

void EventQueue::set(EntityId entity, const EventKey& key) {
  BUBBLESIM_DCHECK(entity.index() < count_, "no such entity");
  keys_[entity.index()] = key;
  replay(entity.index());
}

void EventQueue::clear(EntityId entity) {
  if (pending(entity)) set(entity, kNoEvent);
}

bool EventQueue::pending(EntityId entity) const {
  return keys_[entity.index()].time != SimTime::max();
}

const EventKey& EventQueue::key(EntityId entity) const { return keys_[entity.index()]; }

std::optional<EntityId> EventQueue::first() const {
  if (count_ == 0) return std::nullopt;
  const EntityId winner{capacity_ == 1 ? 0 : winners_[1]};
  if (!pending(winner)) return std::nullopt;
  return winner;
}

// Plays the matches on the path from a leaf to the root.
void EventQueue::replay(std::size_t leaf) {
  std::size_t node = (leaf + capacity_) / 2;
  if (node == 0) return;
  const std::size_t sibling = leaf ^ 1U;
  auto winner = static_cast<std::uint32_t>(keys_[sibling] < keys_[leaf] ? sibling : leaf);
  winners_[node] = winner;
  while (node > 1) {
    const std::uint32_t rival = winners_[node ^ 1U];
    if (keys_[rival] < keys_[winner]) winner = rival;
    node /= 2;
    winners_[node] = winner;
  }
}

// Doubles the leaves and plays every match again.
void EventQueue::rebuild() {
  capacity_ = capacity_ == 0 ? 2 : capacity_ * 2;
  keys_.resize(capacity_, kNoEvent);
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
