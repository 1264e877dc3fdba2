// A sweep file: a run config and what varies in it. configs/README.md documents every key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/run/sweep/planned_run.hpp"

namespace bubblesim::run {

/// Values of one place of the run config, as JSON texts.
struct Axis {
  std::string pointer;
  std::vector<std::string> values;  ///< at least one
};

/// Axes that move together: the n-th value of each at once. One axis alone is a zip of one.
struct AxisGroup {
  std::vector<Axis> axes;         ///< at least one, all of one length
  std::vector<Setting> when;      ///< applies where the config holds all of these, else once, unset
};

struct SweepConfig {
  std::string file;
  std::string name;
  std::string base;               ///< the run config, compact JSON
  std::string base_folder;        ///< what its paths are relative to
  std::vector<AxisGroup> groups;  ///< the product of all; sampled axes are one group
  std::uint32_t repetitions = 1;
  std::uint64_t first_seed = 1;   ///< repetition r of every point has seed first_seed + r
};

/// Reads and checks a sweep, with `overrides` ("/a/b=c", JSON or text) put on its base. All faults
/// at once, those of the run config of every point included, before anything runs.
[[nodiscard]] CheckedResult<SweepConfig> read_sweep_config(
    const std::string& path, const std::vector<std::string>& overrides,
    const policy::Registry& registry);

}  // namespace bubblesim::run
