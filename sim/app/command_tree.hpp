// The commands as declared (CLI::App), in plain values: for man pages, completions
// (scripts/cmake/documents.py) and messages about unknown words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"

namespace CLI {
class App;
}

namespace bubblesim::app {

struct OptionText {
  std::vector<std::string> names;    ///< "-o", "--output"; a positional has one name: "PATHS"
  std::string value;                 ///< placeholder of the value, such as "TEXT"; empty: a flag
  std::vector<std::string> choices;  ///< all allowed values; empty: any
  std::string help;
};

struct CommandText {
  std::string name;  ///< with the names of its parent commands: "bubblesim capture attach"
  std::string help;  ///< paragraphs between empty lines; lines of examples begin with two spaces
  std::vector<OptionText> options;
  std::vector<OptionText> positionals;
  std::vector<CommandText> commands;

  /// The last word of the command's name.
  [[nodiscard]] std::string own_name() const;
  /// The last words of the commands below it, in order.
  [[nodiscard]] std::vector<std::string> command_names() const;
};

/// Sets the format of help texts, for the program and for all commands that are added afterwards.
void set_help_format(CLI::App& program);

/// Checks the numbers of all options: integers are neither negative nor too large, others are
/// finite, threads are at most kMostThreads. Call it when all commands have been added.
inline constexpr std::uint64_t kMostThreads = 1024;
void check_numbers(CLI::App& program);

/// Describes the command without its hidden parts; `parents`: "bubblesim capture", empty for the
/// program.
[[nodiscard]] CommandText describe_command(const CLI::App& command,
                                           const std::string& parents = "");

/// The command that the words name, each a subcommand of the one before; fault: an unknown word,
/// with the nearest name.
[[nodiscard]] Result<const CLI::App*> find_command(const CLI::App& program,
                                                   const std::vector<std::string>& words);

/// After a parse: the first word that no declaration takes, with the nearest name; nothing: all
/// were taken.
[[nodiscard]] std::optional<Error> unknown_word(const CLI::App& program);

/// A help text's first sentence, in one line and without its full stop; an empty line ends it, too.
[[nodiscard]] std::string first_sentence(const std::string& help);

}  // namespace bubblesim::app
