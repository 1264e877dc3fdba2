#include "sim/engine/engine.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::engine {

EntityId Engine::add_entity(EventHandler& handler, Phase phase) {
  entities_.push_back({&handler, phase});
  ++of_phase_[static_cast<std::size_t>(phase)];
  return queue_.add();
}

void Engine::schedule(EntityId entity, SimTime at) {
  BUBBLESIM_CHECK(at >= now(), "event scheduled in the past");
  if (!queue_.has_room(at)) [[unlikely]] return schedule_with_room(entity, at);
  const Phase phase = entities_[entity.index()].phase;
  if (at == now_ && in_step_ && at_once_ == kNobody && !queue_.pending(entity)) {
    at_once_ = entity;
    at_once_key_ = queue_.draw_key(entity, at, phase);
    return;
  }
  if (entity == at_once_) at_once_ = kNobody;
  queue_.put(entity, queue_.draw_key(entity, at, phase));
  if (entity == running_) running_ = kNobody;
  if (tells_) publish();
}

void Engine::schedule_with_room(EntityId entity, SimTime at) {
  if (at_once_ != kNobody) queue_at_once();
  queue_.make_room(at);
  schedule(entity, at);
}

void Engine::cancel(EntityId entity) {
  if (entity == at_once_) at_once_ = kNobody;
  queue_.clear(entity);
  if (entity == running_) running_ = kNobody;
  if (tells_) publish();
}

void Engine::stop() {
  stopped_ = true;
  if (order_ != nullptr && order_->in_order) order_->stopped = true;
}

// The key of its next event, as the conductor orders domains.
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
  if (entity == at_once_) return now_;
  if (entity == running_ || !queue_.pending(entity)) return std::nullopt;
  return queue_.time(entity);
}

std::optional<SimTime> Engine::next_due() const {
  BUBBLESIM_DCHECK(running_ == kNobody, "asked from inside an event");
  const std::optional<EntityId> next = queue_.first();
  if (!next) return std::nullopt;
  return queue_.first_time();
}

// What handlers have set for this instant, one after another, as long as it is the next.
void Engine::run_at_once() {
  while (at_once_ != kNobody && at_once_is_next()) {
    const Entity& entity = entities_[std::exchange(at_once_, kNobody).index()];
    if (!in_order()) reached_ = std::max(reached_, entity.phase);
    ++events_;
    entity.handler->on_event(now_);
  }
}

bool Engine::at_once_is_next() const {
  if (stopped_) return false;
  if (order_ != nullptr && order_->in_order) {
    if (order_->stopped || !order_->firsts.first_is_after(now_)) return false;
  }
  return queue_.is_first(at_once_key_,
                         running_ == kNobody ? std::nullopt : std::optional(running_));
}

void Engine::queue_at_once() { queue_.put(std::exchange(at_once_, kNobody), at_once_key_); }

// Runs what is due before `until`.
void Engine::run_before(SimTime until) {
  tells_ = false;
  while (!stopped_) {
    const std::optional<EntityId> next = queue_.first();
    if (!next || queue_.first_time() >= until) break;
    const Phase phase = entities_[next->index()].phase;
    reached_ = queue_.first_time() > now_ ? phase : std::max(reached_, phase);
    step(*next);
  }
  tells_ = true;
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
