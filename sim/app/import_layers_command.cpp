// bubblesim import layers: a profile's layer times to one file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "sim/app/import_commands.hpp"
#include "sim/base/json.hpp"
#include "sim/step_cost/layer_file.hpp"
#include "sim/step_cost/profile_folder.hpp"
#include "sim/text/counter_text.hpp"

namespace bubblesim::app {
namespace {

struct LayersArguments {
  std::string folder;
  std::string output;
};

ExitCode import_layers(const LayersArguments& arguments) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto imported, step_cost::read_profile_folder(arguments.folder));
  const step_cost::LayerTables& tables = imported.tables;
  BUBBLESIM_RETURN_IF_ERROR(
      write_output(arguments.output, compact_text(step_cost::layers_json(tables)) + "\n"));
  fmt::print("{}: {} on {}, {}\n", arguments.output, tables.model, tables.gpu, tables.engine);
  for (const step_cost::RankTables& rank : tables.ranks) {
    fmt::print("  {} GPU{} a layer: {} layers, {} attention times{}\n", rank.tensor,
               rank.tensor == 1 ? "" : "s", rank.dense.size() + 3,
               rank.decode.microseconds().size() + rank.prefill.microseconds().size() +
                   rank.mixed.microseconds().size(),
               rank.experts ? ", experts" : "");
  }
  fmt::print("{}", counter_notes(imported.counters));
  return kExitOk;
}

}  // namespace

void add_import_layers(CLI::App& parent, AppContext& context) {
  auto arguments = std::make_shared<LayersArguments>();
  CLI::App* command = parent.add_subcommand(
      "layers", "Layer times that LLMServingSim's profiler measured of an engine, as one file for "
                "`bubblesim validate serving --layers` and \"layers\" of a config's engine.");
  command->add_option("DIR", arguments->folder, "Folder with meta.yaml and tp1/, tp2/, ...")
      ->required();
  command->add_option("-o,--output", arguments->output, "The file to write")->required();
  context.outputs.writes(*command, "--output");
  command->callback(
      [arguments, &context] { context.exit_code = reported(import_layers(*arguments)); });
}

}  // namespace bubblesim::app
