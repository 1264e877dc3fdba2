// What a run config names: traces, tables, and files of configs by path or by id. Inside of
// sim/sweep. sim/run/run_config*.cpp read the same keys.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sim/base/json_fwd.hpp"

namespace bubblesim::sweep {

enum class NamedKind : std::uint8_t {
  kFile,        ///< always a path, relative to what holds it; may be a folder of traces
  kModel,       ///< these are paths, or ids of files of a folder of configs
  kPlan,
  kCluster,
  kDevice,
  kSoftware,
  kEfficiency,
};

/// Visits one text of a config, and may change it.
using NameVisitor = std::function<void(Json& text, NamedKind kind, const std::string& pointer)>;

/// All that a run config names, in its order.
void each_name(Json& run_config, const NameVisitor& visit);
/// All that a plan, or a cluster, names, in its order.
void each_name_of_plan(Json& plan, const std::string& pointer, const NameVisitor& visit);
void each_name_of_cluster(Json& cluster, const NameVisitor& visit);

/// Makes the paths of a run config, which are relative to `folder`, absolute. Devices named by path
/// are relative to the current folder, as on the command line.
void make_paths_absolute(Json& run_config, const std::string& folder);

}  // namespace bubblesim::sweep
