// Layer times of a profile's folder, through the file that bubblesim.layers writes for it.
#pragma once

#include <cstdlib>
#include <string>

#include "sim/base/output_file.hpp"
#include "sim/step_cost/layer_tables.hpp"

namespace bubblesim::step_cost::test {

inline CheckedResult<LayerTables> profile_tables(const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto scratch, ScratchFolder::make("/tmp", "layers"));
  const std::string file = scratch->path() + "/layers.json";
  const std::string command = BUBBLESIM_LAYERS " '" + folder + "' -o " + file + " > /dev/null";
  if (std::system(command.c_str()) != 0) return fail(folder, {}, "is not turned into a file");
  return read_layer_file(file);
}

}  // namespace bubblesim::step_cost::test
