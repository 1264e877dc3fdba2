// bubblesim help, and the hidden commands that packages are made with: completion, man.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "sim/app/app.hpp"
#include "sim/app/command_tree.hpp"
#include "sim/app/results_command.hpp"

namespace bubblesim::app {
namespace {

// bubblesim help, and the hidden commands that packages are made with: completion, man.

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

// Man pages: the commands' help in the macros of man(7).

namespace {

// What roff would read as its own: backslashes, hyphens (which it may turn into dashes), and a dot
// or an apostrophe that begins a line.
std::string roff(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (out.empty() && (letter == '.' || letter == '\'')) out += "\\&";
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else {
      out += letter;
    }
  }
  return out;
}

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string title(const CommandText& command) {
  std::string name = dashed(command.name);
  for (char& letter : name) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return name;
}

/// Paragraphs as they are; lines that begin with two spaces word by word; "Examples:" as a heading.
std::string body(const std::string& help) {
  std::string text;
  bool literal = false;
  std::istringstream stream(help);
  for (std::string line; std::getline(stream, line);) {
    const bool example = line.starts_with("  ");
    if (example != literal) text += example ? ".nf\n" : ".fi\n";
    literal = example;
    if (line.empty()) {
      text += ".PP\n";
    } else if (line == "Examples:" || line == "Example:") {
      text += ".SH EXAMPLES\n";
    } else {
      text += roff(line) + '\n';
    }
  }
  return text + (literal ? ".fi\n" : "");
}

std::string option_entry(const OptionText& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += (names.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  }
  const bool named = option.names.front().starts_with('-');
  if (named && !option.value.empty()) names += " \\fI" + roff(option.value) + "\\fR";
  std::string help = option.help;
  if (!option.choices.empty()) {
    std::string all;
    for (const std::string& choice : option.choices) all += (all.empty() ? "" : ", ") + choice;
    help += (help.empty() ? "One of " : "; one of ") + all;
  }
  return ".TP\n" + names + "\n" + body(help);
}

std::string section(const char* heading, const std::vector<OptionText>& options) {
  if (options.empty()) return {};
  std::string text = fmt::format(".SH {}\n", heading);
  for (const OptionText& option : options) text += option_entry(option);
  return text;
}

std::string synopsis(const CommandText& command) {
  std::string text = ".SH SYNOPSIS\n\\fB" + roff(command.name) + "\\fR [\\fIOPTIONS\\fR]";
  for (const OptionText& word : command.positionals) text += " [\\fI" + word.names[0] + "\\fR]";
  if (!command.commands.empty()) text += " [\\fICOMMAND\\fR ...]";
  return text + "\n";
}

}  // namespace

std::string man_file(const CommandText& command) { return dashed(command.name) + ".1"; }

std::string man_page(const CommandText& command, const std::string& version) {
  std::string text = fmt::format(
      ".TH \"{}\" 1 \"\" \"bubblesim {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
      title(command), version, roff(dashed(command.name)), roff(first_sentence(command.help)));
  text += synopsis(command);
  text += section("ARGUMENTS", command.positionals);
  text += section("OPTIONS", command.options);
  if (!command.commands.empty()) text += ".SH COMMANDS\n";
  for (const CommandText& part : command.commands) {
    text += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", roff(dashed(part.name)),
                        roff(first_sentence(part.help)));
  }
  return text + ".SH DESCRIPTION\n" + body(command.help);
}

namespace {

// Completions for bash, zsh and fish. Each script first finds which command the line is in, then
// offers that command's words.

// Between single quotes; fish has \' inside of them, the others leave them for a moment.
std::string quoted(const std::string& text, const char* quote = "'\\''") {
  std::string out = "'";
  for (const char letter : text) out += letter == '\'' ? quote : std::string(1, letter);
  return out + "'";
}

std::string joined(const std::vector<std::string>& words, const char* separator = " ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::vector<std::string> option_words(const CommandText& command) {
  std::vector<std::string> words;
  for (const OptionText& option : command.options) {
    words.insert(words.end(), option.names.begin(), option.names.end());
  }
  return words;
}

/// Lines of a case statement that has a pattern for every command below the program.
std::string command_patterns(const CommandText& program, const char* separator) {
  std::vector<std::string> patterns;
  for (const CommandText* command : with_all_below(program)) {
    if (command != &program) patterns.push_back(quoted(command->name));
  }
  return joined(patterns, separator);
}

/// "'bubblesim run --mode') COMMAND offline online both ;;", a line an option with choices.
std::string choice_cases(const CommandText& program, const char* before, const char* after) {
  std::string text;
  for (const CommandText* command : with_all_below(program)) {
    for (const OptionText& option : command->options) {
      if (option.choices.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) {
        patterns.push_back(quoted(command->name + " " + name));
      }
      text += fmt::format("    {}) {}{}{} ;;\n", joined(patterns, " | "), before,
                          joined(option.choices), after);
    }
  }
  return text;
}

std::string bash_script(const CommandText& program) {
  std::string text = fmt::format(
      "# bash completion for bubblesim\n"
      "_bubblesim() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}\n"
      "  local command=bubblesim commands='' options='' values='' i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"$command ${{COMP_WORDS[i]}}\" in\n"
      "    {}) command=\"$command ${{COMP_WORDS[i]}}\" ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$command $before\" in\n{}"
      "  esac\n"
      "  case $command in\n",
      command_patterns(program, " | "), choice_cases(program, "values='", "'"));
  for (const CommandText* command : with_all_below(program)) {
    text += fmt::format("    {})\n      commands={}\n      options={} ;;\n", quoted(command->name),
                        quoted(joined(command->command_names())),
                        quoted(joined(option_words(*command))));
  }
  return text +
         "  esac\n"
         "  [[ $word != -* ]] || commands=$options\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"${values:-$commands}\" -- \"$word\")\n"
         "}\n"
         "complete -o default -F _bubblesim bubblesim\n";
}

// _describe splits name from help at the first colon.
std::string zsh_entry(std::string name, const std::string& help) {
  for (std::size_t at = name.find(':'); at != std::string::npos; at = name.find(':', at + 2)) {
    name.insert(at, "\\");
  }
  return " " + quoted(name + ":" + first_sentence(help));
}

std::string zsh_script(const CommandText& program) {
  std::string text = fmt::format(
      "#compdef bubblesim\n"
      "local command=bubblesim i\n"
      "local -a commands options\n"
      "for ((i = 2; i < CURRENT; i++)); do\n"
      "  case \"$command ${{words[i]}}\" in\n"
      "    {}) command=\"$command ${{words[i]}}\" ;;\n"
      "  esac\n"
      "done\n"
      "case \"$command ${{words[CURRENT - 1]}}\" in\n{}"
      "esac\n"
      "case $command in\n",
      command_patterns(program, " | "), choice_cases(program, "compadd -- ", "; return"));
  for (const CommandText* command : with_all_below(program)) {
    std::string commands;
    for (const CommandText& part : command->commands) {
      commands += zsh_entry(part.own_name(), part.help);
    }
    std::string options;
    for (const OptionText& option : command->options) {
      for (const std::string& name : option.names) options += zsh_entry(name, option.help);
    }
    text += fmt::format("  {})\n    commands=({} )\n    options=({} ) ;;\n",
                        quoted(command->name), commands, options);
  }
  return text +
         "esac\n"
         "if [[ $PREFIX == -* ]]; then\n"
         "  _describe -o option options\n"
         "else\n"
         "  (( $#commands )) && _describe command commands\n"
         "  _files\n"
         "fi\n";
}

std::string fish_option(const CommandText& command, const OptionText& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  std::string values = option.value.empty() ? "" : " -r";
  if (!option.choices.empty()) values = " -x -a " + quoted(joined(option.choices), "\\'");
  return fmt::format("complete -c bubblesim -n {}{}{} -d {}\n",
                     quoted("__bubblesim_at " + command.name, "\\'"), names, values,
                     quoted(first_sentence(option.help), "\\'"));
}

std::string fish_script(const CommandText& program) {
  std::string text = fmt::format(
      "# fish completion for bubblesim\n"
      "function __bubblesim_at\n"
      "    set -l command bubblesim\n"
      "    for word in (commandline -opc)[2..-1]\n"
      "        switch \"$command $word\"\n"
      "            case {}\n"
      "                set command \"$command $word\"\n"
      "        end\n"
      "    end\n"
      "    test \"$command\" = \"$argv\"\n"
      "end\n",
      command_patterns(program, " "));
  for (const CommandText* command : with_all_below(program)) {
    for (const CommandText& part : command->commands) {
      text += fmt::format("complete -c bubblesim -n {} -f -a {} -d {}\n",
                          quoted("__bubblesim_at " + command->name, "\\'"), part.own_name(),
                          quoted(first_sentence(part.help), "\\'"));
    }
    for (const OptionText& option : command->options) text += fish_option(*command, option);
  }
  return text;
}

}  // namespace

std::string completion_script(const CommandText& program, Shell shell) {
  switch (shell) {
    case Shell::kBash: break;
    case Shell::kZsh: return zsh_script(program);
    case Shell::kFish: return fish_script(program);
  }
  return bash_script(program);
}

}  // namespace bubblesim::app
