// bubblesim new-policy: a project of a policy of one's own, which builds, passes its test and runs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "sim/app/shared/app.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/plugin/policy_project.hpp"

namespace bubblesim::app {
namespace {

struct NewPolicyArguments {
  std::string name;
  std::string folder;
};

ExitCode new_policy(const NewPolicyArguments& arguments, const AppContext& context) {
  if (context.policies.find(arguments.name)) {
    return fail("NAME", {}, "found \"" + arguments.name +
                                "\", a policy that comes with bubblesim");
  }
  auto files = plugin::policy_project(arguments.name);
  if (!files) return fail("NAME", {}, files.error().message);
  const std::string folder = arguments.folder.empty() ? arguments.name : arguments.folder;
  Errors faults;
  for (plugin::ProjectFile& file : *files) {
    file.name = folder + "/" + file.name;
    std::error_code code;
    if (std::filesystem::exists(file.name, code)) {
      faults.push_back({file.name, {}, "is there already, and is left as it is"});
    }
  }
  if (!faults.empty()) return tl::make_unexpected(faults);
  for (const plugin::ProjectFile& file : *files) {
    BUBBLESIM_RETURN_IF_ERROR(write_output(file.name, file.text));
    fmt::print("{}\n", file.name);
  }
  fmt::print("Next: cmake -S {0} -B {0}/build && cmake --build {0}/build && "
             "ctest --test-dir {0}/build\n", folder);
  return kExitOk;
}

}  // namespace

void add_new_policy_command(CLI::App& parser, AppContext& context) {
  auto [command, arguments] = add_command(
      parser, context, new_policy,
      "new-policy", "Writes a policy of your own, outside the tree, with its test.\n\n"
                    "Example:\n  bubblesim new-policy my_gate --dir out/my_gate");
  command->add_option("NAME", arguments->name, "In snake_case")->required();
  command->add_option("--dir", arguments->folder, "Folder for its files (default: NAME)");
}

}  // namespace bubblesim::app
