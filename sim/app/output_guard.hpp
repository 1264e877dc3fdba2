// One guard for every file that a command writes: a file that the command reads is never written
// over, and one that this program did not make only with --force. It looks before the command
// starts, so that a refusal costs nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"

namespace CLI {
class App;
class Option;
}

namespace bubblesim::app {

class OutputGuard {
 public:
  /// The files that are written where the option has this value.
  using Files = std::function<std::vector<std::string>(const std::string& value)>;

  /// The option of this name says what its command writes: one file, or `files`. The command gets
  /// --force.
  void writes(CLI::App& command, const std::string& option, Files files = {});

  /// Of the outputs of the commands that were parsed; --force leaves those that are also read.
  [[nodiscard]] Errors faults(const CLI::App& program) const;

 private:
  struct Output {
    const CLI::App* command;
    const CLI::Option* option;
    Files files;
  };
  std::vector<Output> outputs_;
};

/// A folder's files, at any depth, whose names begin and end so.
[[nodiscard]] OutputGuard::Files files_named(std::vector<std::string> beginnings,
                                             std::string ending);
/// These files of a folder.
[[nodiscard]] OutputGuard::Files files_of(std::vector<std::string> names);

}  // namespace bubblesim::app
