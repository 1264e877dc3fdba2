// bubblesim schedule: a pipeline schedule as a table, with its bubbles; from a rule or a CSV.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "sim/app/app.hpp"
#include "sim/app/schedule_text.hpp"
#include "sim/base/input_file.hpp"
#include "sim/pipeline/check.hpp"
#include "sim/pipeline/csv.hpp"
#include "sim/pipeline/registry.hpp"
#include "sim/pipeline/render.hpp"

namespace bubblesim::app {
namespace {

constexpr std::uint32_t kMostOfPlan = 65'536;

struct ScheduleArguments {
  std::string name;
  pipeline::ScheduleRequest request;
  std::string times = "F=1,I=1,W=1,p2p=0";
  std::string edges, sizes;
  std::string from;
  std::string csv, plot, json;
};

struct LoadedSchedule {
  pipeline::PlannedSchedule plan;
  std::optional<pipeline::ClosedForm> form;
  std::string note;  // about what was read
};

int list_schedules() {
  for (const pipeline::ScheduleSpec& spec : pipeline::schedule_specs()) {
    fmt::print("{:<12} {}\n             for {}\n             source: {}\n", spec.name,
               spec.summary, spec.rule, spec.source);
  }
  return kExitOk;
}

std::string note_of(const pipeline::CsvSchedule& read) {
  std::string note;
  if (read.spelling == pipeline::CsvSpelling::kOld) {
    note += "spelling: old, B is the input gradient and BW the whole backward\n";
  }
  for (const auto& [kind, count] : read.ignored) {
    note += fmt::format("not compute, left out: {} {}\n", count, kind);
  }
  return note;
}

Result<pipeline::StageGraph> graph_of(const ScheduleArguments& arguments, std::uint32_t stages,
                                      std::uint32_t micro_batches) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto edges, parse_edges(arguments.edges));
  for (std::uint32_t stage = 1; arguments.edges.empty() && stage < stages; ++stage) {
    edges.push_back({stage - 1, stage});
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const auto sizes, parse_sizes(arguments.sizes));
  return pipeline::make_stage_graph(stages, edges, sizes, micro_batches);
}

CheckedResult<LoadedSchedule> read_schedule(const ScheduleArguments& arguments) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto text, read_text_file(arguments.from));
  BUBBLESIM_ASSIGN_OR_RETURN(auto read, pipeline::parse_csv(text, arguments.from));
  LoadedSchedule loaded;
  loaded.note = note_of(read);
  loaded.plan.schedule = std::move(read.schedule);
  pipeline::Schedule& schedule = loaded.plan.schedule;
  if (arguments.edges.empty() && arguments.sizes.empty()) {
    loaded.plan.graph = pipeline::infer_graph(schedule);
  } else {
    BUBBLESIM_ASSIGN_OR_RETURN(loaded.plan.graph,
                               graph_of(arguments, schedule.stages, schedule.micro_batches));
  }
  Errors faults = pipeline::check(schedule, loaded.plan.graph);
  if (!faults.empty()) return tl::make_unexpected(std::move(faults));
  return loaded;
}

Result<LoadedSchedule> make_named(const ScheduleArguments& arguments,
                                  const pipeline::UnitTimes& times) {
  pipeline::ScheduleRequest request = arguments.request;
  if (!arguments.edges.empty() || !arguments.sizes.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(request.graph,
                               graph_of(arguments, request.ranks, request.micro_batches));
  }
  LoadedSchedule loaded;
  BUBBLESIM_ASSIGN_OR_RETURN(loaded.plan, pipeline::make_schedule(arguments.name, request));
  loaded.form = pipeline::closed_form(arguments.name, request, times);
  return loaded;
}

CheckedResult<LoadedSchedule> load(const ScheduleArguments& arguments,
                                   const pipeline::UnitTimes& times) {
  if (!arguments.from.empty()) return read_schedule(arguments);
  return make_named(arguments, times);
}

Result<void> write_outputs(const ScheduleArguments& arguments, const LoadedSchedule& loaded,
                           const pipeline::UnitTimes& times,
                           const pipeline::Execution& execution) {
  const auto& [schedule, graph] = loaded.plan;
  if (!arguments.csv.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(
        write_output(arguments.csv, pipeline::write_csv_steps(schedule, graph)));
  }
  if (!arguments.plot.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(
        write_output(arguments.plot, pipeline::render_svg(schedule, execution)));
  }
  if (!arguments.json.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(write_output(
        arguments.json, pipeline::render_json(schedule, graph, times, execution)));
  }
  return {};
}

ExitCode run_schedule(const ScheduleArguments& arguments) {
  if (arguments.name.empty() && arguments.from.empty()) return list_schedules();
  BUBBLESIM_ASSIGN_OR_RETURN(const auto times, parse_unit_times(arguments.times));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto loaded, load(arguments, times));
  const auto& [schedule, graph] = loaded.plan;
  const pipeline::Execution execution = pipeline::execute(schedule, graph, times);
  BUBBLESIM_RETURN_IF_ERROR(write_outputs(arguments, loaded, times, execution));
  const std::string text =
      loaded.note + unused_times_text(times, schedule) +
      schedule_text(schedule, times, execution, loaded.form);
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

void add_plan_options(CLI::App& command, ScheduleArguments& arguments, CLI::Option* from) {
  const auto planned = [&](CLI::Option* option) { option->excludes(from); };
  planned(command.add_option("--stages", arguments.request.ranks,
                             "Depth of the pipeline, p: one rank a stage (default 4)")
              ->check(CLI::Range(1U, pipeline::kMaxRanks)));
  planned(command.add_option("--micro-batches", arguments.request.micro_batches,
                             "Micro-batches an iteration, m (default 8)"));
  planned(command.add_option("--chunks", arguments.request.chunks,
                             "interleaved: chunks of the model a rank, v (default 2)")
              ->check(CLI::Range(1U, kMostOfPlan)));
  planned(command.add_option("--group", arguments.request.group,
                             "interleaved: contiguous micro-batches of a chunk, at least p "
                             "(default p)")
              ->check(CLI::Range(1U, kMostOfPlan)));
}

}  // namespace

void add_schedule_command(CLI::App& parser, AppContext& context) {
  auto arguments = std::make_shared<ScheduleArguments>();
  CLI::App* command = parser.add_subcommand(
      "schedule",
      "Shows a pipeline schedule as a table, with its bubbles and peak activations.\n"
      "Without NAME: lists the schedules.\n\n"
      "Examples:\n"
      "  bubblesim schedule\n"
      "  bubblesim schedule 1f1b --stages 4 --micro-batches 8\n"
      "  bubblesim schedule interleaved --chunks 2 --times F=10,I=12,W=8,p2p=1\n"
      "  bubblesim schedule dualpipev --plot dualpipev.svg --csv dualpipev.csv\n"
      "  bubblesim schedule --from dualpipev.csv --json dualpipev.json\n"
      "  bubblesim schedule graph --edges 0-2,1-2,2-3 --sizes 1,1,2,2");
  CLI::Option* name = command->add_option("NAME", arguments->name, "Which schedule");
  CLI::Option* from =
      command
          ->add_option("--from", arguments->from,
                       "Read a table instead: CSV in the grammar of PyTorch's pipelining")
          ->excludes(name);
  add_plan_options(*command, *arguments, from);
  command->add_option("--edges", arguments->edges,
                      "graph, or --from: PRODUCER-CONSUMER of stages, comma-separated "
                      "(default: a chain)");
  command->add_option("--sizes", arguments->sizes,
                      "graph: samples in a micro-batch of each stage, comma-separated");
  command->add_option("--times", arguments->times,
                      "Whole numbers in one unit: F, I, W, p2p; B (default I+W) and FB, a "
                      "forward and a backward at once (default F+B)");
  command->add_option("--csv", arguments->csv, "Write the table as CSV");
  command->add_option("--plot", arguments->plot, "Draw it as SVG");
  command->add_option("--json", arguments->json, "Write table, times and bubbles as JSON");
  context.outputs.writes(*command, "--csv");
  context.outputs.writes(*command, "--plot");
  context.outputs.writes(*command, "--json");
  command->callback([arguments, &context] {
    context.exit_code = reported(run_schedule(*arguments));
  });
}

}  // namespace bubblesim::app
