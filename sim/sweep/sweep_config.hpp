// A sweep file: a run config and what varies in it. configs/README.md documents every key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/store/planned_run.hpp"

namespace bubblesim {
class JsonDocument;
}

namespace bubblesim::sweep {

/// Values of one place of the run config, as JSON texts. A place is a JSON pointer, in which
/// elements of lists may be named: "/fillers/chat/memory" (config_edit.hpp).
struct SweepAxis {
  std::string pointer;
  std::vector<std::string> values;  ///< at least one
};

/// Axes that move together: the n-th value of each at once. One axis alone is a zip of one.
struct AxisGroup {
  std::vector<SweepAxis> axes;         ///< at least one, all of one length
  std::vector<store::Setting>
      when;  ///< applies where the config holds all of these, else once, unset
  bool when_overridden = false;  ///< an override says something of `when`: it may hold nowhere
};

struct SweepConfig {
  std::string file;
  std::string name;
  std::string base;               ///< the run config, compact JSON
  std::string base_file;          ///< where it is written; the sweep's own file if inside it
  std::vector<AxisGroup> groups;  ///< the product of all; sampled axes are one group
  std::uint32_t repetitions = 1;
  /// Repetition r of every point has seed first_seed + r. Nothing: the base's seed, else 1.
  std::optional<std::uint64_t> first_seed;
};

/// Reads and checks a sweep file and its base, with `overrides` ("/a/b=c", JSON or text) put on the
/// base; an override of an axis fixes it. All faults at once; those of the run config of each
/// point: plan_sweep.
[[nodiscard]] CheckedResult<SweepConfig> read_sweep_config(
    const std::string& path, const std::vector<std::string>& overrides);

/// The file alone: changes to the base, and the base where it is a file, are not read. Says which
/// keys there are (sim/schema); "base", "settings", "values" and "quantity" are defined by
/// sim/app/schema_kinds.cpp.
[[nodiscard]] CheckedResult<SweepConfig> parse_sweep_config(const JsonDocument& document);

}  // namespace bubblesim::sweep
