// What the program knows of itself as a process: where it lies, and its environment.
#pragma once

#include <string>
#include <vector>

#include "sim/base/child_process.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::app {

[[nodiscard]] Variables inherited_environment();

/// The system's folder for temporary files: TMPDIR or /tmp; empty if it cannot be told.
[[nodiscard]] std::string temporary_folder();

/// The folder that holds the program.
[[nodiscard]] std::string program_folder();

/// A program of bubblesim's that is not `bubblesim`: beside it, installed
/// (../libexec/bubblesim), or in the build tree. The fault lists the places.
[[nodiscard]] Result<std::string> find_helper_program(const std::string& name);

}  // namespace bubblesim::app
