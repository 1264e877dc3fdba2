// The clocks of a PolicyDriver; included by its implementation files only.
#pragma once

#include "sim/schedule/policy_driver.hpp"

namespace bubblesim::schedule {

/// An entity that calls one of the driver's methods.
class PolicyDriver::Timer final : public engine::EventHandler {
 public:
  using Method = void (PolicyDriver::*)(SimTime);
  Timer(PolicyDriver& driver, Method method, engine::Phase phase)
      : entity(driver.engine_.add_entity(*this, phase)), driver_(driver), method_(method) {}
  void on_event(SimTime now) override { (driver_.*method_)(now); }
  engine::EntityId entity;

 private:
  PolicyDriver& driver_;
  Method method_;
};

}  // namespace bubblesim::schedule
