// bubblesim fill: runs a training program and an inference program, neither changed, side by side
// on a GPU of this machine, the second gated by a policy; or on several, a filler on each.
//
// Training owns standard input and output; what there is to say goes to standard error, and with
// --json one line of JSON ends standard output. The exit code is training's.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <vector>

#include "capture/live/live_plan.hpp"
#include "capture/live/job_variables.hpp"
#include "capture/live/run_fill.hpp"
#include "sim/app/shared/app.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/app/shared/own_process.hpp"
#include "sim/app/shared/policy_options.hpp"
#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/policy/session/start.hpp"
#include "sim/schedule/policy_terms.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::app {
namespace {

struct FillArguments {
  std::string policy;
  std::vector<std::string> values;            ///< --set: name=value
  capture::FillSetup setup;                   ///< its training, log, window and asking
  std::vector<std::string> fill;              ///< lines for a shell, one or one a GPU
  std::string device;                         ///< of configs/devices
  std::vector<std::string> gpus;              ///< UUIDs or indices
  std::string filler_role = "offline";
  std::string substitute;
  std::string after_training = "stop";
  std::string after_death = "keep";
  std::string grace = "10s";
  std::string library;
  bool json = false;
};

void add_fill_options(CLI::App& command, FillArguments& arguments, AppContext& context) {
  command.add_option("--policy", arguments.policy, "Who decides (bubblesim policies)")->required();
  command.add_option("--set", arguments.values, "A parameter of the policy: name=value; repeatable")
      ->allow_extra_args(false);
  add_policy_library_option(command, context);
  command.add_option("--train", arguments.setup.train, "The training program: a line for /bin/sh")
      ->required();
  command.add_option("--fill", arguments.fill,
                     "The inference program, one on each GPU: a line for /bin/sh; or a line a GPU, "
                     "in the order of --gpu. $BUBBLESIM_FILLER is the filler's number, from 0")
      ->required()->allow_extra_args(false);
  command.add_option("--device", arguments.device,
                     "What the policy is told of the GPU where NVIDIA's driver does not say it "
                     "(bubblesim devices; default: h100)");
  command.add_option("--gpu", arguments.gpus,
                     "Indices or UUIDs: training sees all of them, each filler its own: 0,1,2,3 "
                     "(default: one filler, and all see what CUDA_VISIBLE_DEVICES says)")
      ->delimiter(',')->allow_extra_args(false);
  command.add_option("--filler-role", arguments.filler_role, "What the policy takes the filler for")
      ->check(CLI::IsMember({"offline", "online", "training"}))->capture_default_str();
  command.add_option("--as", arguments.substitute,
                     "How to share the GPU where the policy's own way cannot be had")
      ->check(CLI::IsMember({"time-sliced"}));
  command.add_option("--window", arguments.setup.window,
                     "Launches of the filler on the GPU at once, at most; 0: any number")
      ->capture_default_str();
  command.add_flag("--gate-training", arguments.setup.ask_training,
                   "Training waits for verdicts too (some policies make it wait by themselves)");
  command.add_option("--after-training", arguments.after_training,
                     "What becomes of the filler when training has ended")
      ->check(CLI::IsMember({"stop", "keep"}))->capture_default_str();
  command.add_option("--after-death", arguments.after_death,
                     "The same where training was killed or exits with a code other than 0")
      ->check(CLI::IsMember({"stop", "keep"}))->capture_default_str();
  command.add_option("--grace", arguments.grace,
                     "Between the filler's SIGTERM and its SIGKILL")->capture_default_str();
  command.add_option("--fill-log", arguments.setup.fill_log,
                     "Where the filler's outputs go (default: both to standard error)");
  command.add_option("--library", arguments.library,
                     "The gate to preload (default: the libbubblesim_gate.so that came with this "
                     "program)");
  command.add_flag("--json", arguments.json, "End standard output with a line of JSON");
}

/// --set: the values of a policy's parameters; all faults at once.
CheckedResult<policy::ParameterSet> read_policy_values(const policy::PolicySpec& spec,
                                                       const std::vector<std::string>& values) {
  std::vector<policy::GivenParameter> given;
  Errors faults;
  for (const std::string& value : values) {
    const std::size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0) {
      faults.push_back({"--set", {}, "found \"" + value + "\", expected name=value"});
      continue;
    }
    given.push_back({std::string_view(value).substr(0, equals), value.substr(equals + 1)});
  }
  if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
  return policy::check_parameters(spec, given, "--set", "");
}

// ---- What `bubblesim fill` says of a run.

using capture::FillGpuReport;
using capture::FillReport;
using capture::LiveJobReport;
using capture::SpanSummary;

Duration mean_of(Duration total, std::uint64_t count) {
  return count == 0 ? Duration{} : total / static_cast<Duration::rep>(count);
}

Duration span(std::uint64_t ns) { return Duration{static_cast<Duration::rep>(ns)}; }

/// Launches that were asked for and not held.
std::uint64_t passed(const LiveJobReport& job) { return job.launches() - job.held; }

std::string end_text(const LiveJobReport& job) {
  if (!job.end) return "not started";
  if (job.end->signal != 0) return fmt::format("killed by signal {}", job.end->signal);
  return fmt::format("exited with {}", job.end->exit_code);
}

void add_row(TextTable& table, const std::string& name, const LiveJobReport& job) {
  table.row({name, end_text(job), fmt::format("{:.1f} s", to_seconds(job.ran)),
             fmt::to_string(job.kernels), fmt::to_string(job.collectives),
             fmt::to_string(job.copies), fmt::to_string(job.held),
             format_duration(mean_of(span(job.held_ns), job.held)),
             format_duration(span(job.held_ns)),
             fmt::to_string(job.undecided),
             format_duration(mean_of(span(job.passing_ns), passed(job)))});
}

std::string span_text(const std::string& name, const SpanSummary& span) {
  return fmt::format("{}: {} times, mean {}, p50 {}, p95 {}, p99 {}, longest {}\n", name,
                     span.count, format_duration(span.mean), format_duration(span.p50),
                     format_duration(span.p95), format_duration(span.p99),
                     format_duration(span.max));
}

std::string notes_of_job(const std::string& name, const LiveJobReport& job) {
  std::string text;
  if (job.end && job.processes == 0) {
    text += fmt::format("  the {} launched nothing that the gate saw: it used no GPU, or reached "
                        "the driver by a way that the gate does not see "
                        "(capture/live/README.md)\n",
                        name);
  }
  if (job.ungated_processes > 0) {
    text += fmt::format("  {} processes of the {} went ungated: one at a time is gated\n",
                        job.ungated_processes, name);
  }
  if (job.processes_elsewhere > 0) {
    text += fmt::format("  {} processes of the {} launched on GPUs without a gate\n",
                        job.processes_elsewhere, name);
  }
  if (job.window_passed > 0) {
    text += fmt::format("  {} launches of the {} waited a second for room in the window and went "
                        "on: what is on the GPU may have waited for them\n",
                        job.window_passed, name);
  }
  if (job.completions_guessed > 0) {
    text += fmt::format("  {} completions of the {} were guessed: the driver gave no event\n",
                        job.completions_guessed, name);
  }
  return text;
}

/// What was asked for, with each GPU's plan, and what came of it.
struct Filled {
  const FillArguments& arguments;
  const capture::FillSetup& setup;
  const FillReport& report;

  [[nodiscard]] bool is_node() const { return report.gpus.size() > 1; }
  /// "filler on GPU 1"; where there is one GPU alone, "filler".
  [[nodiscard]] std::string name(const char* what, std::size_t gpu) const {
    return is_node() ? fmt::format("{} on GPU {}", what, arguments.gpus[gpu]) : what;
  }
  /// Of plans and run; what is so on several GPUs stands once.
  [[nodiscard]] std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    for (const capture::FillGpu& gpu : setup.gpus) {
      for (const std::string& note : gpu.plan.notes) {
        if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
      }
    }
    notes.insert(notes.end(), report.notes.begin(), report.notes.end());
    return notes;
  }
};

std::string notes_of_gpu(const Filled& filled, std::size_t gpu) {
  const FillGpuReport& report = filled.report.gpus[gpu];
  std::string text;
  // The filler's first launch says which GPU the gate's is.
  if (filled.setup.one_gpu || report.filler.processes > 0) {
    text += notes_of_job(filled.name("training", gpu), report.training);
  }
  text += notes_of_job(filled.name("filler", gpu), report.filler);
  for (const std::string& note : report.notes) text += "  " + note + "\n";
  if (report.filler_killed) {
    text += fmt::format("  the {} did not end when told to, and was killed\n",
                        filled.name("filler", gpu));
  }
  for (const auto& [name, entry] : report.counters) {
    if (entry.count == 0) continue;
    text += fmt::format("  {} = {}: {}\n", filled.name(name.c_str(), gpu), entry.count, entry.help);
  }
  return text;
}

std::string notes_text(const Filled& filled) {
  std::string text;
  for (const std::string& note : filled.notes()) text += "  " + note + "\n";
  for (std::size_t i = 0; i < filled.report.gpus.size(); ++i) text += notes_of_gpu(filled, i);
  return text.empty() ? text : "notes:\n" + text;
}

Json span_json(const SpanSummary& span) {
  return {{"count", span.count},          {"mean_ns", to_ns(span.mean)},
          {"p50_ns", to_ns(span.p50)},    {"p95_ns", to_ns(span.p95)},
          {"p99_ns", to_ns(span.p99)},    {"longest_ns", to_ns(span.max)}};
}

Json job_json(const LiveJobReport& job) {
  return {{"exit_code", job.end ? Json(job.end->exit_code) : Json()},
          {"signal", job.end ? Json(job.end->signal) : Json()},
          {"ran_ns", to_ns(job.ran)},
          {"gated_processes", job.processes},
          {"ungated_processes", job.ungated_processes},
          {"processes_elsewhere", job.processes_elsewhere},
          {"kernels", job.kernels},
          {"collectives", job.collectives},
          {"copies", job.copies},
          {"blocks", job.blocks},
          {"undecided", job.undecided},
          {"held", job.held},
          {"held_ns", job.held_ns},
          {"mean_hold_ns", to_ns(mean_of(span(job.held_ns), job.held))},
          {"gate_overhead_ns", job.passing_ns},
          {"mean_gate_overhead_ns", to_ns(mean_of(span(job.passing_ns), passed(job)))},
          {"window_waits", job.window_waits},
          {"window_ns", job.window_ns},
          {"window_passed", job.window_passed},
          {"completions", job.completions},
          {"completions_guessed", job.completions_guessed},
          {"iterations", job.iterations}};
}

std::string latencies_text(const Filled& filled, std::size_t gpu) {
  const capture::PolicyHostCounts& host = filled.report.gpus[gpu].host;
  const std::string name = filled.name("decision latency", gpu);
  return (host.decision_latency.count == 0 ? name + ": no launch asked for a verdict\n"
                                           : span_text(name, host.decision_latency)) +
         span_text(filled.name("policy's own code", gpu), host.policy_call);
}

std::string fill_text(const Filled& filled) {
  TextTable table({"job", "end", "ran", "kernels", "collectives", "copies", "held",
                           "mean hold", "all holds", "undecided", "gate"},
                          {Align::kLeft, Align::kLeft});
  std::string latencies;
  for (std::size_t i = 0; i < filled.report.gpus.size(); ++i) {
    add_row(table, filled.name("training", i), filled.report.gpus[i].training);
    add_row(table, filled.name("filler", i), filled.report.gpus[i].filler);
    latencies += latencies_text(filled, i);
  }
  return fmt::format("policy {}, {}\n{}gate: mean of launches that were not held\n{}{}",
                     filled.arguments.policy,
                     capture::live_sharing_name(filled.setup.gpus.front().plan.sharing),
                     table.text(), latencies, notes_text(filled));
}

Json gpu_json(const FillGpuReport& report) {
  Json counters = Json::object();
  for (const auto& [name, entry] : report.counters) counters[name] = entry.count;
  return {{"training", job_json(report.training)},
          {"filler", job_json(report.filler)},
          {"filler_stopped", report.filler_stopped},
          {"filler_killed", report.filler_killed},
          {"policy_calls", report.host.session.calls},
          {"holds", report.host.session.holds},
          {"releases", report.host.session.released},
          {"decision_latency", span_json(report.host.decision_latency)},
          {"policy_call", span_json(report.host.policy_call)},
          {"messages_dropped", report.host.messages_dropped},
          {"clients_died", report.host.clients_died},
          {"counters", counters},
          {"fault", report.fault ? Json(report.fault->text()) : Json()}};
}

// One line. Of several GPUs, "gpus" has what of one stands beside the rest.
std::string fill_json(const Filled& filled) {
  Json notes = filled.notes();
  for (const FillGpuReport& gpu : filled.report.gpus) {
    for (const std::string& note : gpu.notes) notes.push_back(note);
  }
  Json json{{"policy", filled.arguments.policy},
            {"sharing", capture::live_sharing_name(filled.setup.gpus.front().plan.sharing)},
            {"interrupted", filled.report.interrupted},
            {"notes", notes}};
  if (!filled.is_node()) json.update(gpu_json(filled.report.gpus.front()));
  for (std::size_t i = 0; filled.is_node() && i < filled.report.gpus.size(); ++i) {
    Json gpu = gpu_json(filled.report.gpus[i]);
    gpu["gpu"] = filled.arguments.gpus[i];
    json["gpus"].push_back(std::move(gpu));
  }
  return compact_text(json) + "\n";
}

constexpr const char* kDevice = "h100";

Result<std::string> gate_library(const std::string& wanted) {
  return capture::find_library(
      program_folder(), wanted, {"libbubblesim_gate.so", "the gate", "capture/live/interpose"});
}

std::vector<policy::ClientInfo> clients_of(const FillArguments& arguments) {
  std::vector<policy::ClientInfo> clients(2);
  clients[0].name = "training";
  clients[1].id = ClientId{1};
  clients[1].name = "filler";
  clients[1].role = arguments.filler_role == "online"    ? policy::Role::kOnline
                    : arguments.filler_role == "offline" ? policy::Role::kOffline
                                                         : policy::Role::kTraining;
  return clients;
}

capture::FillerThen then(const std::string& word) {
  return word == "keep" ? capture::FillerThen::kKeep : capture::FillerThen::kStop;
}

/// All that a run needs, checked before anything starts.
struct PreparedFill {
  std::vector<std::unique_ptr<policy::Policy>> policies;
  capture::FillSetup setup;
};

/// What is the same on each GPU.
struct AskedPolicy {
  const policy::PolicySpec& spec;
  policy::ParameterSet parameters;
  policy::GpuInfo constants;  ///< of --device
  capture::Substitute substitute;
  std::vector<policy::ClientInfo> clients;  ///< training, a filler
};

Result<void> check_gpus(const FillArguments& arguments) {
  const std::vector<std::string>& gpus = arguments.gpus;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (std::find(gpus.begin(), gpus.begin() + i, gpus[i]) != gpus.begin() + i) {
      return fail("--gpu", {}, "found " + gpus[i] + " twice; each GPU has one filler");
    }
  }
  const std::size_t lines = arguments.fill.size(), places = std::max(gpus.size(), std::size_t{1});
  if (lines == 1 || lines == places) return {};
  return fail("--fill", {}, fmt::format("found {} lines for {} GPUs; expected one, or one a GPU "
                                        "(--gpu 0,1)", lines, places));
}

Result<void> add_gpu(const AskedPolicy& asked, const std::string& name, const std::string& line,
                     PreparedFill& prepared) {
  capture::FillSetup& setup = prepared.setup;
  capture::FillGpu& gpu = setup.gpus.emplace_back();
  gpu.device = name;
  gpu.fill = line;
  BUBBLESIM_ASSIGN_OR_RETURN(auto policy, policy::make_policy(asked.spec, asked.parameters));
  gpu.policy = prepared.policies.emplace_back(std::move(policy)).get();
  const capture::GpuFacts facts =
      capture::facts_of_gpu(asked.constants, gpu.device, setup.environment);
  BUBBLESIM_ASSIGN_OR_RETURN(
      gpu.plan, capture::plan_live(asked.spec, asked.parameters, *gpu.policy, facts.gpu,
                                   asked.clients, asked.substitute));
  capture::limit_fillers(gpu.plan, facts.free,
                         setup.environment.contains(capture::kMpsMemoryLimit));
  gpu.plan.notes.push_back(facts.text);
  setup.one_gpu = setup.gpus.size() == 1 && facts.is_only_one;
  return {};
}

CheckedResult<PreparedFill> prepare(const FillArguments& arguments, AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto spec, context.policies.find(arguments.policy));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto parameters, read_policy_values(*spec, arguments.values));
  const std::string device = arguments.device.empty() ? kDevice : arguments.device;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto gpu,
                             hardware::find_gpu_spec(device, context.device_folder()));
  const auto grace = parse_duration(arguments.grace);
  if (!grace) return fail("--grace", {}, grace.error().message);
  BUBBLESIM_RETURN_IF_ERROR(check_gpus(arguments));
  PreparedFill prepared{{}, arguments.setup};
  capture::FillSetup& setup = prepared.setup;
  BUBBLESIM_ASSIGN_OR_RETURN(setup.library, gate_library(arguments.library));
  setup.environment = inherited_environment();
  std::vector<policy::ClientInfo> clients = clients_of(arguments);
  clients[0].ranks = std::max(capture::ranks_of_job(setup.environment),
                              static_cast<std::uint32_t>(arguments.gpus.size()));
  setup.spec = spec;
  setup.grace = *grace;
  const AskedPolicy asked{*spec, parameters, schedule::gpu_info(gpu, schedule::DrivenBy::kGate),
                          arguments.substitute.empty() ? capture::Substitute::kRefuse
                                                       : capture::Substitute::kTimeSliced,
                          std::move(clients)};
  const std::size_t places = std::max(arguments.gpus.size(), std::size_t{1});
  for (std::size_t i = 0; i < places; ++i) {
    const std::string name = arguments.gpus.empty() ? "" : arguments.gpus[i];
    const std::string& line = arguments.fill[arguments.fill.size() == 1 ? 0 : i];
    BUBBLESIM_RETURN_IF_ERROR(add_gpu(asked, name, line, prepared));
  }
  return prepared;
}

ExitCode fill(const FillArguments& arguments, AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto prepared, prepare(arguments, context));
  capture::FillSetup& setup = prepared.setup;
  setup.folder = temporary_folder();
  setup.after_end = then(arguments.after_training);
  setup.after_death = then(arguments.after_death);
  setup.say = [](const std::string& text) { fmt::print(stderr, "bubblesim: {}\n", text); };
  BUBBLESIM_ASSIGN_OR_RETURN(const auto report, capture::run_fill(setup));
  const Filled filled{arguments, setup, report};
  fmt::print(stderr, "\n{}", fill_text(filled));
  if (arguments.json) fmt::print("{}", fill_json(filled));
  bool decided = true;
  for (const FillGpuReport& gpu : report.gpus) {
    if (gpu.fault) report_fault(*gpu.fault);
    decided = decided && !gpu.fault;
  }
  const auto& end = report.gpus.front().training.end;
  const int exit_code = end ? end->exit_code : kExitUntrusted;
  return exit_code == kExitOk && !decided ? kExitUntrusted : exit_code;
}

constexpr const char* kFillHelp =
    "Runs a training program and an inference program side by side on this machine's GPU. Neither "
    "is changed: a preloaded library stands before the driver, and the policy decides when the "
    "filler's launches go on. Policies that need measured bubbles or profiles of kernels are "
    "refused before anything starts.\n\n"
    "Examples:\n"
    "  bubblesim fill --policy tgs --train \"torchrun train.py\" --fill \"python3 serve.py\"\n"
    "  bubblesim fill --policy specinf --set budget=0.05 --set reference=10s --fill-log "
    "serve.log --train \"python3 train.py\" --fill \"python3 serve.py\" --json\n"
    "  bubblesim fill --policy tgs --gpu 0,1,2,3 --train \"torchrun --nproc-per-node 4 train.py\" "
    "--fill \"python3 serve.py --port \\$((8000 + BUBBLESIM_FILLER))\"\n"
    "  bubblesim fill --policy xsched --window 4 --after-training keep "
    "--train \"python3 train.py\" --fill \"python3 batch.py\"\n\n"
    "When training has ended the gate is open; the filler is told to end (SIGTERM, after --grace "
    "SIGKILL) or kept. The filler's end leaves training alone. Every signal is "
    "passed on to all jobs, which decide. Exit codes: training's own "
    "(128 + n: ended by signal n); where that is 0, 1 if the policy had to be stopped. 2: nothing "
    "was started, for what was asked cannot be.";

}  // namespace

void add_fill_command(CLI::App& parser, AppContext& context) {
  auto [command, arguments] = add_command(parser, context, fill, "fill", kFillHelp);
  add_fill_options(*command, *arguments, context);
  context.outputs.writes(*command, "--fill-log");
}

}  // namespace bubblesim::app
