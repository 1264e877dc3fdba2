// bubblesim import: profiler traces to one .btr file; bubblesim export: that to other forms.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>

#include "sim/app/shared/app.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/text/text_table.hpp"
#include "traces/export/chakra_export.hpp"
#include "traces/export/chrome_trace.hpp"
#include "traces/export/job_export.hpp"
#include "traces/format/trace_writer.hpp"
#include "traces/launch_shapes.hpp"
#include "traces/trace_origin.hpp"

namespace bubblesim::app {
namespace {

struct ImportArguments {
  JobArguments job;
  std::string output;
  bool json = false;
};

/// What became of an import.
struct Summary {
  std::string output;
  std::uint64_t bytes = 0;
  std::size_t operations = 0;
  std::size_t calls = 0;
  traces::ShapedTime kernels;
};

Summary summary_of(const run::LoadedTrace& trace, const std::string& output) {
  std::error_code ignored;
  Summary summary;
  summary.output = output;
  summary.bytes = std::filesystem::file_size(output, ignored);
  for (const auto& rank : trace.job.ranks) {
    summary.operations += rank.device_ops.size();
    summary.calls += rank.host_calls.size();
    summary.kernels.add(traces::kernel_time(rank));
  }
  return summary;
}

/// What was lost comes first, then the sums, then all that was assumed.
void print_summary(const Summary& summary, const run::LoadedTrace& trace) {
  fmt::print("{}", loss_lines(trace.counters));
  fmt::print("{}: {} ranks, {} device operations, {} host calls, {}\n", summary.output,
             trace.job.ranks.size(), summary.operations, summary.calls,
             format_bytes({summary.bytes}));
  if (std::ranges::any_of(trace.job.ranks, traces::has_inferred_layout)) {
    fmt::print("starts are not recorded: laid out by durations, dependencies and collectives\n");
  } else if (trace.job.ranks.size() > 1) {
    fmt::print("{}\n", trace.residual
                          ? "clocks aligned on collective ends, median residual " +
                                format_duration(*trace.residual)
                      : trace.clocks_apart
                              ? "clocks not aligned: ranks have no collective in common"
                              : "ranks have one clock, that of their recording");
  }
  if (summary.kernels.without_shape > Duration{}) {
    fmt::print("launch shapes unknown for {:.1f} % of the kernel time\n",
               100 * summary.kernels.unknown_share());
  }
  for (const auto& [name, entry] : trace.counters) {
    if (entry.severity < Severity::kLoss) fmt::print("{}", counter_line(name, entry));
  }
}

void print_json(const Summary& summary, const run::LoadedTrace& trace) {
  Json ranks = list_json(trace.job.ranks, [](const auto& rank) -> Json {
    return {{"rank", rank.rank},
            {"source", rank.provenance.source},
            {"format", rank.provenance.format},
            {"device", rank.device.name},
            {"device_operations", rank.device_ops.size()},
            {"host_calls", rank.host_calls.size()}};
  });
  const Json document = {
      {"format", "bubblesim.import/1"},
      {"output", summary.output},
      {"bytes", summary.bytes},
      {"device_operations", summary.operations},
      {"host_calls", summary.calls},
      {"alignment_residual_ns", trace.residual ? Json(to_ns(*trace.residual)) : Json(nullptr)},
      {"kernel_ns", to_ns(summary.kernels.all)},
      {"kernel_ns_without_launch_shape", to_ns(summary.kernels.without_shape)},
      {"ranks", std::move(ranks)},
      {"counters", counters_object(trace.counters)}};
  fmt::print("{}\n", indented_text(document, 2));
}

ExitCode run_import(const ImportArguments& arguments, const AppContext& context) {
  if (arguments.job.paths.empty()) return fail({}, "PATHS", "expected traces");
  if (arguments.output.empty()) {
    return fail({}, "--output", "expected the file to write: add -o job.btr");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const auto trace, load_job(arguments.job, context));
  BUBBLESIM_RETURN_IF_ERROR(make_folder_of(arguments.output));
  BUBBLESIM_RETURN_IF_ERROR(traces::format::write_job(arguments.output, trace.job));
  const Summary summary = summary_of(trace, arguments.output);
  if (arguments.json) print_json(summary, trace);
  else print_summary(summary, trace);
  return trace.counters.has_error() ? kExitUntrusted : kExitOk;
}

}  // namespace

void add_import_command(CLI::App& parser, AppContext& context) {
  auto [command, arguments] = add_command(
      parser, context, run_import, "import",
      "Reads profiler traces of a job, aligns the ranks' clocks, writes one .btr file.\n\n"
      "Example:\n  bubblesim import traces/samples/training -o job.btr\n\n"
      "Layer times of an engine, and what its steps took: python3 -m bubblesim.layers, "
      "bubblesim.steps.");
  command->add_option("PATHS", arguments->job.paths,
                      "PyTorch profiler JSON (.json), one file a rank; Nsight Systems exports "
                      "(nsys export --type sqlite); each also as .gz; or a folder of them");
  add_cluster_option(*command, arguments->job);
  command->add_option("-o,--output", arguments->output, "The .btr file to write");
  command->add_flag("--json", arguments->json, "Write the summary as JSON instead of text");
  context.outputs.writes(*command, "--output");
}

// bubblesim export: a recorded job as files of other tools: Perfetto, Chakra, CSV.

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
  BUBBLESIM_RETURN_IF_ERROR(arguments.format == "chakra" ? write_chakra(trace.job, output)
                            : arguments.format == "csv"  ? write_csv(trace.job, output)
                                                         : write_perfetto(trace.job, output));
  return kExitOk;
}

}  // namespace

void add_export_command(CLI::App& parser, AppContext& context) {
  auto [command, arguments] = add_command(
      parser, context, run_export, "export",
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
  context.outputs.writes(*command, {"--chrome", "--output"});
}

}  // namespace bubblesim::app
