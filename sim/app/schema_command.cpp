// bubblesim schema: JSON Schemas of config files, for editors and other programs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "sim/app/app.hpp"
#include "sim/app/policy_options.hpp"
#include "sim/app/schema_kinds.hpp"
#include "sim/base/nearest.hpp"

namespace bubblesim::app {
namespace {

struct SchemaArguments {
  std::string kind;
  std::string folder;
  std::vector<std::string> policy_libraries;
};

int list_kinds(const std::vector<SchemaKind>& kinds) {
  for (const SchemaKind& kind : kinds) {
    fmt::print("{:<12} configs/{:<12} {}\n", kind.name, kind.folder, kind.what);
  }
  return kExitOk;
}

Result<void> write_kind(const SchemaKind& kind, const std::string& folder,
                        const AppContext& context) {
  const auto path = std::filesystem::path(folder) / (kind.name + ".schema.json");
  return write_output(path.string(), schema_text(kind, context.policies));
}

ExitCode run_schema(const SchemaArguments& arguments, AppContext& context) {
  BUBBLESIM_RETURN_IF_ERROR(load_policy_libraries(arguments.policy_libraries, context));
  const std::vector<SchemaKind> kinds = schema_kinds(context.policies);
  if (arguments.kind.empty() && arguments.folder.empty()) return list_kinds(kinds);
  std::vector<std::string> names;
  for (const SchemaKind& kind : kinds) {
    names.push_back(kind.name);
    if (!arguments.kind.empty() && arguments.kind != kind.name) continue;
    if (arguments.folder.empty()) {
      std::fputs(schema_text(kind, context.policies).c_str(), stdout);
      return kExitOk;
    }
    BUBBLESIM_RETURN_IF_ERROR(write_kind(kind, arguments.folder, context));
    if (!arguments.kind.empty()) return kExitOk;
  }
  if (arguments.kind.empty()) return kExitOk;
  return fail(unknown_name_message("kind of file", arguments.kind, names));
}

}  // namespace

void add_schema_command(CLI::App& parser, AppContext& context) {
  auto arguments = std::make_shared<SchemaArguments>();
  CLI::App* command = parser.add_subcommand(
      "schema", "Prints the JSON Schema of a kind of config file, or lists the kinds.\n\n"
                "Example:\n  bubblesim schema run\n  bubblesim schema --write configs/schema");
  command->add_option("KIND", arguments->kind, "run, device, cluster, ...");
  command->add_option("--write", arguments->folder,
                      "Write KIND.schema.json of this kind, or of all, into a folder");
  add_policy_library_option(*command, arguments->policy_libraries);
  context.outputs.writes(*command, "--write", files_named({""}, ".schema.json"));
  command->callback(
      [arguments, &context] { context.exit_code = reported(run_schema(*arguments, context)); });
}

}  // namespace bubblesim::app
