// Entities of the engine that call a method of an object.
#pragma once

#include <algorithm>
#include <deque>
#include <ranges>
#include <utility>

#include "sim/base/time.hpp"
#include "sim/engine/engine.hpp"

namespace bubblesim::schedule {

template <class Owner>
class MethodTimer final : public engine::EventHandler {
 public:
  using Method = void (Owner::*)(SimTime);
  MethodTimer(engine::Engine& engine, Owner& owner, Method method,
              engine::Phase phase = engine::Phase::kPolicy)
      : entity(engine.add_entity(*this, phase)), owner_(owner), method_(method) {}
  void on_event(SimTime now) override { (owner_.*method_)(now); }
  const engine::EntityId entity;

 private:
  Owner& owner_;
  Method method_;
};

/// Items that wait, each until it is due; those of one instant in the order in which they came.
template <class Owner, class Item>
class WaitingItems final : public engine::EventHandler {
 public:
  using Method = void (Owner::*)(const Item&, SimTime);
  /// `method` is called with each item when it is due; it may add further ones.
  WaitingItems(engine::Engine& engine, Owner& owner, Method method)
      : engine_(engine), owner_(owner), method_(method),
        entity_(engine.add_entity(*this, engine::Phase::kPolicy)) {}

  void add(SimTime due, Item item) {
    const bool is_last = items_.empty() || items_.back().due <= due;  // the usual case
    const auto later =
        is_last ? items_.end() : std::ranges::upper_bound(items_, due, {}, &Waiting::due);
    if (later == items_.begin()) engine_.schedule(entity_, due);
    items_.insert(later, {due, std::move(item)});
  }
  /// When the last item is due; now, if none waits.
  [[nodiscard]] SimTime last_due() const {
    return items_.empty() ? engine_.now() : items_.back().due;
  }
  void on_event(SimTime now) override {
    while (!items_.empty() && items_.front().due <= now) {
      const Waiting next = std::move(items_.front());
      items_.pop_front();
      (owner_.*method_)(next.item, now);
    }
    if (!items_.empty()) engine_.schedule(entity_, items_.front().due);
  }

 private:
  struct Waiting {
    SimTime due{};
    Item item;
  };

  engine::Engine& engine_;
  Owner& owner_;
  Method method_;
  engine::EntityId entity_;
  std::deque<Waiting> items_;  ///< in order of due times
};

}  // namespace bubblesim::schedule
