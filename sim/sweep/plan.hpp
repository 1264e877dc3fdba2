// Makes the runs of a sweep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/store/run_record.hpp"
#include "sim/sweep/sweep_config.hpp"

namespace bubblesim::sweep {

inline constexpr std::size_t kMostRuns = 1'000'000;

/// Every `of`-th run from the `index`-th on, for job arrays.
struct Shard {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
};

struct PlanOptions {
  std::string device_folder;  ///< devices/ of a folder of configs
  std::string version;        ///< of the program, including policies from libraries: part of keys
};

struct SweepPlan {
  std::vector<store::PlannedRun> runs;  ///< in the order of their indices
  std::size_t points = 0;
  std::size_t repeated = 0;      ///< runs left out because another has the same config
};

/// All runs in order: the last axis changes fastest, repetitions fastest of all. Two points with
/// the same config are one. Faults: each invalid run config and each missing file or name, with the
/// first point that has the fault, its settings, and the number of such points; and each condition
/// of axes that holds at no point, unless an override sets its place.
[[nodiscard]] CheckedResult<SweepPlan> plan_sweep(const SweepConfig& sweep,
                                                  const policy::Registry& registry,
                                                  const PlanOptions& options);

[[nodiscard]] std::vector<store::PlannedRun> shard_of(const std::vector<store::PlannedRun>& plan,
                                                      Shard shard);

/// "/policies/0 = "mps", /seed = 3"; "no settings" if there are none.
[[nodiscard]] std::string settings_text(const std::vector<store::Setting>& settings);

}  // namespace bubblesim::sweep
