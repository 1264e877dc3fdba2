// How a command is added to the program.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>

#include "sim/app/shared/app.hpp"

namespace bubblesim::app {

/// Adds a command whose options the caller declares: they set its arguments, then `run` is called
/// with these and, if it takes them, the parsed command and the context.
template <class Arguments, class... Context>
auto add_command(CLI::App& parser, AppContext& context, ExitCode (*run)(Arguments&, Context&...),
                 const char* name, const std::string& help) {
  auto arguments = std::make_shared<std::remove_const_t<Arguments>>();
  CLI::App* command = parser.add_subcommand(name, help);
  command->callback([command, arguments, run, &context] {
    if constexpr (sizeof...(Context) == 0) context.exit_code = reported(run(*arguments));
    else if constexpr (sizeof...(Context) == 1) {
      context.exit_code = reported(run(*arguments, context));
    } else {
      context.exit_code = reported(run(*arguments, *command, context));
    }
  });
  return std::pair(command, arguments);
}

}  // namespace bubblesim::app
