// The commands as declared (CLI::App): their help, checks of their numbers, messages about unknown
// words, and a description for man pages and completions (scripts/cmake/documents.py).
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/result.hpp"

namespace CLI {
class App;
}

namespace bubblesim::app {

/// Sets the format of help texts, for the program and for all commands that are added afterwards.
void set_help_format(CLI::App& program);

/// Checks the numbers of all options: integers are neither negative nor too large, others are
/// finite, threads are at most kMostThreads. Call it when all commands have been added.
inline constexpr std::uint64_t kMostThreads = 1024;
void check_numbers(CLI::App& program);

/// After a parse: the first word that no declaration takes, with the nearest name; nothing: all
/// were taken.
[[nodiscard]] std::optional<Error> unknown_word(const CLI::App& program);

}  // namespace bubblesim::app
