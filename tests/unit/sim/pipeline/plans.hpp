// Helpers to make and run schedules in tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sim/pipeline/execute.hpp"
#include "sim/pipeline/registry.hpp"
#include "tests/fault.hpp"

namespace bubblesim::pipeline {

inline ScheduleRequest request(std::uint32_t ranks, std::uint32_t micro_batches,
                               std::uint32_t chunks = 0) {
  ScheduleRequest made;
  made.ranks = ranks;
  made.micro_batches = micro_batches;
  made.chunks = chunks;
  return made;
}

inline PlannedSchedule made(const std::string& name, const ScheduleRequest& request) {
  return must(make_schedule(name, request));
}

inline UnitTimes times(std::int64_t f, std::int64_t i, std::int64_t w, std::int64_t p2p = 0) {
  UnitTimes made;
  made.every_stage = {f, i, w};
  made.p2p = p2p;
  return made;
}

inline Execution ran(const PlannedSchedule& plan, const UnitTimes& times,
                     const ActivationUnits& units = {}) {
  return execute(plan.schedule, plan.graph, times, units);
}

/// The actions of a rank as text: "0F0 0B0".
inline std::string text_of(const std::vector<Action>& actions) {
  std::string text;
  for (const Action& action : actions) text += (text.empty() ? "" : " ") + action_text(action);
  return text;
}

inline std::string refusal(const std::string& name, const ScheduleRequest& request) {
  return error_of(make_schedule(name, request)).text();
}

}  // namespace bubblesim::pipeline
