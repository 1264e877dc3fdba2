// The event loop. Each entity (a GPU's next completion, a thread's next call) has at most one
// pending event, whose key changes in place: moving a completion when sharing changes costs one
// walk of a tree, where a heap would need a search (figures: tests/bench/README.md).
//
// Single-threaded; nothing here allocates once the entities are added.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/time.hpp"
#include "sim/engine/event_key.hpp"
#include "sim/engine/event_queue.hpp"

namespace bubblesim::engine {

/// Something that has at most one pending event.
class EventHandler {
 public:
  virtual ~EventHandler() = default;
  /// Called once when the entity's key is the smallest; the key is already removed. May schedule or
  /// cancel any entity, never at a time before `now`.
  virtual void on_event(SimTime now) = 0;
};

class Conductor;

/// Runs events in the order of EventKey: alone, or as one of a Conductor's domains.
class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Registers an entity; `handler` must outlive the engine's last run. Must not be called during a
  /// run.
  EntityId add_entity(EventHandler& handler, Phase phase);

  /// Sets or moves the entity's only event. `at` must not lie before now(). O(log entities).
  void schedule(EntityId entity, SimTime at);
  /// Removes the entity's event, if it has one.
  void cancel(EntityId entity);
  /// Whether no other entity has its phase: the order of scheduling then does not matter.
  [[nodiscard]] bool is_only_of_phase(EntityId entity) const {
    return of_phase_[static_cast<std::size_t>(entities_[entity.index()].phase)] == 1;
  }
  /// When the entity's event is due; nothing if none is pending.
  [[nodiscard]] std::optional<SimTime> due(EntityId entity) const;

  /// When the next event is due; nothing if none is pending. Must not be called by an event.
  [[nodiscard]] std::optional<SimTime> next_due() const;

  /// The time of the present or last event; the limit after a run_until that left events for later.
  /// In a domain it is never earlier than the event that another domain runs now.
  [[nodiscard]] SimTime now() const { return std::max(now_, *floor_); }
  /// How many events have run.
  [[nodiscard]] std::uint64_t events() const { return events_; }

  /// Runs until nothing is pending, the next event lies after `limit`, or stop() was called.
  void run_until(SimTime limit = SimTime::max());
  /// Makes run_until return after the event that calls it.
  void stop();
  [[nodiscard]] bool stopped() const { return stopped_; }

  /// Whether no event of another domain may run at this moment, so that this one may call into it.
  /// Always true without a conductor.
  [[nodiscard]] bool in_order() const { return order_ == nullptr || order_->in_order; }

  /// The latest phase that the domain has entered in this instant, inside a window. Outside windows
  /// the domains run an instant phase by phase: none enters a phase while another has events of an
  /// earlier one.
  [[nodiscard]] Phase reached_phase() const { return reached_; }

 private:
  friend class Conductor;
  /// State that the domains of a conductor share.
  struct Order {
    SimTime clock = kSimStart;  ///< of the event that runs in order
    EventQueue firsts{Ties::kByEntity};  ///< each domain's next event, while they run in order
    bool in_order = true;       ///< false: in a window, where each domain runs on its own
    bool stopped = false;       ///< by an event outside windows
  };

  [[gnu::noinline]] void schedule_with_room(EntityId entity, SimTime at);
  void step(EntityId next);
  void run_at_once();
  [[nodiscard]] bool at_once_is_next() const;
  void queue_at_once();
  void run_before(SimTime until);
  void publish();
  [[nodiscard]] std::optional<EventKey> next_key() const;

  static constexpr EntityId kNobody{UINT32_MAX};

  struct Entity {
    EventHandler* handler;
    Phase phase;
  };

  std::vector<Entity> entities_;
  std::array<std::uint32_t, 6> of_phase_{};  ///< entities, by Phase
  EventQueue queue_;
  /// The entity whose event runs. Its key stays in the queue until its handler schedules another
  /// event, or has returned.
  EntityId running_ = kNobody;
  bool in_step_ = false;
  /// The entity for which the running event scheduled an event of the same instant. That event
  /// mostly runs next, so it is kept outside the queue; kNobody between steps.
  EntityId at_once_ = kNobody;
  EventQueue::Key at_once_key_ = 0;
  SimTime now_ = kSimStart;
  std::uint64_t events_ = 0;
  bool stopped_ = false;
  bool tells_ = false;  ///< the conductor must hear at once of new events
  Phase reached_ = Phase::kCompletion;
  const SimTime* floor_ = &now_;
  Order* order_ = nullptr;  ///< null: no conductor
  EntityId domain_{};       ///< in `firsts`
};

// Runs the next event, which is this entity's, and the event that it scheduled at once.
inline void Engine::step(EntityId next) {
  now_ = queue_.first_time();
  running_ = next;
  in_step_ = true;
  struct Done {  // also when a handler throws
    Engine& engine;
    ~Done() {
      engine.in_step_ = false;
      if (engine.at_once_ != kNobody) engine.queue_at_once();
      if (engine.running_ != kNobody) engine.queue_.clear(engine.running_);
      engine.running_ = kNobody;
    }
  } const done{*this};
  ++events_;
  entities_[next.index()].handler->on_event(now_);
  if (at_once_ != kNobody) run_at_once();
}

}  // namespace bubblesim::engine
