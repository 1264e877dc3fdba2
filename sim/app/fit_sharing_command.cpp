// bubblesim fit sharing: a device's constants of slices, switches and parts, from measured sharing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>

#include "policies/builtin.hpp"
#include "sim/app/fit_commands.hpp"
#include "sim/base/units.hpp"
#include "sim/fit/fit_sharing.hpp"

namespace bubblesim::app {
namespace {

struct SharingFitArguments {
  std::vector<std::string> tables;
  std::string setting, device = "a100-40gb";
  std::size_t rounds = 6, threads = 0;
};

ExitCode fit_sharing(const SharingFitArguments& arguments, const AppContext& context) {
  const policy::Registry registry = policies::judged_policies();
  BUBBLESIM_ASSIGN_OR_RETURN(auto stage,
                             validate::make_sharing_stage(context.config_folder, registry));
  std::vector<validate::SharingRow> rows;
  for (const std::string& path : arguments.tables) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        const auto found,
        validate::add_sharing_table(stage, path, arguments.setting, context.config_folder));
    rows.insert(rows.end(), found.begin(), found.end());
  }
  ProgressLine line;
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto fit,
      fit::fit_sharing(rows, stage, arguments.device, threads_of(arguments.threads),
                       arguments.rounds, line.callback()));
  line.clear();
  fmt::print("{} rows, {} evaluations, mean |error| {:.2f} % -> {:.2f} %\n", fit.rows,
             fit.evaluations, 100 * fit.start_error, 100 * fit.error);
  const auto& gpu = stage.machines.at(arguments.device).gpu;
  TextTable table = constants_table();
  for (std::size_t i = 0; i < fit.constants.size(); ++i) {
    const fit::SharingConstant& constant = fit::sharing_constants()[i];
    const auto text = [&](double value) {
      return constant.is_time ? format_duration(Duration{std::llround(value)})
                              : fmt::format("{:.2f}", value);
    };
    table.row({std::string(constant.key), constant.is_time ? "" : "ratio",
               text(constant.get(gpu)), text(fit.constants[i])});
  }
  fmt::print("{}", table.text());
  return kExitOk;
}

}  // namespace

void add_fit_sharing(CLI::App& fit, AppContext& context) {
  auto arguments = std::make_shared<SharingFitArguments>();
  CLI::App* command = fit.add_subcommand(
      "sharing", "Time slice, costs of switches and what a part of the SMs reaches: constants of "
                 "configs/devices/*.json, from rows with the role fit of all tables given. "
                 "Prints them.");
  command->add_option("--table", arguments->tables,
                 "A CSV file as `bubblesim validate sharing` reads (may be repeated)")
      ->required();
  command->add_option("--setting", arguments->setting,
                 "A file of configs/validation; by default that of each table's form");
  command->add_option("--device", arguments->device,
                 "A file of configs/devices: rows that were measured on it count")
      ->capture_default_str();
  command->add_option("--rounds", arguments->rounds, "At most so many rounds over the constants")
      ->capture_default_str();
  command->add_option("--jobs", arguments->threads, "Threads; 0: one a core")
      ->capture_default_str();
  command->callback(
      [arguments, &context] { context.exit_code = reported(fit_sharing(*arguments, context)); });
}

}  // namespace bubblesim::app
