// Completions for bash, zsh and fish. Each script first finds which command the line is in, then
// offers that command's words.
#include <fmt/format.h>

#include "sim/app/command_tree.hpp"

namespace bubblesim::app {
namespace {

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
