// bubblesim inspect: what is in a trace, and how well it replays.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/shared/app.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/json.hpp"
#include "sim/report/view/timeline_view.hpp"
#include "sim/report/view/view_picture.hpp"
#include "sim/text/text_table.hpp"
#include "sim/workload/build_counters.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/replay.hpp"
#include "sim/workload/sensitivity.hpp"
#include "sim/workload/what_if.hpp"
#include "traces/inspect/render_text.hpp"
#include "traces/trace_origin.hpp"

namespace bubblesim::app {
namespace {

// ---- Replays as text and JSON.

struct ChangedReplay {
  std::string change;  ///< as given to --what-if
  workload::ReplayReport report;
  std::uint64_t spans_clamped = 0;  ///< of the host, which the change made longer than a step holds
};

enum class Recorded : std::uint8_t { kNo, kYes };

struct ReplayComparison {
  Recorded recorded = Recorded::kYes;  ///< kNo: an importer laid out the starts
  workload::JobProgram job;          ///< of the iterations used
  workload::ReplayReport unchanged;  ///< the iterations used, repeated
  workload::ReplayReport whole;      ///< the whole recording, once; empty: not asked for
  std::vector<ChangedReplay> changes;
  bool doubtful = false;             ///< the changes are
  CounterSet counters;               ///< of the trace and of building the programs
};

using workload::RankReplay;
using workload::ReplayReport;

double mean_ms(const std::vector<Duration>& times) {
  const Duration total = std::accumulate(times.begin(), times.end(), Duration{});
  return times.empty() ? 0 : 1e3 * to_seconds(total) / static_cast<double>(times.size());
}

double change_percent(double now, double before) {
  return before == 0 ? 0 : 100 * (now / before - 1);
}

Json nanoseconds(const std::vector<Duration>& times) {
  return list_json(times, [](Duration time) { return to_ns(time); });
}

Json to_json(const ReplayReport& report, Recorded recorded) {
  const auto if_recorded = [recorded](Json value) {
    return recorded == Recorded::kYes ? std::move(value) : Json(nullptr);
  };
  Json ranks = list_json(report.ranks, [&](const RankReplay& rank) -> Json {
    return {{"rank", rank.rank},
            {"recorded_iterations_ns", if_recorded(nanoseconds(rank.recorded))},
            {"simulated_iterations_ns", nanoseconds(rank.simulated)},
            {"recorded_span_ns", if_recorded(to_ns(rank.recorded_span))},
            {"simulated_span_ns", to_ns(rank.simulated_span)},
            {"mean_error", if_recorded(rank.mean_error())},
            {"span_error", if_recorded(rank.span_error())}};
  });
  return {{"mean_error", if_recorded(report.mean_error())},
          {"worst_error", if_recorded(report.worst_error())},
          {"device_ops", report.device_ops},
          {"events", report.events},
          {"ranks", std::move(ranks)}};
}

/// Below this share of operations without a launch the error is one of the recording's making.
constexpr double kTellingShare = 0.01;

std::uint64_t ops_without_launch(const ReplayComparison& comparison) {
  std::uint64_t count = 0;
  for (const program::Program& rank : comparison.job.ranks) count += rank.ops_without_launch;
  return count;
}

/// For operations without a known launch the replay has only the recorded gaps: it meets their
/// times whatever the model does. Empty: they are few.
std::string doubt(const ReplayComparison& comparison) {
  const auto orphans = static_cast<double>(ops_without_launch(comparison));
  const auto all = static_cast<double>(comparison.unchanged.device_ops);
  if (all == 0 || orphans < kTellingShare * all) return {};
  const double share = orphans / all;
  return fmt::format("{}: {:.3g} % of operations have no launch call, and start when they were "
                     "recorded",
                     share < 0.5 ? "a check of the rest only" : "not a check", 100 * share);
}

constexpr const char* kNotMet =
    "the replay does not meet the recording: times of the trace contradict its launches and waits, "
    "or it lacks some; runs of it must not be trusted";

/// Empty: what-ifs are not doubtful.
std::string doubt_of_changes(const ReplayComparison& comparison) {
  if (!comparison.doubtful) return {};
  return "! doubtful: nothing recorded explains over 10 % of the iteration's time, and what starts "
         "or waits\nwere held by then does not move\n";
}

/// Empty: the change is done whole.
std::string clamped_spans(const ChangedReplay& changed) {
  if (changed.spans_clamped == 0) return {};
  return fmt::format("! changed less than asked for: {} spans of the host would last over 4.29 s, "
                     "and are shortened\nto that\n",
                     changed.spans_clamped);
}

std::string decimals(double value) { return fmt::format("{:.3f}", value); }

/// The recorded span, if recorded_ms leaves out what was queued before the recording; else empty.
std::string length_of_cut(const ReplayComparison& comparison) {
  if (!comparison.job.queue_cut) return {};
  Duration longest{};
  for (const RankReplay& rank : comparison.whole.ranks) {
    longest = std::max(longest, rank.recorded_span);
  }
  return fmt::format("recorded_ms is without what was queued before the recording, which takes {} "
                     "ms in all\n",
                     decimals(1e3 * to_seconds(longest)));
}

// Whether no rank's iterations err by more than 1 % from the recorded ones, where there are some.
bool meets_recording(const ReplayComparison& comparison) {
  constexpr double kMostError = 0.01;  // of a rank's mean iteration
  return comparison.recorded == Recorded::kNo ||
         comparison.unchanged.worst_error() <= kMostError;
}

/// Empty: no rank's time may be waiting for one that began later.
std::string start_skew(const ReplayComparison& comparison) {
  if (!comparison.job.start_skew_unknown) return {};
  return "! recorded_ms may hold waiting for ranks that began the first iteration later\n";
}

std::string comparison_table(const ReplayComparison& comparison) {
  std::string out =
      "replay alone: the iterations used, repeated, against the recorded time of one; the whole\n"
      "recording once, against its span\n";
  TextTable table({"rank", "iters", "recorded_ms", "simulated_ms", "error_%", "span_err_%"}, {});
  const std::string skew = start_skew(comparison);
  for (std::size_t i = 0; i < comparison.unchanged.ranks.size(); ++i) {
    const RankReplay& rank = comparison.unchanged.ranks[i];
    table.row({fmt::to_string(rank.rank), fmt::to_string(comparison.job.iterations_used),
               decimals(mean_ms(rank.recorded)) + (skew.empty() ? "" : " !"),
               decimals(mean_ms(rank.simulated)),
               decimals(100 * rank.mean_error()),
               decimals(100 * comparison.whole.ranks[i].span_error())});
  }
  out += table.text();
  out += fmt::format("mean error {:.3f} %, worst rank {:.3f} %",
                     100 * comparison.unchanged.mean_error(),
                     100 * comparison.unchanged.worst_error());
  const std::string why_not = doubt(comparison);
  if (!why_not.empty()) out += "; " + why_not;
  out += meets_recording(comparison) ? "\n" : fmt::format(" !\n! {}\n", kNotMet);
  return out + length_of_cut(comparison) + skew;
}

std::string simulated_table(const ReplayComparison& comparison) {
  std::string out =
      "replay alone: the iterations used, repeated; the trace records no starts to compare with\n";
  TextTable table({"rank", "iters", "simulated_ms"}, {});
  for (const RankReplay& rank : comparison.unchanged.ranks) {
    table.row({fmt::to_string(rank.rank), fmt::to_string(comparison.job.iterations_used),
               decimals(mean_ms(rank.simulated))});
  }
  return out + table.text();
}

std::string replay_text(const ReplayComparison& comparison) {
  std::string out = loss_lines(comparison.counters);
  out += "iterations: " + comparison.job.iterations_text + "\n";
  out += comparison.recorded == Recorded::kYes ? comparison_table(comparison)
                                               : simulated_table(comparison);
  for (const ChangedReplay& changed : comparison.changes) {
    const std::string doubt = doubt_of_changes(comparison) + clamped_spans(changed);
    out += fmt::format("\nwhat if {}: change of the mean iteration time\n", changed.change);
    TextTable table({"rank", "before_ms", "now_ms", "change_%"}, {});
    for (std::size_t i = 0; i < changed.report.ranks.size(); ++i) {
      const double before = mean_ms(comparison.unchanged.ranks[i].simulated);
      const double now = mean_ms(changed.report.ranks[i].simulated);
      table.row({fmt::to_string(changed.report.ranks[i].rank), decimals(before), decimals(now),
                 fmt::format("{:+.2f}{}", change_percent(now, before), doubt.empty() ? "" : " !")});
    }
    out += table.text() + doubt;
  }
  out += "\n";
  return out + counter_lines(comparison.counters);
}

std::string replay_json(const ReplayComparison& comparison) {
  const Recorded recorded = comparison.recorded;
  Json changes = list_json(comparison.changes, [&](const ChangedReplay& changed) -> Json {
    return {{"what_if", changed.change},
            {"doubtful", comparison.doubtful},
            {"spans_clamped", changed.spans_clamped},
            {"replay", to_json(changed.report, recorded)}};
  });
  Json replay = to_json(comparison.unchanged, recorded);
  replay["ops_without_launch"] = ops_without_launch(comparison);
  const std::string why_not = meets_recording(comparison) ? doubt(comparison) : kNotMet;
  replay["doubt"] = why_not.empty() ? Json(nullptr) : Json(why_not);
  const Json document = {{"iterations_recorded", comparison.job.iterations_recorded},
                         {"iterations_used", comparison.job.iterations_used},
                         {"iterations_reason", comparison.job.iterations_text},
                         {"replay", std::move(replay)},
                         {"whole", to_json(comparison.whole, recorded)},
                         {"what_if", std::move(changes)},
                         {"counters", counts_object(comparison.counters)}};
  return indented_text(document, 1) + "\n";
}

struct InspectArguments {
  JobArguments job;
  std::string plot;
  std::vector<std::string> what_ifs;
  std::string iterations = "settled";
  bool json = false;
  bool replay = false;
  bool sensitivities = false;
};

// Up to so many device operations, the five repetitions of the sensitivities take a second or two.
constexpr std::size_t kQuicklyReplayed = 100'000;

constexpr std::size_t kDrawnRanks = 16;

constexpr CounterSpec kNotReplayed{
    "inspect_not_replayed", Severity::kNotice,
    "jobs that could not be replayed: without sensitivities (--sensitivities says why)"};

std::size_t device_ops(const traces::JobTrace& job) {
  std::size_t count = 0;
  for (const traces::RankTrace& rank : job.ranks) count += rank.device_ops.size();
  return count;
}

// The whole recording once, for its span.
Result<workload::ReplayReport> replay_recording(const traces::JobTrace& trace,
                                                const hardware::GpuSpec& device) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      const workload::JobProgram job,
      workload::build_job_program(trace, device, {workload::Window::kWhole, {}, threads_of(0)}));
  return workload::replay_alone(job, device);
}

// The iterations used, repeated as a run does; then with each change by itself.
Result<ReplayComparison> run_replays(const run::LoadedTrace& trace,
                                     const hardware::GpuSpec& device,
                                     const traces::IterationChoice& iterations,
                                     const InspectArguments& arguments) {
  const bool inferred = std::ranges::any_of(trace.job.ranks, traces::has_inferred_layout);
  ReplayComparison comparison;
  comparison.recorded = inferred ? Recorded::kNo : Recorded::kYes;
  BUBBLESIM_ASSIGN_OR_RETURN(
      comparison.job,
      workload::build_job_program(trace.job, device,
                                  {workload::Window::kIterations, iterations, threads_of(0)}));
  const workload::JobProgram& job = comparison.job;
  comparison.doubtful = trace.what_ifs_doubtful ||
                        std::ranges::any_of(job.explained, [](const traces::Explanation& rank) {
                          return rank.share() > traces::kDoubtfulShare;
                        });
  comparison.counters = job.counters;
  BUBBLESIM_ASSIGN_OR_RETURN(comparison.unchanged, workload::repeat_alone(job, device));
  if (arguments.json || !inferred) {
    BUBBLESIM_ASSIGN_OR_RETURN(comparison.whole, replay_recording(trace.job, device));
  }
  for (const std::string& text : arguments.what_ifs) {
    BUBBLESIM_ASSIGN_OR_RETURN(const auto together, workload::parse_what_ifs(text));
    workload::JobProgram changed = job;
    std::uint64_t clamped = 0;
    for (const workload::WhatIf& change : together) {
      BUBBLESIM_RETURN_IF_ERROR(workload::check_concerns(change, text, job));
      clamped += workload::apply(change, changed);
    }
    BUBBLESIM_ASSIGN_OR_RETURN(auto report, workload::repeat_alone(changed, device));
    comparison.changes.push_back({text, std::move(report), clamped});
  }
  return comparison;
}

ExitCode print_replay(const run::LoadedTrace& trace, const InspectArguments& arguments,
                      const traces::IterationChoice& iterations, const AppContext& context) {
  CounterSet counters;
  auto device = run::device_for_replay(trace.job, context.device_folder(), counters);
  if (!device) return tl::make_unexpected(trace.located(device.error()));
  auto comparison = run_replays(trace, *device, iterations, arguments);
  if (!comparison) return tl::make_unexpected(trace.located(comparison.error()));
  comparison->counters.merge(counters);
  comparison->counters.merge(trace.counters);
  const std::string text =
      arguments.json ? replay_json(*comparison) : replay_text(*comparison);
  std::fputs(text.c_str(), stdout);
  const bool trusted = meets_recording(*comparison) && !comparison->counters.has_error();
  return trusted ? kExitOk : kExitUntrusted;
}

enum class Sensitivities : std::uint8_t { kLeftOut, kFound };

// What explains the times of the iterations that a run repeats, and what they depend on.
Result<void> add_program(const traces::JobTrace& trace, const traces::IterationChoice& iterations,
                         Sensitivities sensitivities, const AppContext& context,
                         traces::JobInspection& inspection) {
  CounterSet counters;
  auto device = run::device_for_replay(trace, context.device_folder(), counters);
  if (!device) return tl::make_unexpected(device.error().front());
  BUBBLESIM_ASSIGN_OR_RETURN(const workload::JobProgram job,
                             workload::build_job_program(
                                 trace, *device,
                                 {workload::Window::kIterations, iterations, threads_of(0)}));
  inspection.explained = job.explained;
  for (const CounterSpec& spec : {workload::kTimeUnexplained, workload::kDoubtful}) {
    inspection.counters.add(spec, job.counters.count(spec.name));
  }
  if (sensitivities == Sensitivities::kLeftOut) return {};
  BUBBLESIM_ASSIGN_OR_RETURN(inspection.sensitivities, workload::find_sensitivities(job, *device));
  return {};
}

std::string sensitivities_only(const traces::JobInspection& inspection, bool json) {
  if (!json) return traces::sensitivities_text(inspection).substr(1);
  Json document;
  document["format"] = "bubblesim.sensitivities/1";
  document["sensitivities"] = traces::sensitivities_json(inspection);
  return indented_text(document, 1) + "\n";
}

ExitCode run_inspect(const InspectArguments& arguments, const AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto iterations,
                             traces::parse_iteration_choice(arguments.iterations));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto trace, load_job(arguments.job, context));
  BUBBLESIM_RETURN_IF_ERROR(write_output(arguments.plot, [&] {
    return report::trace_picture(
        report::trace_view(trace.job, arguments.job.paths.front(), kDrawnRanks));
  }));
  if (arguments.replay || !arguments.what_ifs.empty()) {
    return print_replay(trace, arguments, iterations, context);
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const auto pass, traces::find_job_pass(trace.job, iterations));
  traces::JobInspection inspection = traces::inspect_job(trace.job, pass);
  const bool quick = arguments.sensitivities || device_ops(trace.job) <= kQuicklyReplayed;
  const auto added =
      add_program(trace.job, iterations, quick ? Sensitivities::kFound : Sensitivities::kLeftOut,
                  context, inspection);
  if (!added && arguments.sensitivities) return tl::make_unexpected(added.error());
  if (!added) inspection.counters.add(kNotReplayed);
  const std::string text = arguments.sensitivities
                               ? sensitivities_only(inspection, arguments.json)
                           : arguments.json ? traces::render_json(inspection)
                                            : traces::render_text(inspection);
  std::fputs(text.c_str(), stdout);
  return inspection.counters.has_error() ? kExitUntrusted : kExitOk;
}

}  // namespace

void add_inspect_command(CLI::App& parser, AppContext& context) {
  auto [command, arguments] = add_command(
      parser, context, run_inspect, "inspect",
      "Says what is in a trace: ranks, iterations, bubbles by cause, top kernels, data quality.\n\n"
      "Examples:\n"
      "  bubblesim inspect traces/samples/training\n"
      "  bubblesim inspect job.btr --plot job.svg --json > job.json\n"
      "  bubblesim inspect job.btr --replay\n"
      "  bubblesim inspect job.btr --sensitivities\n"
      "  bubblesim inspect job.btr --what-if compute=2 --what-if link=0.5 --what-if host@3=0.8");
  command->add_option("PATHS", arguments->job.paths, "Traces of one job (.btr, .json, .json.gz), "
                                                      "or a folder of them")
      ->required();
  add_cluster_option(*command, arguments->job);
  command->add_flag("--json", arguments->json, "Write JSON instead of text");
  command->add_option("--plot", arguments->plot,
                      "Draw the timeline of the first 16 ranks as SVG into this file");
  command->add_option("--use-iterations", arguments->iterations,
                      "Iterations that count: settled (default), all, a number, or FIRST-LAST");
  command->add_flag("--replay", arguments->replay,
                    "Repeat the iterations alone and compare with the recorded time of one");
  command->add_option("--what-if", arguments->what_ifs,
                      "Replay with something faster or slower: TARGET[@RANK]=SPEED, TARGET one of "
                      "kernels, compute, memory, kernel:TEXT, copies, link, host; several with "
                      "commas between them (kernels=2,host=2) change together");
  command->add_flag(
      "--sensitivities", arguments->sensitivities,
      "Only say what the iteration time depends on. The sensitivity to kernels, copies, link or "
      "host is 2 (1 - T'/T), T the replayed iteration, T' the same with that twice as fast: from 0 "
      "(nothing changes) to 1 (it halves), together at most 1. Without this option they are part "
      "of "
      "the text and the JSON of jobs of up to 100,000 device operations");
  context.outputs.writes(*command, "--plot");
}

}  // namespace bubblesim::app
