// bubblesim fit training: a framework's host costs and slowdowns from measured training jobs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <vector>

#include "sim/app/fit_commands.hpp"
#include "sim/fit/fit_training.hpp"
#include "sim/synth/software_file.hpp"
#include "sim/validate/judges.hpp"
#include "sim/validate/report_text.hpp"

namespace bubblesim::app {
namespace {

using validate::TrainingTable;

struct TrainingArguments {
  std::string folder;
  std::string software;
  std::string tables =
      "megatron_deepspeed_a100_multi_node,megatron_deepspeed_a100_single_node,"
      "published_training_runs";
  std::string constants;
  std::string output;
  std::size_t threads = 0;
};

// Rows of other frameworks are left out, and tables that then have none.
CheckedResult<std::vector<TrainingTable>> load_tables(const TrainingArguments& arguments,
                                                      const AppContext& context) {
  std::vector<TrainingTable> out;
  for (const std::string& name : split_list(arguments.tables)) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        TrainingTable table,
        validate::load_training_table(arguments.folder + "/" + name + ".csv", "",
                                      context.config_folder));
    std::erase_if(table.rows, [&](const validate::TrainingRow& row) {
      return row.plan.software != arguments.software;
    });
    if (!table.rows.empty()) out.push_back(std::move(table));
  }
  return out;
}

std::vector<fit::FitSample> samples_of(const std::vector<TrainingTable>& tables) {
  std::vector<fit::FitSample> out;
  for (const TrainingTable& table : tables) {
    for (const validate::TrainingRow& row : table.rows) {
      if (row.role != validate::RowRole::kFit || !row.unpredictable.empty()) continue;
      out.push_back({row, &table.machine_of(row)});
    }
  }
  return out;
}

std::string names_of(const std::vector<TrainingTable>& tables) {
  std::string out;
  for (const TrainingTable& table : tables) out += (out.empty() ? "" : ", ") + table.name;
  return out;
}

void print_constants(const fit::TrainingFit& fit) {
  fmt::print("{} steps, mean |error| of fit rows {:.2f} % -> {:.2f} %\n\n{}", fit.steps,
             100 * fit.mean_error_before, 100 * fit.mean_error_after,
             constants_text(fit.constants));
}

std::vector<validate::TableNote> notes_of(const std::vector<TrainingTable>& tables) {
  std::vector<validate::TableNote> out;
  for (const TrainingTable& table : tables) out.push_back(table.note);
  return out;
}

void print_errors(std::vector<TrainingTable> tables, const fit::TrainingFit& fit,
                  std::size_t threads) {
  std::vector<validate::ReportRow> rows;
  for (TrainingTable& table : tables) {
    for (auto& [key, machine] : table.machines) machine.software = fit.software;
    const auto judged = validate::judge_training(table, threads, nullptr);
    rows.insert(rows.end(), judged.begin(), judged.end());
  }
  fmt::print("\n{}", validate::summary_text(validate::summarise(rows)));
}

ExitCode fit_training(TrainingArguments arguments, const AppContext& context) {
  arguments.threads = threads_of(arguments.threads);
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto software,
      synth::find_software(arguments.software, context.config_folder + "/software"));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto tables, load_tables(arguments, context));
  const std::vector<fit::FitSample> samples = samples_of(tables);
  if (samples.empty()) {
    return fail(arguments.folder, {},
                "no rows with role fit whose setting (configs/validation) has the "
                "software " + arguments.software + " in " + arguments.tables);
  }
  ProgressLine line;
  auto fit = fit::fit_training(
      samples, software, split_list(arguments.constants),
      [&](int step, double error) {
        line.show(fmt::format("step {}: mean error {:.2f} %", step, 100 * error));
      },
      arguments.threads);
  line.clear();
  if (!fit) return tl::make_unexpected(fit.error());
  fmt::print("{}", validate::tables_text(notes_of(tables)));
  print_constants(*fit);
  print_errors(tables, *fit, arguments.threads);
  std::string command = "bubblesim fit training --software " + arguments.software;
  if (!arguments.constants.empty()) command += " --constants " + arguments.constants;
  for (fit::FittedConstant& constant : fit->constants) {
    constant.source =
        fmt::format("fitted: {}, rows with role fit of {}", command, names_of(tables));
  }
  return write_fit(arguments.output,
                   context.config_folder + "/software/" + arguments.software + ".json",
                   fit->constants);
}

}  // namespace

void add_fit_training(CLI::App& fit, AppContext& context) {
  auto arguments = std::make_shared<TrainingArguments>();
  CLI::App* training = fit.add_subcommand(
      "training", "What a training framework costs on the host, and its slowdowns: constants of "
                  "configs/software/*.json, from rows with the role fit of measured tables.");
  training->add_option("--dir", arguments->folder, "Folder of the measured tables")->required();
  training->add_option("--software", arguments->software, "A file of configs/software: the start")
      ->required();
  training->add_option("--tables", arguments->tables, "Names of tables, comma-separated")
      ->capture_default_str();
  std::string names;
  for (const std::string& name : fit::fit_constants()) {
    names += (names.empty() ? "" : ", ") + name;
  }
  training->add_option("--constants", arguments->constants,
                       "What to fit, comma-separated (default: all of " + names + ")");
  training->add_option("-o,--output", arguments->output,
                       "Write the software file here (default: print only)");
  training->add_option("--jobs", arguments->threads, "Threads; 0: one a core")
      ->capture_default_str();
  context.outputs.writes(*training, "--output");
  training->callback([arguments, &context] {
    context.exit_code = reported(fit_training(*arguments, context));
  });
}

}  // namespace bubblesim::app
