// bubblesim schedule: a pipeline schedule as a table, with its bubbles; from a rule or a CSV.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/app/shared/app.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"
#include "sim/base/result.hpp"
#include "sim/pipeline/check.hpp"
#include "sim/pipeline/csv.hpp"
#include "sim/pipeline/execute.hpp"
#include "sim/pipeline/registry.hpp"
#include "sim/pipeline/render.hpp"
#include "sim/pipeline/schedule.hpp"

namespace bubblesim::app {
namespace {

// ---- What `bubblesim schedule` prints, and its small languages: times and stage edges.

using pipeline::BubbleKind;
using pipeline::BubbleMeasure;
using pipeline::Execution;
using pipeline::UnitTimes;

// Sums of these over the actions of the largest table stay below 2^63.
constexpr std::int64_t kMaxUnitTime = 100'000'000'000;
constexpr std::array<std::string_view, 6> kTimeNames = {"F", "I", "W", "p2p", "B", "FB"};

Result<void> set_time(UnitTimes& times, std::string_view name, std::int64_t value) {
  if (name == "F") times.every_stage.forward = value;
  else if (name == "I") times.every_stage.input_grad = value;
  else if (name == "W") times.every_stage.weight_grad = value;
  else if (name == "B") times.backward = value;
  else if (name == "FB") times.overlapped = value;
  else if (name == "p2p") times.p2p = value;
  else return fail("--times: " + unknown_name_message("time", name, kTimeNames));
  return {};
}

std::string by_rank(const std::vector<std::int64_t>& values) {
  const bool equal = std::adjacent_find(values.begin(), values.end(),
                                        std::not_equal_to<>()) == values.end();
  if (equal && values.size() > 1) return fmt::format("{} on every rank", values.front());
  return fmt::format("{}", fmt::join(values, " "));
}

// A double: over all ranks a sum of long times may pass 2^63.
double total(const Execution& execution, BubbleKind kind) {
  double sum = 0;
  for (const pipeline::ScheduleBubble& bubble : execution.bubbles) {
    if (bubble.kind == kind) sum += static_cast<double>(bubble.length);
  }
  return sum;
}

std::string times_text(const UnitTimes& times) {
  return fmt::format("F={} I={} W={} B={} p2p={}", times.every_stage.forward,
                     times.every_stage.input_grad, times.every_stage.weight_grad,
                     times.backward_of(0), times.p2p);
}

std::string form_text(const Execution& execution, const pipeline::ClosedForm& form) {
  const bool span = form.measure == BubbleMeasure::kSpan;
  const std::int64_t found =
      span ? execution.span_bubble()
           : *std::max_element(execution.idle.begin(), execution.idle.end());
  return fmt::format(
      "closed form            {} = {} idle a rank in its {}; here {}\n"
      "                       {}\n"
      "peak by closed form    {}\n",
      form.formula, form.bubble, span ? "span" : "makespan", found, form.source,
      by_rank(form.peaks));
}

// "F=10,I=12,W=8,p2p=1": whole numbers in any one unit; also B and FB (an overlapped pair).
// What is not named is 1, p2p 0, B = I+W, FB = F+B. A name given twice is a fault.
Result<UnitTimes> parse_unit_times(const std::string& text) {
  UnitTimes times;
  std::vector<std::string> given;
  for (const std::string& part : split_list(text)) {
    const std::size_t equals = part.find('=');
    const auto value = equals == std::string::npos
                           ? std::nullopt
                           : parse_number<std::int64_t>(part.substr(equals + 1));
    if (!value || *value < 0 || *value > kMaxUnitTime) {
      return fail("--times: found " + quote_found(part) +
                  "; expected NAME=WHOLE NUMBER such as F=10, at most 100000000000 (for "
                  "F=1, I=1.2, W=0.8 write F=10,I=12,W=8)");
    }
    const std::string name = part.substr(0, equals);
    BUBBLESIM_RETURN_IF_ERROR(set_time(times, name, *value));
    if (std::find(given.begin(), given.end(), name) != given.end()) {
      return fail("--times: found " + name + " twice; expected it once");
    }
    given.push_back(name);
  }
  return times;
}

// A line for B and for FB where they are given and the schedule has no such action.
std::string unused_times_text(const UnitTimes& times, const pipeline::Schedule& schedule) {
  const auto has = [&](pipeline::ActionKind kind) {
    return std::any_of(schedule.actions.begin(), schedule.actions.end(), [&](const auto& list) {
      return std::any_of(list.begin(), list.end(),
                         [&](const pipeline::Action& action) { return action.kind == kind; });
    });
  };
  const bool overlaps = has(pipeline::ActionKind::kOverlapped);
  std::string text;
  if (times.backward && !has(pipeline::ActionKind::kBackward) && !(overlaps && !times.overlapped)) {
    text += "note: B changes nothing: every backward pass of this table is split, into I and W\n";
  }
  if (times.overlapped && !overlaps) {
    text += "note: FB changes nothing: this table has no forward and backward pass at once\n";
  }
  return text;
}

// "0-1,0-2,1-3,2-3".
Result<std::vector<pipeline::StageEdge>> parse_edges(const std::string& text) {
  std::vector<pipeline::StageEdge> edges;
  for (const std::string& part : split_list(text)) {
    const std::size_t dash = part.find('-');
    const auto producer = parse_number<std::uint32_t>(part.substr(0, dash));
    const auto consumer = dash == std::string::npos
                              ? std::nullopt
                              : parse_number<std::uint32_t>(part.substr(dash + 1));
    if (!producer || !consumer) {
      return fail("--edges: found " + quote_found(part) +
                  "; expected PRODUCER-CONSUMER such as 0-1");
    }
    edges.emplace_back(*producer, *consumer);
  }
  return edges;
}

// "1,1,2".
Result<std::vector<std::uint32_t>> parse_sizes(const std::string& text) {
  std::vector<std::uint32_t> sizes;
  for (const std::string& part : split_list(text)) {
    const auto size = parse_number<std::uint32_t>(part);
    if (!size) {
      return fail("--sizes: found " + quote_found(part) + "; expected whole numbers such as 1,1,2");
    }
    sizes.push_back(*size);
  }
  return sizes;
}

// Table, both bubbles, closed form if there is one, peaks by rank.
std::string schedule_text(const pipeline::Schedule& schedule, const UnitTimes& times,
                          const Execution& execution,
                          const std::optional<pipeline::ClosedForm>& form) {
  std::string text = fmt::format("{}: {} ranks, {} stages, {} micro-batches; {}\n\n",
                                 schedule.name, schedule.ranks, schedule.stages,
                                 schedule.micro_batches, times_text(times));
  text += pipeline::render_grid(schedule, execution);
  text += fmt::format(
      "\nmakespan               {}\n"
      "bubble, makespan       {:.2f} %\n"
      "bubble, per-stage span {:.2f} %  (longest span {}, rank {}, idle {})\n"
      "idle, all ranks        fill-drain {:.0f}, between {:.0f}, gaps {:.0f}; contiguous {:.1f} %\n"
      "peak activations       {}  (micro-batches of one stage)\n",
      execution.makespan, 100 * execution.makespan_bubble_fraction(),
      100 * execution.span_bubble_fraction(), execution.longest_span, execution.longest_rank,
      execution.span_bubble(), total(execution, BubbleKind::kFillDrain),
      total(execution, BubbleKind::kBetween), total(execution, BubbleKind::kGap),
      100 * execution.contiguous_fraction(), by_rank(execution.peak_activations));
  if (form) text += form_text(execution, *form);
  return text;
}

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

Result<void> write_outputs(const ScheduleArguments& arguments,
                           const pipeline::PlannedSchedule& plan, const pipeline::UnitTimes& times,
                           const pipeline::Execution& execution) {
  BUBBLESIM_RETURN_IF_ERROR(write_output(
      arguments.csv, [&] { return pipeline::write_csv_steps(plan.schedule, plan.graph); }));
  BUBBLESIM_RETURN_IF_ERROR(write_output(
      arguments.plot, [&] { return pipeline::render_svg(plan.schedule, execution); }));
  return write_output(arguments.json, [&] {
    return pipeline::render_json(plan.schedule, plan.graph, times, execution);
  });
}

ExitCode run_schedule(const ScheduleArguments& arguments) {
  if (arguments.name.empty() && arguments.from.empty()) return list_schedules();
  BUBBLESIM_ASSIGN_OR_RETURN(const auto times, parse_unit_times(arguments.times));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto loaded, load(arguments, times));
  const auto& [schedule, graph] = loaded.plan;
  const pipeline::Execution execution = pipeline::execute(schedule, graph, times);
  BUBBLESIM_RETURN_IF_ERROR(write_outputs(arguments, loaded.plan, times, execution));
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
  auto [command, arguments] = add_command(
      parser, context, run_schedule, "schedule",
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
  context.outputs.writes(*command, {"--csv", "--plot", "--json"});
}

}  // namespace bubblesim::app
