// Which commands a program has: all_commands.cpp or run_only.cpp, by target.
#pragma once

namespace CLI {
class App;
}

namespace bubblesim::app {

struct AppContext;

void add_commands(CLI::App& parser, AppContext& context);

}  // namespace bubblesim::app
