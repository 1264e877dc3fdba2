// A winner (tournament) tree over entities: one key an entity, changed in place.
//
// A key is one number of 64 bits, so that a match is one comparison without a branch and a walk
// from a leaf to the root touches nothing but keys: from the highest bits on, time after a base,
// phase, a ticket drawn when the key was set, and the entity. Two fields can overflow: times too
// far after the base count as one late time until the base has followed, and all tickets are
// renumbered when they run out. Neither changes an order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/time.hpp"
#include "sim/engine/event_key.hpp"

namespace bubblesim::engine {

using EntityId = StrongId<struct EntityTag>;

/// The order of two entities with the same time and phase.
enum class Ties : std::uint8_t {
  kByScheduling,  ///< the key set first comes first
  kByEntity,      ///< the entity added first comes first
};

/// The pending events of a growing set of entities, ordered by time, phase, and `Ties`.
class EventQueue {
 public:
  /// Entities that one queue can have.
  static constexpr std::size_t kMostEntities = std::size_t{1} << 22U;

  explicit EventQueue(Ties ties = Ties::kByScheduling) : ties_(ties) {}

  /// Adds an entity with no event. O(entities) when the tree must grow. Throws std::length_error
  /// where there are kMostEntities.
  EntityId add();
  [[nodiscard]] std::size_t size() const { return late_times_.size(); }

  /// Sets or replaces the entity's key; SimTime::max() removes it. O(log entities).
  void set(EntityId entity, SimTime time, Phase phase) {
    BUBBLESIM_DCHECK(entity.index() < size(), "no such entity");
    if (!has_room(time)) make_room(time);
    put(entity, draw_key(entity, time, phase));
  }
  /// True if set() needs no make_room() for a key of this time. Callers may call make_room() out of
  /// line, to keep their common path short.
  [[nodiscard]] bool has_room(SimTime time) const {
    return time >= base_ && ticket_ != tickets_end_;
  }
  void make_room(SimTime time);

  /// set() in two steps: draw_key(), then put(), at once or later or never. Between the two, set()
  /// and add() must not make room. Precondition: has_room(time).
  using Key = std::uint64_t;
  [[nodiscard]] Key draw_key(EntityId entity, SimTime time, Phase phase) {
    const Key rest = Key{static_cast<std::uint8_t>(phase)} << phase_shift_ | ticket_ | entity.value;
    ticket_ += ticket_step_;
    return pack(entity, time, base_, rest);
  }
  void put(EntityId entity, Key key) { replay(entity, key); }
  /// Whether a drawn key comes before all present keys except that of `except`.
  [[nodiscard]] bool is_first(Key key, std::optional<EntityId> except) const {
    if (!except) return key < tree_[kRoot];
    for (std::size_t node = leaves_ + except->index(); node > kRoot; node /= 2) {
      if (tree_[node ^ 1U] < key) return false;
    }
    return true;
  }
  /// Removes the entity's key, if there is one.
  void clear(EntityId entity) {
    if (pending(entity)) replay(entity, kNone);
  }
  [[nodiscard]] bool pending(EntityId entity) const { return key(entity) != kNone; }
  /// SimTime::max() if nothing is pending.
  [[nodiscard]] SimTime time(EntityId entity) const { return time_of(entity, key(entity)); }
  /// Precondition: pending(entity).
  [[nodiscard]] Phase phase(EntityId entity) const {
    return Phase{static_cast<std::uint8_t>(key(entity) >> phase_shift_ & 7U)};
  }

  /// The entity with the smallest key, or nothing.
  [[nodiscard]] std::optional<EntityId> first() const {
    if (tree_[kRoot] >= late_) {
      if (tree_[kRoot] == kNone) return std::nullopt;
      follow();
    }
    return EntityId{static_cast<std::uint32_t>(tree_[kRoot] & (leaves_ - 1))};
  }
  /// The time of first(). Precondition: an event is pending.
  [[nodiscard]] SimTime first_time() const { return early_time(tree_[kRoot]); }
  /// True: nothing is due at `time` or before. False: call first(). Costs a comparison.
  [[nodiscard]] bool first_is_after(SimTime time) const {
    return time >= base_ && tree_[kRoot] >> time_shift_ > static_cast<Key>((time - base_).count());
  }

 private:
  static constexpr Key kNone = UINT64_MAX;
  static constexpr std::size_t kRoot = 1;

  [[nodiscard]] Key key(EntityId entity) const { return tree_[leaves_ + entity.index()]; }
  [[nodiscard]] SimTime early_time(Key key) const {
    return base_ + Duration{static_cast<std::int64_t>(key >> time_shift_)};
  }
  [[nodiscard]] Key ticket_of(Key key) const {
    return key & ((Key{1} << phase_shift_) - leaves_);
  }
  [[nodiscard]] SimTime time_of(EntityId entity, Key key) const {
    if (key < late_) return early_time(key);
    return key == kNone ? SimTime::max() : late_times_[entity.index()];
  }
  /// The key of a time with these lower bits.
  [[nodiscard]] Key pack(EntityId entity, SimTime time, SimTime base, Key rest) const {
    const auto after = static_cast<Key>((time - base).count());
    if (after < late_after_) [[likely]] return after << time_shift_ | rest;
    late_times_[entity.index()] = time;
    return time == SimTime::max() ? kNone : late_ | rest;
  }
  /// Plays the matches on the path from the entity's leaf to the root.
  void replay(EntityId entity, Key key) const {
    Key* const tree = tree_.data();
    for (std::size_t node = leaves_ + entity.index(); node > kRoot; node /= 2) {
      tree[node] = key;
      key = std::min(key, tree[node ^ 1U]);
    }
    tree[kRoot] = key;
  }
  void follow() const;
  void rebase(SimTime base) const;
  void draw_tickets_anew();
  void grow();
  void lay_out_keys();
  void play_all() const;

  Ties ties_;
  // mutable: a change of base keeps the pending events.
  mutable std::vector<Key> tree_{kNone, kNone};  ///< winners, the final one at 1; then leaves
  mutable std::vector<SimTime> late_times_;      ///< by entity, where the key does not hold it
  mutable SimTime base_ = kSimStart;             ///< no pending event is earlier
  std::size_t leaves_ = 1;  ///< a power of two
  Key late_ = kNone;        ///< the smallest key of late times
  Key late_after_ = kNone;      ///< nanoseconds after the base from which on times are late
  unsigned time_shift_ = 0;
  unsigned phase_shift_ = 0;
  // Tickets, placed as in keys.
  Key ticket_ = 0;       ///< the next one
  Key ticket_step_ = 0;  ///< between two tickets; kByEntity: 0, all keys have the same
  Key tickets_end_ = 1;
};

}  // namespace bubblesim::engine
