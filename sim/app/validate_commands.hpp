// The parts of `bubblesim validate` that stand in files of their own.
#pragma once

#include "sim/app/app.hpp"

namespace bubblesim::app {

void add_validate_sharing(CLI::App& parent, AppContext& context);

}  // namespace bubblesim::app
