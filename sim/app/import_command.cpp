// bubblesim import: profiler traces to one .btr file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "sim/app/app.hpp"
#include "sim/base/units.hpp"
#include "traces/format/trace_writer.hpp"

namespace bubblesim::app {
namespace {

struct ImportArguments {
  std::vector<std::string> paths;
  std::string output;
};

void print_summary(const run::LoadedTrace& trace, const std::string& output) {
  std::error_code ignored;
  const std::uint64_t size = std::filesystem::file_size(output, ignored);
  std::size_t operations = 0;
  std::size_t calls = 0;
  for (const auto& rank : trace.job.ranks) {
    operations += rank.device_ops.size();
    calls += rank.host_calls.size();
  }
  fmt::print("{}: {} ranks, {} device operations, {} host calls, {}\n", output,
             trace.job.ranks.size(), operations, calls, format_bytes({size}));
  if (trace.job.ranks.size() > 1) {
    fmt::print("clocks aligned on collective ends, median residual {}\n",
               format_duration(trace.residual));
  }
  for (const auto& [name, entry] : trace.counters) {
    fmt::print("  {:<8} {:<40} {:>10}  {}\n", severity_name(entry.severity), name, entry.count,
               entry.help);
  }
}

int run_import(const ImportArguments& arguments) {
  ProgressLine progress;
  auto trace = run::load_trace(arguments.paths, progress.callback());
  progress.clear();
  if (!trace) return report_fault(trace.error());
  if (auto made = make_folder_of(arguments.output); !made) return report_fault(made.error());
  if (auto written = traces::format::write_job(arguments.output, trace->job); !written) {
    return report_fault(written.error());
  }
  print_summary(*trace, arguments.output);
  return trace->counters.has_error() ? kExitUntrusted : kExitOk;
}

}  // namespace

void add_import_command(CLI::App& parser, AppContext& context) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* command = parser.add_subcommand(
      "import",
      "Reads profiler traces of a job, aligns the ranks' clocks, writes one .btr file.\n\n"
      "Example:\n  bubblesim import traces/samples/training -o job.btr");
  command->add_option("PATHS", arguments->paths,
                      "PyTorch profiler JSON (.json), one file a rank; Nsight Systems exports "
                      "(nsys export --type sqlite); each also as .gz; or a folder of them")
      ->required();
  command->add_option("-o,--output", arguments->output, "The .btr file to write")->required();
  command->callback([arguments, &context] { context.exit_code = run_import(*arguments); });
}

}  // namespace bubblesim::app
