// What a simulation of a loaded run simulates of it, and how.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/engine/conductor.hpp"
#include "sim/observe/timeline.hpp"
#include "sim/observe/usage_series.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/run/fill_queue.hpp"
#include "sim/schedule/bubble_table.hpp"

namespace bubblesim::run {

/// What runs. Nothing set: the training job alone.
struct RunScenario {
  const policy::PolicySpec* policy = nullptr;  ///< null: no policy, everything is admitted
  const policy::ParameterSet* parameters = nullptr;
  const std::vector<schedule::BubbleTable>* bubbles = nullptr;  ///< if the policy needs them
  std::vector<std::uint32_t> fillers;   ///< into RunConfig::fillers
  /// On GPUs of their own, by RunConfig::fillers; null: not measured.
  const std::vector<FillerProfile>* profiles = nullptr;
  Duration iteration{};                 ///< of training alone; 0: not measured
  bool training = true;
  Duration limit = Duration::max();     ///< a run for iterations is cut here (and counted)
  observe::TimelineRecorder* timeline = nullptr;
  observe::UsageSetup usage{};          ///< recorded in PolicyResult::usage; changes nothing else
  const std::atomic<bool>* stop = nullptr;  ///< once true, run() is a fault soon; null: never
  /// Simulated time is added here as it passes, up to `expected`; null: nowhere.
  std::atomic<std::int64_t>* passed_ns = nullptr;
  Duration expected{};
  /// How its GPUs run beside each other. Changes no result. A timeline sees every event in order.
  engine::ConductorSetup gpus{};
};

}  // namespace bubblesim::run
