// The parts of `bubblesim fit`, each in a file of its own.
#pragma once

#include "sim/app/app.hpp"

namespace bubblesim::app {

void add_fit_network(CLI::App& fit, AppContext& context);
void add_fit_sharing(CLI::App& fit, AppContext& context);
void add_fit_training(CLI::App& fit, AppContext& context);

}  // namespace bubblesim::app
