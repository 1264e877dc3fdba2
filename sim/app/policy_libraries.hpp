// The option --policy-library: policies from shared libraries beside those that come with
// bubblesim.
#pragma once

#include <string>
#include <vector>

#include "sim/app/app.hpp"

namespace bubblesim::app {

/// Adds the option, repeatable, to a command.
void add_policy_library_option(CLI::App& command, std::vector<std::string>& wanted);

/// Loads every library into the registry; all faults at once.
[[nodiscard]] CheckedResult<void> load_policy_libraries(const std::vector<std::string>& wanted,
                                                        AppContext& context);

/// The program's version (sim/sweep/program_version.hpp) and the policies from libraries, which are
/// part of it.
[[nodiscard]] Result<std::string> version_with_policies(const AppContext& context);

}  // namespace bubblesim::app
