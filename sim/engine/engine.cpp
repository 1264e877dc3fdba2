#include "sim/engine/engine.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace bubblesim::engine {

EntityId Engine::add_entity(EventHandler& handler, Phase phase) {
  entities_.push_back({&handler, phase});
  return queue_.add();
}

void Engine::schedule(EntityId entity, SimTime at) {
  BUBBLESIM_CHECK(at >= now_, "event scheduled in the past");
  queue_.set(entity, {at, entities_[entity.index()].phase, next_sequence_++});
}

void Engine::cancel(EntityId entity) { queue_.clear(entity); }

std::optional<SimTime> Engine::due(EntityId entity) const {
  if (!queue_.pending(entity)) return std::nullopt;
  return queue_.key(entity).time;
}

std::optional<SimTime> Engine::next_due() const {
  const std::optional<EntityId> next = queue_.first();
  if (!next) return std::nullopt;
  return queue_.key(*next).time;
}

void Engine::run_until(SimTime limit) {
  stopped_ = false;
  while (!stopped_) {
    const std::optional<EntityId> next = queue_.first();
    if (!next) return;
    if (queue_.key(*next).time > limit) {
      now_ = std::max(now_, limit);
      return;
    }
    now_ = queue_.key(*next).time;
    queue_.clear(*next);
    ++events_;
    entities_[next->index()].handler->on_event(now_);
  }
}

}  // namespace bubblesim::engine
