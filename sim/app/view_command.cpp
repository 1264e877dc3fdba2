// bubblesim view: a trace, a run or a results store as one page to look at.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "sim/app/app.hpp"
#include "sim/app/own_process.hpp"
#include "sim/app/run_arguments.hpp"
#include "sim/base/child_process.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/report/view/run_view.hpp"
#include "sim/report/view/timeline_view.hpp"
#include "sim/report/view/view_picture.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/store/results_store.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::app {
namespace {

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

// On a desktop, in its browser; nobody waits for it, and without one nothing is lost.
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
  auto arguments = std::make_shared<ViewArguments>();
  arguments->output = "view.html";
  CLI::App* command = parser.add_subcommand("view", kViewHelp);
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
  context.outputs.writes(*command, "--output");
  context.outputs.writes(*command, "--svg");
  command->callback(
      [arguments, &context] { context.exit_code = reported(run_view(*arguments, context)); });
}

}  // namespace bubblesim::app
