#include "sim/app/policy_libraries.hpp"

#include <CLI/CLI.hpp>
#include <set>

#include "sim/plugin/load_policies.hpp"
#include "sim/sweep/program_version.hpp"

namespace bubblesim::app {
namespace {

Result<void> load(const std::string& wanted, AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path,
                             plugin::find_policy_library(wanted, context.policy_folders));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto names, plugin::load_policies(path, context.policies));
  for (const std::string& name : names) context.policy_files.emplace(name, path);
  return {};
}

}  // namespace

void add_policy_library_option(CLI::App& command, std::vector<std::string>& wanted) {
  command
      .add_option("--policy-library", wanted,
                  "Shared library with policies of your own: a path, or a name in a folder of "
                  "$BUBBLESIM_POLICY_PATH; may be given several times")
      ->allow_extra_args(false);  // a word after its value is the command's own
}

CheckedResult<void> load_policy_libraries(const std::vector<std::string>& wanted,
                                          AppContext& context) {
  Errors faults;
  for (const std::string& library : wanted) {
    if (auto loaded = load(library, context); !loaded) faults.push_back(loaded.error());
  }
  if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
  return {};
}

Result<std::string> version_with_policies(const AppContext& context) {
  std::set<std::string> libraries;
  for (const auto& [policy, file] : context.policy_files) libraries.insert(file);
  return sweep::version_with_libraries(libraries);
}

}  // namespace bubblesim::app
