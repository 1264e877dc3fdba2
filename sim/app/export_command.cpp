// bubblesim export: a recorded job as files of other tools: Perfetto, Chakra, CSV.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "sim/app/load_job.hpp"
#include "sim/text/counter_text.hpp"
#include "traces/export/chakra_export.hpp"
#include "traces/export/chrome_trace.hpp"
#include "traces/export/job_to_chrome.hpp"
#include "traces/export/job_to_csv.hpp"

namespace bubblesim::app {
namespace {

struct ExportArguments {
  JobArguments job;
  std::string format = "perfetto";
  std::string output;
  std::string chrome;  ///< short for --format perfetto --output
};

Result<void> write_perfetto(const traces::JobTrace& job, const std::string& output) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto stats,
                             traces::write_chrome_trace_file(output, traces::job_to_chrome(job)));
  fmt::print("{}: {} slices on {} threads; open it at https://ui.perfetto.dev\n", output,
             stats.slices, stats.threads);
  return {};
}

void print_if(std::uint64_t count, const char* what) {
  if (count > 0) fmt::print("  {} {}\n", count, what);
}

Result<void> write_chakra(const traces::JobTrace& job, std::string prefix) {
  if (prefix.ends_with(".et")) prefix.resize(prefix.size() - 3);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto stats, traces::export_chakra(job, prefix));
  fmt::print("{}.RANK.et: {} files, {} nodes, {} dependencies\n", prefix, stats.files.size(),
             stats.nodes, stats.dependencies);
  print_if(stats.collectives_as_compute,
           "collectives of kinds that Chakra lacks, written as computation");
  print_if(stats.ends_unknown, "sends and receives whose partner is not known");
  print_if(stats.groups_left_out, "process groups left out: their ranks are not known");
  print_if(stats.records_left_out, "memory samples and clock pairs left out");
  return {};
}

Result<void> write_csv(const traces::JobTrace& job, const std::string& output) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto rows, traces::write_job_csv_file(output, job));
  fmt::print("{}: {} rows\n", output, rows);
  return {};
}

ExitCode run_export(const ExportArguments& arguments, const AppContext& context) {
  const std::string& output = arguments.chrome.empty() ? arguments.output : arguments.chrome;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto trace, load_job(arguments.job, context));
  fmt::print("{}", loss_lines(trace.counters));
  BUBBLESIM_RETURN_IF_ERROR(make_folder_of(output));
  const Result<void> done = arguments.format == "chakra" ? write_chakra(trace.job, output)
                            : arguments.format == "csv"  ? write_csv(trace.job, output)
                                                         : write_perfetto(trace.job, output);
  if (!done) return tl::make_unexpected(done.error());
  return kExitOk;
}

}  // namespace

void add_export_command(CLI::App& parser, AppContext& context) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = parser.add_subcommand(
      "export",
      "Writes a recorded job for Perfetto, as Chakra execution traces or as CSV.\n\n"
      "Examples:\n  bubblesim export job.btr --chrome job.json\n"
      "  bubblesim export job.btr --format chakra -o job\n"
      "  bubblesim export job.btr --format csv -o job.csv");
  command->add_option("PATHS", arguments->job.paths, "Traces of one job, or a folder")->required();
  add_cluster_option(*command, arguments->job);
  CLI::Option* format =
      command->add_option("--format", arguments->format, "perfetto (default), chakra or csv")
          ->check(CLI::IsMember({"perfetto", "chakra", "csv"}));
  CLI::Option_group* where = command->add_option_group("output");
  where->add_option("-o,--output", arguments->output,
                    "The file to write; chakra: the prefix of one file a rank");
  where->add_option("--chrome", arguments->chrome,
                    "The JSON file to write: --format perfetto -o FILE")
      ->excludes(format);
  where->require_option(1);
  context.outputs.writes(*command, "--chrome");
  context.outputs.writes(*command, "--output");
  command->callback([arguments, &context] {
    context.exit_code = reported(run_export(*arguments, context));
  });
}

}  // namespace bubblesim::app
