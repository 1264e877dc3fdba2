// From a sweep to its runs, and what they may cost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/run/sweep/planned_run.hpp"
#include "sim/run/sweep/sweep_config.hpp"

namespace bubblesim::run {

/// Every `of`-th run from the `index`-th on, for job arrays.
struct Shard {
  std::uint32_t index = 0;
  std::uint32_t of = 1;
};

/// All runs in order: the last axis moves fastest, repetitions fastest of all. Two points that
/// come out as the same config are one (kept once; counted by the caller from the indices).
/// Faults: every run config that is not valid, with the settings that made it so.
[[nodiscard]] CheckedResult<std::vector<PlannedRun>> plan_sweep(const SweepConfig& sweep,
                                                                const policy::Registry& registry,
                                                                const std::string& version);

[[nodiscard]] std::vector<PlannedRun> shard_of(const std::vector<PlannedRun>& plan, Shard shard);

}  // namespace bubblesim::run
