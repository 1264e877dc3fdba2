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
  queue_.set(entity, {at, entities_[entity.index()].phase, next_sequence_++});
  if (order_ != nullptr && order_->in_order && order_->running != this) publish();
}

void Engine::cancel(EntityId entity) {
  queue_.clear(entity);
  if (order_ != nullptr && order_->in_order && order_->running != this) publish();
}

void Engine::stop() {
  stopped_ = true;
  if (order_ != nullptr && order_->in_order) order_->stopped = true;
}

// Tells the conductor what comes next.
void Engine::publish() {
  const std::optional<EntityId> next = queue_.first();
  if (!next) return order_->firsts.clear(domain_);
  const EventKey key = queue_.key(*next);
  order_->firsts.set(domain_, {key.time, key.phase, domain_.value});
}

std::optional<SimTime> Engine::due(EntityId entity) const {
  if (!queue_.pending(entity)) return std::nullopt;
  return queue_.time(entity);
}

std::optional<SimTime> Engine::next_due() const {
  const std::optional<EntityId> next = queue_.first();
  if (!next) return std::nullopt;
  return queue_.time(*next);
}

// Runs the next event, which exists.
void Engine::step() {
  const EntityId next = *queue_.first();
  now_ = queue_.time(next);
  queue_.clear(next);
  ++events_;
  entities_[next.index()].handler->on_event(now_);
}

// Runs what is due before `until`.
void Engine::run_before(SimTime until) {
  while (!stopped_) {
    const std::optional<EntityId> next = queue_.first();
    if (!next || queue_.time(*next) >= until) return;
    step();
  }
}

void Engine::run_until(SimTime limit) {
  stopped_ = false;
  while (!stopped_) {
    const std::optional<EntityId> next = queue_.first();
    if (!next) return;
    if (queue_.time(*next) > limit) {
      now_ = std::max(now_, limit);
      return;
    }
    step();
  }
}

}  // namespace bubblesim::engine
