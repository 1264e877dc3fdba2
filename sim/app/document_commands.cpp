// bubblesim help, and the hidden commands that packages are made with: completion, man.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "sim/app/app.hpp"
#include "sim/app/command_documents.hpp"
#include "sim/app/results_text.hpp"
#include "sim/app/version_text.hpp"

namespace bubblesim::app {
namespace {

ExitCode print_help(const CLI::App& program, const std::vector<std::string>& words) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto command, find_command(program, words));
  std::string name = program.get_name();
  for (const std::string& word : words) name += " " + word;
  print(command->get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal));
  return kExitOk;
}

// All pages into a folder.
ExitCode write_pages(const CommandText& program, const std::string& folder) {
  for (const CommandText* command : with_all_below(program)) {
    BUBBLESIM_RETURN_IF_ERROR(
        write_output(folder + "/" + man_file(*command), man_page(*command, release_number())));
  }
  return kExitOk;
}

ExitCode print_page(const CLI::App& program, const std::vector<std::string>& words) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto command, find_command(program, words));
  std::string parents;
  if (!words.empty()) parents = program.get_name();
  for (std::size_t i = 0; i + 1 < words.size(); ++i) parents += " " + words[i];
  print(man_page(describe_command(*command, parents), release_number()));
  return kExitOk;
}

void add_help(CLI::App& parser, AppContext& context) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = parser.add_subcommand(
      "help", "Says what a command does, with its options and examples.\n\n"
              "Examples:\n  bubblesim help\n  bubblesim help run\n  bubblesim help capture attach");
  command->add_option("COMMAND", *words, "Of which command");
  command->callback(
      [&parser, words, &context] { context.exit_code = reported(print_help(parser, *words)); });
}

void add_completion(CLI::App& parser) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = parser.add_subcommand(
      "completion", "Prints the completions of a shell.\n\nExample:\n  bubblesim completion bash");
  command->group("");
  command->add_option("SHELL", *shell, "Which")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&parser, shell] {
    const Shell chosen = *shell == "zsh"    ? Shell::kZsh
                         : *shell == "fish" ? Shell::kFish
                                            : Shell::kBash;
    print(completion_script(describe_command(parser), chosen));
  });
}

void add_man(CLI::App& parser, AppContext& context) {
  auto words = std::make_shared<std::vector<std::string>>();
  auto folder = std::make_shared<std::string>();
  CLI::App* command = parser.add_subcommand(
      "man", "Prints a command's man page.\n\nExamples:\n  bubblesim man run\n"
             "  bubblesim man --all out/man");
  command->group("");
  command->add_option("COMMAND", *words, "Of which command");
  command->add_option("--all", *folder, "Write the pages of all commands into this folder");
  context.outputs.writes(*command, "--all", files_named({"bubblesim"}, ".1"));
  command->callback([&parser, words, folder, &context] {
    context.exit_code = reported(folder->empty()
                                     ? print_page(parser, *words)
                                     : write_pages(describe_command(parser), *folder));
  });
}

}  // namespace

void add_document_commands(CLI::App& parser, AppContext& context) {
  add_help(parser, context);
  add_completion(parser);
  add_man(parser, context);
}

}  // namespace bubblesim::app
