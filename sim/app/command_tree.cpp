#include "sim/app/command_tree.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>

#include "sim/app/shared/app.hpp"
#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"

namespace bubblesim::app {
namespace {

std::string below(const std::string& parents, const std::string& name) {
  return parents.empty() ? name : parents + " " + name;
}

bool is_hidden(const CLI::App& command) { return command.get_group().empty(); }

// "ENUM:value in {flash->\1,unfused->\2} OR {\1,\2}" without the numbers that the words stand for.
std::string without_numbers(std::string type) {
  for (std::size_t at = type.find("->"); at != std::string::npos; at = type.find("->")) {
    type.erase(at, type.find_first_of(",}", at) - at);
  }
  if (const std::size_t at = type.find(" OR {"); at != std::string::npos) {
    type.erase(at, type.find('}', at) + 1 - at);
  }
  if (const std::size_t at = type.find("value in {"); at != std::string::npos) type.erase(at, 9);
  return type;
}

// A help text's first sentence, in one line and without its full stop; an empty line ends it, too.
std::string first_sentence(const std::string& help) {
  std::size_t end = std::string::npos;
  for (const char* stop : {". ", ".\n", "\n\n"}) end = std::min(end, help.find(stop));
  std::string text = help.substr(0, end);
  if (text.ends_with('.')) text.pop_back();
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// Lists of commands show a sentence each; CLI11's own show their examples too.
class HelpFormat : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream line;
    CLI::detail::format_help(line, command->get_name(), first_sentence(command->get_description()),
                             column_width_);
    return line.str();
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return without_numbers(CLI::Formatter::make_option_opts(option));
  }
};

// "TEXT:{offline,online,both}", as CLI11 writes what a value is: the placeholder of the value, and
// all allowed values (none: any).
void add_type(const std::string& type, Json& option) {
  option["value"] = type.substr(0, type.find(':'));
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return;
  for (std::size_t from = open + 1; from < close;) {
    const std::size_t to = std::min(type.find(',', from), close);
    option["choices"].push_back(type.substr(from, to - from));
    from = to + 1;
  }
}

// CLI11 takes "-1" and what is too large for 64 bits as some unsigned number, and NaN as within any
// range.
std::string fault_of_whole(const std::string& text, std::uint64_t most) {
  std::uint64_t value = 0;
  const bool hex = text.starts_with("0x");
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + (hex ? 2 : 0), end, value, hex ? 16 : 10);
  if (read.ec == std::errc{} && read.ptr == end && value <= most) return {};
  return "found " + text + ", expected a whole number from 0 to " + std::to_string(most);
}

std::string fault_of_real(const std::string& text) {
  double value = 0;
  const bool read = CLI::detail::lexical_cast(text, value);
  return !read || std::isfinite(value) ? std::string() : "found " + text + ", expected a number";
}

void check_number(CLI::Option& option) {
  const std::string type = option.get_type_name();
  const bool threads = option.check_name("--threads") || option.check_name("--jobs");
  const std::uint64_t most = threads ? kMostThreads : std::numeric_limits<std::uint64_t>::max();
  if (type.starts_with("UINT")) {
    option.check([most](const std::string& text) { return fault_of_whole(text, most); });
  } else if (type.starts_with("FLOAT")) {
    option.check(fault_of_real);
  }
}

// A positional has one name: "PATHS"; a flag's value is empty.
Json describe_option(const CLI::Option& option) {
  Json names = Json::array();
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  if (!option.nonpositional()) names.push_back(option.get_name(true));
  Json text{{"names", std::move(names)},
            {"value", ""},
            {"choices", Json::array()},
            {"help", option.get_description()}};
  if (option.get_items_expected_max() > 0) add_type(without_numbers(option.get_type_name()), text);
  return text;
}

Json describe_command(const CLI::App& command, const std::string& parents = "");

// An option group is a command without a name, whose options are its parent's.
void add_parts(const CLI::App& command, Json& text) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    text[option->nonpositional() ? "options" : "positionals"].push_back(describe_option(*option));
  }
  for (const CLI::App* part : command.get_subcommands(nullptr)) {
    if (part->get_name().empty()) {
      add_parts(*part, text);
    } else if (!is_hidden(*part)) {
      text["commands"].push_back(describe_command(*part, text["name"].get<std::string>()));
    }
  }
}

// The command without its hidden parts, its name with those of its parent commands: "bubblesim
// capture attach". `parents`: "bubblesim capture", empty for the program.
Json describe_command(const CLI::App& command, const std::string& parents) {
  Json text{{"name", below(parents, command.get_name())},
            {"help", command.get_description()},
            {"options", Json::array()},
            {"positionals", Json::array()},
            {"commands", Json::array()}};
  add_parts(command, text);
  return text;
}

std::vector<std::string> option_names(const Json& command) {
  std::vector<std::string> names;
  for (const Json& option : command["options"]) names.push_back(option["names"].back());
  return names;
}

// The last words of the commands below it, in order.
std::vector<std::string> command_names(const Json& command) {
  std::vector<std::string> names;
  for (const Json& part : command["commands"]) {
    const auto name = part["name"].get<std::string>();
    names.push_back(name.substr(name.rfind(' ') + 1));
  }
  return names;
}

// The fault of the first word that the command did not take.
Error unknown_word_of(const Json& command, const std::string& word) {
  const auto name = command["name"].get<std::string>();
  const std::size_t space = name.find(' ');
  const bool program = space == std::string::npos;
  std::string message;
  if (word.starts_with('-')) {
    message = unknown_name_message("option", word.substr(0, word.find('=')),
                                   option_names(command));
  } else if (!command["commands"].empty()) {
    message = unknown_name_message("command", word, command_names(command));
  } else {
    message = "found " + quote_found(word) + ", expected no more words";
  }
  return {program ? "" : name.substr(space + 1), {},
          message + "; bubblesim help" + (program ? "" : name.substr(space)) +
              " says what they do"};
}

}  // namespace

void set_help_format(CLI::App& program) { program.formatter(std::make_shared<HelpFormat>()); }

void check_numbers(CLI::App& program) {
  for (CLI::Option* option : program.get_options()) check_number(*option);
  for (CLI::App* command : program.get_subcommands({})) check_numbers(*command);
}

std::optional<Error> unknown_word(const CLI::App& program) {
  std::string parents;
  for (const CLI::App* command = &program;;) {
    std::vector<std::string> words = command->remaining();
    std::erase(words, "--");
    if (!words.empty()) return unknown_word_of(describe_command(*command, parents), words.front());
    const std::vector<CLI::App*> parsed = command->get_subcommands();
    if (parsed.empty()) return std::nullopt;
    parents = below(parents, command->get_name());
    command = parsed.back();
  }
}

namespace {

// The command that the words name, each a subcommand of the one before.
Result<const CLI::App*> find_command(const CLI::App& program,
                                     const std::vector<std::string>& words) {
  const CLI::App* command = &program;
  for (const std::string& word : words) {
    const CLI::App* found = nullptr;
    for (const CLI::App* part : command->get_subcommands(nullptr)) {
      if (part->check_name(word)) found = part;
    }
    if (found == nullptr) {
      return fail(command == &program ? "" : command->get_name(), {},
                  unknown_name_message("command", word,
                                       command_names(describe_command(*command))));
    }
    command = found;
  }
  return command;
}

ExitCode print_help(const CLI::App& program, const std::vector<std::string>& words) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto command, find_command(program, words));
  std::string name = program.get_name();
  for (const std::string& word : words) name += " " + word;
  print(command->get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal));
  return kExitOk;
}

}  // namespace

void add_document_commands(CLI::App& parser, AppContext& context) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* help = parser.add_subcommand(
      "help", "Says what a command does, with its options and examples.\n\n"
              "Examples:\n  bubblesim help\n  bubblesim help run\n  bubblesim help capture attach");
  help->add_option("COMMAND", *words, "Of which command");
  help->callback(
      [&parser, words, &context] { context.exit_code = reported(print_help(parser, *words)); });
  CLI::App* describe = parser.add_subcommand(
      "describe", "Prints all commands and options as JSON (scripts/cmake/documents.py).");
  describe->group("");
  describe->callback(
      [&parser] { print(indented_text(describe_command(parser), 1)); });
}

}  // namespace bubblesim::app
