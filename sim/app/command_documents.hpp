// Documents made from the commands' own declarations: shell completions and man pages.
#pragma once

#include <cstdint>
#include <string>

#include "sim/app/command_tree.hpp"

namespace bubblesim::app {

enum class Shell : std::uint8_t { kBash, kZsh, kFish };

/// A script that the shell sources. Commands and options by name, values where all are known, else
/// files.
[[nodiscard]] std::string completion_script(const CommandText& program, Shell shell);

/// The command's page for man(1), section 1. `version`: of the program, for the foot.
[[nodiscard]] std::string man_page(const CommandText& command, const std::string& version);
/// "bubblesim-capture-attach.1".
[[nodiscard]] std::string man_file(const CommandText& command);

}  // namespace bubblesim::app
