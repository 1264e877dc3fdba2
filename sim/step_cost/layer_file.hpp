// Layer times as one file of bubblesim's own, JSON: `python3 -m bubblesim.layers DIR -o FILE`
// writes it once, and what reads it need not know where the times came from.
#pragma once

#include <string>

#include "sim/base/result.hpp"
#include "sim/step_cost/layer_tables.hpp"

namespace bubblesim::step_cost {

[[nodiscard]] CheckedResult<LayerTables> read_layer_file(const std::string& path);
/// `label` stands for the file in messages.
[[nodiscard]] CheckedResult<LayerTables> parse_layers(std::string_view text, std::string label);

/// A file. Fault: a folder, with what makes a file of a profile.
[[nodiscard]] CheckedResult<LayerTables> read_layers_at(const std::string& path);

}  // namespace bubblesim::step_cost
