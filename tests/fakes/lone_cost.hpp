// The time that a step takes on a server of one member: an engine's cost, for serve_alone.
#pragma once

#include "sim/step_cost/engine_cost.hpp"
#include "tests/fakes/lone_server.hpp"

namespace bubblesim::step_cost {

class LoneCost final : public serving::StepCost {
 public:
  explicit LoneCost(EngineCost& engine) : engine_(engine) {}
  [[nodiscard]] Duration step_time(const serving::ScheduledStep& step, bool queued) override {
    const serving::ScheduledStep* const only_member = &step;
    return engine_.step_time({&only_member, 1}, queued);
  }

 private:
  EngineCost& engine_;
};

}  // namespace bubblesim::step_cost
