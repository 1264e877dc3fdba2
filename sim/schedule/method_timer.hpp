// A timer that calls a method of an object: an entity of the engine.
#pragma once

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

}  // namespace bubblesim::schedule
