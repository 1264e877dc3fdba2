// Entry point: builds the parser, runs one command.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "policies/builtin.hpp"
#include "sim/app/shared/app.hpp"
#include "sim/app/command_tree.hpp"
#include "sim/app/shared/own_process.hpp"
#include "sim/app/shared/policy_options.hpp"

namespace {

namespace fs = std::filesystem;

// The folder that bin/ is in, if this program was installed.
fs::path install_prefix() {
  return fs::path(bubblesim::app::program_folder()).parent_path();
}

// Where device files are: $BUBBLESIM_CONFIGS, else those installed with this program, else the
// folder of the source tree this was built from.
std::string default_config_folder() {
  if (const char* given = std::getenv("BUBBLESIM_CONFIGS")) return given;
  std::error_code code;
  const fs::path installed = install_prefix() / "share/bubblesim/configs";
  return fs::is_directory(installed / "devices", code) ? installed.string() : BUBBLESIM_CONFIG_DIR;
}

// $BUBBLESIM_POLICY_PATH, folders between colons; then where bubblesim_policy() installs.
std::vector<std::string> policy_folders() {
  std::vector<std::string> folders;
  const char* given = std::getenv("BUBBLESIM_POLICY_PATH");
  std::istringstream stream(given == nullptr ? "" : given);
  for (std::string folder; std::getline(stream, folder, ':');) {
    if (!folder.empty()) folders.push_back(folder);
  }
  folders.push_back((install_prefix() / "lib/bubblesim/policies").string());
  return folders;
}

// "bubblesim run DIR 'a b'": what was typed, whatever path the program was started by.
std::string command_line(int argc, char** argv) {
  std::string text = "bubblesim";
  for (int i = 1; i < argc; ++i) text += " " + bubblesim::app::shell_word(argv[i]);
  return text;
}

// Help or a fault, which is the first word that nothing declares, if there is one.
int exit_after(const CLI::App& parser, const CLI::ParseError& fault) {
  if (const auto unknown = bubblesim::app::unknown_word(parser)) {
    return bubblesim::app::report_fault(*unknown);
  }
  const int code = parser.exit(fault);
  return bubblesim::app::with_standard_output(code == 0 ? bubblesim::app::kExitOk
                                                        : bubblesim::app::kExitInputFault);
}

}  // namespace

int main(int argc, char** argv) {
  const bubblesim::app::CrashNotes crashes;
  bubblesim::app::AppContext context;
  context.policies = bubblesim::policies::builtin_policies();
  context.config_folder = default_config_folder();
  context.policy_folders = policy_folders();
  context.command_line = command_line(argc, argv);

  CLI::App parser{
      "Simulates filling the idle time of GPU training jobs with inference, from recorded "
      "traces.\n\nExamples:\n"
      "  bubblesim inspect traces/samples/training\n"
      "  bubblesim run traces/samples/training traces/samples/inference.json.gz\n"
      "  bubblesim run configs/runs/example.json --out out/example\n"};
  parser.name("bubblesim");
  bubblesim::app::set_help_format(parser);
  parser.set_version_flag("--version", bubblesim::app::version_text);
  parser.add_option("--configs", context.config_folder,
                    "Folder with devices/ (default: $BUBBLESIM_CONFIGS, else the installed one, "
                    "else the source tree's)");
  parser.require_subcommand(1);
  bubblesim::app::add_commands(parser, context);
  bubblesim::app::check_numbers(parser);
  parser.parse_complete_callback([&] {  // before the command runs
    bubblesim::Errors faults = context.outputs.faults(parser);
    if (faults.empty()) faults = bubblesim::app::load_policy_libraries(context);
    if (!faults.empty()) throw CLI::RuntimeError(bubblesim::app::report_faults(faults));
  });
  try {
    parser.parse(argc, argv);
  } catch (const CLI::ParseError& fault) {
    return exit_after(parser, fault);
  } catch (const std::system_error&) {  // how fmt::print says that it cannot
    if (std::ferror(stdout) == 0) throw;
  }
  return bubblesim::app::with_standard_output(context.exit_code);
}
