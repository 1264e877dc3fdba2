#include "sim/engine/engine.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace bubblesim::engine {

EntityId Engine::add_entity(EventHandler& handler, Phase phase) {
  entities_.push_back({&handler, phase});
  return queue_.add();
}

void Engine::schedule(EntityId entity, SimTime at) {
  BUBBLESIM_CHECK(at >= now(), "event scheduled in the past");
  queue_.set(entity, at, entities_[entity.index()].phase);
  if (entity == running_) running_ = kNobody;
  if (order_ != nullptr && order_->in_order && order_->running != this) publish();
}

void Engine::cancel(EntityId entity) {
  queue_.clear(entity);
  if (entity == running_) running_ = kNobody;
  if (order_ != nullptr && order_->in_order && order_->running != this) publish();
}

void Engine::stop() {
  stopped_ = true;
  if (order_ != nullptr && order_->in_order) order_->stopped = true;
}

// Of its next event, as the conductor orders domains.
std::optional<EventKey> Engine::next_key() const {
  const std::optional<EntityId> next = queue_.first();
  if (!next) return std::nullopt;
  return EventKey{queue_.first_time(), queue_.phase(*next), domain_.value};
}

// Tells the conductor what comes next.
void Engine::publish() {
  if (const std::optional<EventKey> next = next_key()) {
    order_->firsts.set(domain_, next->time, next->phase);
  } else {
    order_->firsts.clear(domain_);
  }
}

std::optional<SimTime> Engine::due(EntityId entity) const {
  if (entity == running_ || !queue_.pending(entity)) return std::nullopt;
  return queue_.time(entity);
}

std::optional<SimTime> Engine::next_due() const {
  BUBBLESIM_DCHECK(running_ == kNobody, "asked from inside an event");
  const std::optional<EntityId> next = queue_.first();
  if (!next) return std::nullopt;
  return queue_.first_time();
}

// Runs the next event, which is this entity's.
void Engine::step(EntityId next) {
  now_ = queue_.first_time();
  ++events_;
  running_ = next;
  struct Done {  // also when the handler throws
    Engine& engine;
    ~Done() {
      if (engine.running_ != kNobody) engine.queue_.clear(engine.running_);
      engine.running_ = kNobody;
    }
  } const done{*this};
  entities_[next.index()].handler->on_event(now_);
}

// Runs what is due before `until`.
void Engine::run_before(SimTime until) {
  while (!stopped_) {
    const std::optional<EntityId> next = queue_.first();
    if (!next || queue_.first_time() >= until) return;
    const Phase phase = entities_[next->index()].phase;
    reached_ = queue_.first_time() > now_ ? phase : std::max(reached_, phase);
    step(*next);
  }
}

void Engine::run_until(SimTime limit) {
  stopped_ = false;
  while (!stopped_) {
    const std::optional<EntityId> next = queue_.first();
    if (!next) return;
    if (queue_.first_time() > limit) {
      now_ = std::max(now_, limit);
      return;
    }
    step(*next);
  }
}

}  // namespace bubblesim::engine
