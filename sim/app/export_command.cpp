// bubblesim export: a recorded job as a Chrome trace that Perfetto opens.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "sim/app/app.hpp"
#include "traces/export/chrome_trace.hpp"
#include "traces/export/job_to_chrome.hpp"

namespace bubblesim::app {
namespace {

struct ExportArguments {
  std::vector<std::string> paths;
  std::string chrome;
};

int run_export(const ExportArguments& arguments) {
  ProgressLine progress;
  auto trace = run::load_trace(arguments.paths, progress.callback());
  progress.clear();
  if (!trace) return report_fault(trace.error());
  if (auto made = make_folder_of(arguments.chrome); !made) return report_fault(made.error());
  const auto stats =
      traces::write_chrome_trace_file(arguments.chrome, traces::job_to_chrome(trace->job));
  if (!stats) return report_fault(stats.error());
  fmt::print("{}: {} slices on {} threads; open it at https://ui.perfetto.dev\n",
             arguments.chrome, stats->slices, stats->threads);
  return kExitOk;
}

}  // namespace

void add_export_command(CLI::App& parser, AppContext& context) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = parser.add_subcommand(
      "export",
      "Writes a recorded job as a Chrome trace.\n\n"
      "Example:\n  bubblesim export job.btr --chrome job.json");
  command->add_option("PATHS", arguments->paths, "Traces of one job, or a folder")->required();
  command->add_option("--chrome", arguments->chrome, "The JSON file to write")->required();
  command->callback([arguments, &context] { context.exit_code = run_export(*arguments); });
}

}  // namespace bubblesim::app
