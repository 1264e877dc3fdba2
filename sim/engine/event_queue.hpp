// A winner (tournament) tree over entities: one key an entity, changed in place.
//
// Leaves hold keys, inner nodes the index of the smaller child's winner. Setting or clearing a
// key walks from the leaf towards the root, no further than what changes; the smallest key is
// read in O(1). Ties cannot occur: EventKey's sequence is unique.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/engine/event_key.hpp"

namespace bubblesim::engine {

using EntityId = StrongId<struct EntityTag>;

/// The pending events of a fixed set of entities.
class EventQueue {
 public:
  /// Adds an entity with no event. O(entities) when the tree must grow.
  EntityId add();
  [[nodiscard]] std::size_t size() const { return count_; }

  /// Sets or replaces the entity's key.
  void set(EntityId entity, const EventKey& key);
  /// Removes the entity's key, if there is one.
  void clear(EntityId entity);
  [[nodiscard]] bool pending(EntityId entity) const {
    return keys_[entity.index()].time() != SimTime::max();
  }
  /// Precondition: pending(entity).
  [[nodiscard]] EventKey key(EntityId entity) const { return keys_[entity.index()].key(); }
  [[nodiscard]] SimTime time(EntityId entity) const { return keys_[entity.index()].time(); }

  /// The entity with the smallest key, or nothing.
  [[nodiscard]] std::optional<EntityId> first() const {
    if (count_ == 0 || !pending(EntityId{winners_[1]})) return std::nullopt;
    return EntityId{winners_[1]};
  }

 private:
  void replay(std::uint32_t leaf);
  void rebuild();

  std::size_t count_ = 0;
  std::size_t capacity_ = 0;             ///< leaves; a power of two
  std::vector<PackedKey> keys_;          ///< by leaf; no event: time is max()
  std::vector<std::uint32_t> winners_;   ///< inner nodes 1..capacity-1: leaf of the winner
};

}  // namespace bubblesim::engine
