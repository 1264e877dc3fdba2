// The parts of `bubblesim import`. Inside of sim/app.
#pragma once

#include "sim/app/load_job.hpp"

namespace bubblesim::app {

void add_import_layers(CLI::App& parent, AppContext& context);
void add_import_steps(CLI::App& parent, AppContext& context);

}  // namespace bubblesim::app
