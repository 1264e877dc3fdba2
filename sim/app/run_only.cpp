// `run` alone: the program that scripts/demo waits for, built in half of the time of bubblesim.
#include "sim/app/shared/app.hpp"

namespace bubblesim::app {

void add_commands(CLI::App& parser, AppContext& context) { add_run_command(parser, context); }

}  // namespace bubblesim::app
