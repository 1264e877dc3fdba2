// bubblesim fit network: constants of a node's collectives from measured all-reduce tables.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "sim/app/fit_commands.hpp"
#include "sim/fit/fit_all_reduce.hpp"
#include "sim/hardware/cluster_spec_file.hpp"
#include "sim/validate/judges.hpp"

namespace bubblesim::app {
namespace {

struct NetworkArguments {
  std::string data;
  std::string cluster = validate::kAllReduceCluster;
  std::string output;
};

void print_fit(const fit::AllReduceFit& fit) {
  TextTable table({"GPUs", "fit rows", "|error|", "judge rows", "|error|", "octaves", "worst"},
                  {}, "");
  const auto percent = [](double share) { return fmt::format("{:.2f}%", 100 * share); };
  for (const fit::AllReduceErrors& errors : fit.tables) {
    table.row({fmt::to_string(errors.gpus), fmt::to_string(errors.fit_rows),
               percent(errors.fit_mean), fmt::to_string(errors.judge_rows),
               percent(errors.judge_mean), percent(errors.octave_mean), percent(errors.worst)});
  }
  fmt::print("{}\n{}", constants_text(fit.constants), table.text());
}

ExitCode fit_network(const NetworkArguments& arguments, const AppContext& context) {
  const std::string folder = context.config_folder + "/clusters";
  BUBBLESIM_ASSIGN_OR_RETURN(const auto cluster,
                             hardware::find_cluster_spec(arguments.cluster, folder));
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto tables,
      validate::read_all_reduce_folder(arguments.data + "/" + validate::kAllReduceFolder));
  BUBBLESIM_ASSIGN_OR_RETURN(auto fit, fit::fit_all_reduce(tables, cluster));
  print_fit(fit);
  for (fit::FittedConstant& constant : fit.constants) {
    constant.source = fmt::format(
        "fitted: bubblesim fit network --cluster {}, rings over {}, 2, 4 and 8 GPUs, half of the "
        "sizes", arguments.cluster, validate::kAllReduceFolder);
  }
  return write_fit(arguments.output, folder + "/" + arguments.cluster + ".json", fit.constants);
}

}  // namespace

void add_fit_network(CLI::App& fit, AppContext& context) {
  auto arguments = std::make_shared<NetworkArguments>();
  CLI::App* network = fit.add_subcommand(
      "network", "How long collectives take inside a node: constants of configs/clusters/*.json, "
                 "from measured all-reduce tables (sim/fit/fit_all_reduce.hpp says which).");
  network->alias("all-reduce");
  network->add_option("--data", arguments->data, "Folder of the public data sets")->required();
  network->add_option("--cluster", arguments->cluster,
                      "A file of configs/clusters: gives what is not fitted, and the start")
      ->capture_default_str();
  network->add_option("-o,--output", arguments->output,
                      "Write the cluster file here (default: print only)");
  context.outputs.writes(*network, "--output");
  network->callback([arguments, &context] {
    context.exit_code = reported(fit_network(*arguments, context));
  });
}

}  // namespace bubblesim::app
