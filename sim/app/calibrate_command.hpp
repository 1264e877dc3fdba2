// The command `bubblesim calibrate`.
#pragma once

#include "sim/app/app.hpp"

namespace bubblesim::app {

void add_calibrate_command(CLI::App& parser, AppContext& context);

}  // namespace bubblesim::app
