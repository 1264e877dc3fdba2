// What a job is made of, by the names of files of configs: model, plan, cluster, device, software.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/synth/plan_spec.hpp"

namespace bubblesim::synth {

/// Another value for a key of a plan file: {"/data", "8"}, {"/schedule", "gpipe"}.
struct PlanChange {
  std::string pointer;  ///< JSON pointer
  std::string value;    ///< JSON; anything that is none is a text
};

/// Each name is a path (it has a "/" or ends in ".json"), else the id of a file of its folder.
struct JobNames {
  std::string model;
  std::variant<std::string, PlanSpec> plan;
  std::vector<PlanChange> changes;      ///< of a plan by name
  std::string cluster;
  std::optional<std::uint32_t> nodes;   ///< >= 1; nothing: the cluster's
  /// Seed of the hash that places flows on up-links; nothing: the cluster's.
  std::optional<std::uint64_t> hash_seed = std::nullopt;
  std::optional<std::string> device;    ///< nothing: the cluster's
  std::optional<std::string> software;  ///< nothing: the plan's
  std::optional<Folding> folding;       ///< nothing: the plan's
};

}  // namespace bubblesim::synth
