// Man pages: the commands' help in the macros of man(7).
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "sim/app/command_documents.hpp"

namespace bubblesim::app {
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

}  // namespace bubblesim::app
