// bubblesim fit sharing: a device's constants of time slices and switches, from co-location pairs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "sim/app/fit_commands.hpp"
#include "sim/base/units.hpp"
#include "sim/fit/fit_sharing.hpp"

namespace bubblesim::app {
namespace {

struct SharingFitArguments {
  std::string table, setting = "colocation_a100";
  std::size_t rounds = 6, threads = 0;
};

int fit_sharing(const SharingFitArguments& arguments, const AppContext& context) {
  const auto table = CsvTable::read(arguments.table);
  if (!table) return report_fault(table.error());
  const auto rows = validate::read_sharing_rows(*table);
  if (!rows) return report_faults(rows.error());
  const auto stage = validate::find_sharing_stage(arguments.setting, context.config_folder,
                                                  context.policies);
  if (!stage) return report_faults(stage.error());
  ProgressLine line;
  const auto fit = fit::fit_sharing(*rows, *stage, threads_of(arguments.threads),
                                    arguments.rounds, line.callback());
  line.clear();
  if (!fit) return report_faults(fit.error());
  fmt::print("{} rows, {} evaluations, mean |error| {:.2f} % -> {:.2f} %\n", fit->rows,
             fit->evaluations, 100 * fit->start_error, 100 * fit->error);
  const auto& gpu = stage->machine.gpu;
  fmt::print("{:<16} {:>10} {:>10}\n", "constant", "start", "fitted");
  const auto print = [](const char* name, Duration start, Duration fitted) {
    fmt::print("{:<16} {:>10} {:>10}\n", name, format_duration(start), format_duration(fitted));
  };
  print("time_slice", gpu.time_slice, fit->time_slice);
  print("context_switch", gpu.context_switch, fit->context_switch);
  print("client_switch", gpu.client_switch, fit->client_switch);
  return kExitOk;
}

}  // namespace

void add_fit_sharing(CLI::App& fit, AppContext& context) {
  auto arguments = std::make_shared<SharingFitArguments>();
  CLI::App* it = fit.add_subcommand(
      "sharing", "Time slice and costs of switches: constants of configs/devices/*.json, from rows "
                 "with the role fit of measured co-location pairs. Prints them.");
  it->add_option("--table", arguments->table, "A CSV file as `bubblesim validate sharing` reads")
      ->required();
  it->add_option("--setting", arguments->setting, "A file of configs/validation")
      ->capture_default_str();
  it->add_option("--rounds", arguments->rounds, "At most so many rounds over the constants")
      ->capture_default_str();
  it->add_option("--jobs", arguments->threads, "Threads; 0: one a core")->capture_default_str();
  it->callback([arguments, &context] { context.exit_code = fit_sharing(*arguments, context); });
}

}  // namespace bubblesim::app
