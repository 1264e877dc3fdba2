// bubblesim view: a trace, a run or a results store as one page to look at; bubblesim report: a
// store as one page to look at, print and pass on.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "sim/app/shared/app.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/app/shared/own_process.hpp"
#include "sim/app/shared/policy_options.hpp"
#include "sim/app/results_command.hpp"
#include "sim/app/shared/run_arguments.hpp"
#include "sim/base/child_process.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"
#include "sim/report/report_page.hpp"
#include "sim/report/view/run_view.hpp"
#include "sim/report/view/timeline_view.hpp"
#include "sim/report/view/view_picture.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/store/results_store.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::app {
namespace {

// bubblesim view: a trace, a run or a results store as one page to look at.

namespace fs = std::filesystem;

struct ViewArguments {
  JobArguments job;
  std::string output;
  std::string svg;
  std::string policies;
  report::PictureOptions picture;
  bool no_open = false;
};

enum class Subject : std::uint8_t { kTrace, kRunFolder, kRunConfig, kStore };

// Run configs are small; a trace of a profiler this small is read twice.
constexpr std::uintmax_t kMostConfigBytes = 1 << 20;

bool is_run_config(const fs::path& path) {
  std::error_code code;
  if (path.extension() != ".json" || fs::file_size(path, code) > kMostConfigBytes || code) {
    return false;
  }
  const auto document = JsonDocument::load_file(path.string());
  if (!document) return false;
  Errors ignored;
  ObjectReader root = document->root(ignored);
  return ignored.empty() && root.has("training") && root.has("policies");
}

Result<Subject> subject_of(const std::vector<std::string>& paths) {
  const fs::path path(paths.front());
  const auto store = std::ranges::find_if(paths, store::is_store);
  if (store != paths.end()) {
    if (paths.size() == 1) return Subject::kStore;
    return fail(*store, {}, "is a results store, found beside other paths; expected it alone");
  }
  if (paths.size() > 1) return Subject::kTrace;
  std::error_code code;
  if (fs::exists(path / report::kViewFileName, code)) return Subject::kRunFolder;
  if (fs::exists(path / "results.json", code)) {
    return fail(path.string(), {}, std::string("found results.json, but no ") +
                                       report::kViewFileName + ": run it again with --out");
  }
  return is_run_config(path) ? Subject::kRunConfig : Subject::kTrace;
}

CheckedResult<report::TimelineView> view_of_trace(const ViewArguments& arguments,
                                                  const AppContext& context) {
  if (!arguments.policies.empty()) {
    return fail("--policy", {}, "found with a trace, which has no policies; expected a run");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const auto trace, load_job(arguments.job, context));
  fmt::print("{}", loss_lines(trace.counters));
  return report::trace_view(trace.job, arguments.job.paths.front());
}

CheckedResult<report::TimelineView> view_of_config(const ViewArguments& arguments,
                                                const AppContext& context) {
  ProgressLine progress;
  BUBBLESIM_ASSIGN_OR_RETURN(run::RunConfig config,
                             run::read_run_config(arguments.job.paths.front(), context.policies));
  if (!arguments.policies.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(config.policies,
                               choose_policies(arguments.policies, context));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(
      const run::LoadedRun loaded,
      run::load_run(config, context.device_folder(), progress.callback()));
  report::RunView view(loaded);
  run::RunOptions options;
  options.threads = std::max(1U, std::thread::hardware_concurrency());
  options.timelines = view.sink();
  options.progress = progress.callback();
  BUBBLESIM_ASSIGN_OR_RETURN(const auto report,
                             run::run_policies(loaded, context.policies, options));
  progress.clear();
  return report::TimelineView{arguments.job.paths.front(), {view.section(report)}};
}

CheckedResult<report::TimelineView> view_of_folder(const ViewArguments& arguments) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      report::TimelineView view,
      report::read_view((fs::path(arguments.job.paths.front()) / report::kViewFileName).string()));
  BUBBLESIM_RETURN_IF_ERROR(report::select_policies(view, split_list(arguments.policies)));
  return view;
}

CheckedResult<report::TimelineView> view_of(Subject subject, const ViewArguments& arguments,
                                         const AppContext& context) {
  switch (subject) {
    case Subject::kRunFolder: return view_of_folder(arguments);
    case Subject::kRunConfig: return view_of_config(arguments, context);
    default: return view_of_trace(arguments, context);
  }
}

// Opens the page in a desktop's browser, without waiting for it. Without a desktop it does nothing.
void open_page(const std::string& path) {
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return;
  (void)start_child({"xdg-open", fs::absolute(path).string()}, inherited_environment(),
                    {{}, ChildGroup::kOfParent, kNothing, kNothing, kNothing});
}

Result<std::string> picture_of(const report::TimelineView& view, Subject subject,
                               const report::PictureOptions& options) {
  if (subject != Subject::kTrace) return report::view_picture(view, options);
  const char* key = options.gpu > 0 ? "--gpu" : options.section.empty() ? nullptr : "--section";
  if (key != nullptr) return fail(key, {}, "found with a trace, of which all ranks are drawn");
  return report::trace_picture(view);
}

Result<void> write_view(const report::TimelineView& view, Subject subject,
                        const ViewArguments& arguments) {
  if (!arguments.svg.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::string picture,
                               picture_of(view, subject, arguments.picture));
    BUBBLESIM_RETURN_IF_ERROR(write_output(arguments.svg, picture));
    fmt::print("wrote {}: {} KB\n", fs::absolute(arguments.svg).string(),
               (picture.size() + 1023) / 1024);
    return {};
  }
  const std::string page = report::view_page(view);
  BUBBLESIM_RETURN_IF_ERROR(write_output(arguments.output, page));
  fmt::print("wrote {}: {} KB; it needs a browser, and no network\n",
             fs::absolute(arguments.output).string(), (page.size() + 1023) / 1024);
  return {};
}

ExitCode run_view(const ViewArguments& arguments, AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto subject, subject_of(arguments.job.paths));
  if (subject != Subject::kTrace && !arguments.job.cluster.empty()) {
    return fail("--cluster", {}, "found without a trace, whose collectives it would be for");
  }
  if (subject == Subject::kStore) {
    if (!arguments.policies.empty()) {
      return fail("--policy", {}, "found with a results store; expected a run (bubblesim "
                                  "report STORE --policy chooses among results)");
    }
    BUBBLESIM_RETURN_IF_ERROR(report_store(arguments.job.paths.front(), arguments.output, context));
    if (!arguments.no_open) open_page(arguments.output);
    return kExitOk;
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const auto view, view_of(subject, arguments, context));
  BUBBLESIM_RETURN_IF_ERROR(write_view(view, subject, arguments));
  if (arguments.svg.empty() && !arguments.no_open) open_page(arguments.output);
  return kExitOk;
}

constexpr const char* kViewHelp =
    "Shows a trace, a run or a results store as one HTML page. Its timelines can be zoomed and\n"
    "moved, with the table beside them; it needs no network and no other file. On a desktop it is\n"
    "opened in the browser.\n\n"
    "Examples:\n"
    "  bubblesim view traces/samples/training -o out/training.html\n"
    "  bubblesim view configs/runs/example.json --policy exclusive,mps -o out/example.html\n"
    "  bubblesim view configs/runs/example.json --policy exclusive,mps --svg out/filled.svg\n\n"
    "PATH is what 'inspect' reads, a folder that 'run --out' wrote, a run config, or a store that\n"
    "'sweep' wrote (then this is 'report').";

}  // namespace

void add_view_command(CLI::App& parser, AppContext& context) {
  auto [command, arguments] = add_command(parser, context, run_view, "view", kViewHelp);
  arguments->output = "view.html";
  command->add_option("PATH", arguments->job.paths,
                      "Trace (files or a folder), folder of a run, run config, or results store")
      ->required();
  add_cluster_option(*command, arguments->job);
  command->add_option("-o,--output", arguments->output,
                      "File to write, in one piece; what is there is replaced")
      ->capture_default_str();
  command->add_flag("--no-open", arguments->no_open, "Do not open the page");
  command->add_option("--policy", arguments->policies,
                      "Of a run: these policies, comma-separated, in this order (default: all)");
  auto* svg = command->add_option("--svg", arguments->svg,
                                  "A picture in place of the page: a trace, or one GPU of a run");
  command->add_option("--gpu", arguments->picture.gpu, "With --svg: which")
      ->needs(svg)->capture_default_str();
  command->add_option("--section", arguments->picture.section,
                      "With --svg: of a run in two modes, offline or online (default: the first)")
      ->needs(svg);
  context.outputs.writes(*command, {"--output", "--svg"});
}

namespace {

// bubblesim report: a results store as one page to look at, print and pass on.

struct ReportArguments {
  ResultsArguments results;  ///< the store, the filters, baseline, confidence, output
  std::string title;
  std::vector<std::string> timelines;
  std::string best = sweep::BestGoal{}.column;
};

/// A run's timeline that was asked for.
struct WantedTimeline {
  store::RunRecord record;
  std::uint32_t policy = 0;
};

std::vector<std::string> selection_text(const ReportArguments& arguments) {
  std::vector<std::string> texts;
  const auto add = [&](const char* option, const std::vector<std::string>& values) {
    for (const std::string& value : values) texts.push_back(fmt::format("{} {}", option, value));
  };
  add("--sweep", arguments.results.compare.filter.sweeps);
  add("--policy", arguments.results.compare.filter.policies);
  add("--filler", arguments.results.compare.filter.fillers);
  add("--set", arguments.results.settings);
  return texts;
}

/// The N best by the goal: best, best of the rest, ...
Result<std::vector<std::pair<std::string, std::uint32_t>>> best_rows(
    store::ResultsStore& store, const store::RowFilter& filter, const sweep::BestGoal& goal,
    std::size_t count) {
  std::vector<store::StoredRow> rows;
  BUBBLESIM_RETURN_IF_ERROR(
      store.each_row(filter, [&](const store::StoredRow& row) { rows.push_back(row); }));
  std::vector<std::pair<std::string, std::uint32_t>> chosen;
  while (chosen.size() < count) {
    sweep::BestSoFar best(goal);
    std::size_t place = rows.size();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto before = best.best();
      store::PlannedRun planned;
      planned.index = i;  // in the store's order
      best.look_at(planned, rows[i].row);
      if (best.best() && (!before || best.best()->index != before->index)) place = i;
    }
    if (place == rows.size()) break;
    // Seeds of one point look alike: one timeline stands for them.
    const store::StoredRow found = rows[place];
    chosen.emplace_back(found.run.key, found.row.policy);
    std::erase_if(rows, [&](const store::StoredRow& row) {
      const bool same_point = row.sweep == found.sweep && row.run.point == found.run.point;
      return (same_point || row.run.key == found.run.key) && row.row.policy == found.row.policy;
    });
  }
  return chosen;
}

/// "best:3" as 3; nothing: it is a key.
Result<std::optional<std::size_t>> best_count(const std::string& text) {
  if (!text.starts_with("best:")) return std::optional<std::size_t>{};
  const auto count = parse_number<std::size_t>(text.substr(5));
  if (count && *count >= 1 && *count <= 20) return count;
  return fail("--timeline", {}, "found " + quote_found(text) +
                                    ", expected best:N with N from 1 to 20, or a run's key");
}

Result<std::vector<WantedTimeline>> wanted_timelines(store::ResultsStore& store,
                                                     const store::RowFilter& filter,
                                                     const ReportArguments& arguments) {
  BUBBLESIM_ASSIGN_OR_RETURN(const sweep::BestGoal goal, sweep::parse_best_goal(arguments.best));
  std::vector<WantedTimeline> wanted;
  for (const std::string& text : arguments.timelines) {
    BUBBLESIM_ASSIGN_OR_RETURN(const auto count, best_count(text));
    if (!count) {
      BUBBLESIM_ASSIGN_OR_RETURN(store::RunRecord record,
                                 find_record(store, arguments.results.store, text));
      wanted.push_back({std::move(record), 0});
      continue;
    }
    BUBBLESIM_ASSIGN_OR_RETURN(const auto rows, best_rows(store, filter, goal, *count));
    if (rows.empty()) {
      return fail("--timeline", {},
                  fmt::format("found no run with a {} that keeps {:g} of training",
                              goal.column, goal.training_kept));
    }
    for (const auto& [key, policy] : rows) {
      BUBBLESIM_ASSIGN_OR_RETURN(store::RunRecord record,
                                 find_record(store, arguments.results.store, key));
      wanted.push_back({std::move(record), policy});
    }
  }
  return wanted;
}

CheckedResult<void> add_timelines(const std::vector<WantedTimeline>& wanted,
                                  const AppContext& context, ProgressLine& progress,
                                  report::ReportData& data) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    progress.show(fmt::format("timeline {} of {}", i + 1, wanted.size()));
    BUBBLESIM_ASSIGN_OR_RETURN(
        report::ReportTimeline timeline,
        report::record_timeline(wanted[i].record, wanted[i].policy, context.policies,
                                context.device_folder()));
    data.timelines.push_back(std::move(timeline));
  }
  return {};
}

ExitCode report_results(ReportArguments& arguments, AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto opened, open_filtered(arguments.results));
  ProgressLine progress;
  progress.show("reading " + arguments.results.store);
  BUBBLESIM_ASSIGN_OR_RETURN(
      auto data, report::collect_report(*opened.store, compare_options(arguments.results, opened)));
  if (!arguments.title.empty()) data.title = arguments.title;
  data.selection = selection_text(arguments);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto wanted,
                             wanted_timelines(*opened.store, opened.filter, arguments));
  BUBBLESIM_RETURN_IF_ERROR(add_timelines(wanted, context, progress, data));
  progress.clear();
  const std::string page = report::report_page(data);
  BUBBLESIM_RETURN_IF_ERROR(write_output(arguments.results.output, page));
  std::size_t failed = 0;
  for (const report::ReportSweep& sweep : data.sweeps) failed += sweep.failed;
  if (data.runs.empty() && failed == 0) tell_of_no_rows(arguments.results);
  fmt::print("{}: {} runs, {} failed, {} points, {} timelines; {} KB\n", arguments.results.output,
             data.runs.size(), failed, data.points.size(), data.timelines.size(),
             (page.size() + 1023) / 1024);
  return kExitOk;
}

constexpr const char* kReportHelp =
    "Writes a results store as one page of tables, curves and timelines. It has confidence\n"
    "intervals, throughput against latency with the Pareto front, curves over load, bubbles\n"
    "recovered, and where every point comes from. The page is an HTML file that needs no network\n"
    "and no other file. STORE is a file that 'bubblesim sweep' wrote, or\n"
    "postgresql://user@host/database.\n\n"
    "Examples:\n"
    "  bubblesim report out/policies.db -o out/policies.html\n"
    "  bubblesim report out/load.db --sweep load-latency --policy mps,specinf -o out/load.html\n"
    "  bubblesim report out/policies.db --timeline best:2 --title \"Policies on four A100s\"\n\n"
    "Latencies are in ms, throughput in requests/s, fractions in %; OUTPUTS.md defines each.\n"
    "The same store and options give the same bytes.\n"
    "Exit codes: 0 done; 2 a fault of the command line, of the store, or of what a timeline needs.";

}  // namespace

ExitCode report_store(const std::string& store, const std::string& output, AppContext& context) {
  ReportArguments arguments;
  arguments.results.store = store;
  arguments.results.output = output;
  return report_results(arguments, context);
}

void add_report_command(CLI::App& parser, AppContext& context) {
  auto [command, arguments] = add_command(parser, context, report_results, "report", kReportHelp);
  arguments->results.output = "report.html";
  command->add_option("STORE", arguments->results.store,
                      "Results store: a file or postgresql://...")->required();
  command->add_option("-o,--output", arguments->results.output,
                      "File to write, in one piece; what is there is replaced")
      ->capture_default_str();
  command->add_option("--title", arguments->title, "Of the page (default: names of its sweeps)");
  add_row_filters(*command, arguments->results);
  command->add_option("--baseline", arguments->results.compare.baseline,
                      "The policy to compare with (default: the first of each sweep)");
  command->add_option("--confidence", arguments->results.compare.confidence,
                      "Of each interval, between 0 and 1")
      ->capture_default_str();
  command->add_option("--timeline", arguments->timelines,
                      "A run to show around one iteration: its key, or how it begins, or best:N; "
                      "it is simulated again. May be given several times")
      ->delimiter(',')->allow_extra_args(false);
  command->add_option("--best", arguments->best,
                      "What best:N goes by, of runs that keep 95 % of training: a column of "
                      "OUTPUTS.md, min:COLUMN where less is better")
      ->capture_default_str();
  add_policy_library_option(*command, context);
  context.outputs.writes(*command, "--output");
}

}  // namespace bubblesim::app
