// The parts of `bubblesim validate` that stand in files of their own.
#pragma once

#include "sim/app/app.hpp"

namespace bubblesim::app {

/// What `bubblesim validate RUN MEASURED` takes, on the command itself.
void add_validate_measured(CLI::App& command, AppContext& context);
void add_validate_sharing(CLI::App& parent, AppContext& context);

}  // namespace bubblesim::app
