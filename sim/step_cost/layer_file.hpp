// Layer times as one file of bubblesim's own, JSON: `bubblesim import layers DIR -o FILE` writes it
// once, and what reads it need not know where the times came from.
#pragma once

#include <string>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"
#include "sim/step_cost/layer_tables.hpp"

namespace bubblesim::step_cost {

[[nodiscard]] Json layers_json(const LayerTables& tables);
[[nodiscard]] CheckedResult<LayerTables> read_layer_file(const std::string& path);
/// `label` stands for the file in messages.
[[nodiscard]] CheckedResult<LayerTables> parse_layers(std::string_view text, std::string label);

/// A file, or the folder of a profile.
[[nodiscard]] CheckedResult<LayerTables> read_layers_at(const std::string& path);

}  // namespace bubblesim::step_cost
