#include "sim/app/shared/run_arguments.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include <CLI/CLI.hpp>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/units.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/run/load_trace.hpp"

namespace bubblesim::app {
namespace {

// Default of --usage-interval. NVML's own sample periods are between 1/6 s and 1 s (nvml.h,
// nvmlUtilization_t).
constexpr const char* kUsageInterval = "100ms";

Result<void> read_duration(const char* option, const std::string& text, Duration& duration) {
  const auto read = parse_duration(text);
  if (!read) return fail(option, {}, read.error().message);
  duration = *read;
  return {};
}

// A length alone asks for the file of --out; a file alone is cut as finely as the default.
Result<void> read_usage(RunArguments& arguments) {
  const std::string& interval = arguments.usage_interval;
  if (!interval.empty() && arguments.usage.empty()) {
    if (arguments.out.empty()) {
      return fail("--usage-interval", {}, "expected --usage FILE or --out DIR with it");
    }
    arguments.usage = arguments.out + "/usage.csv";
  }
  if (arguments.usage.empty()) return {};
  const std::string text = interval.empty() ? kUsageInterval : interval;
  BUBBLESIM_RETURN_IF_ERROR(read_duration("--usage-interval", text, arguments.usage_length));
  if (arguments.usage_length > Duration{}) return {};
  return fail("--usage-interval", {}, "found \"" + text + "\", expected more than 0s");
}

void add_usage_options(CLI::App& command, RunArguments& arguments) {
  command.add_option("--usage", arguments.usage,
                     "Write how each GPU is used over time under each policy, as CSV: busy as NVML "
                     "shows it, SM shares, memory (sim/observe/OUTPUTS.md, Usage over time)");
  command.add_option(
      "--usage-interval", arguments.usage_interval,
      std::string("Length of its intervals, such as 1s (default: ") + kUsageInterval + ")");
}

void add_timeline_options(CLI::App& command, RunArguments& arguments) {
  command.add_option("--timeline", arguments.timeline,
                     "Write a Chrome trace of one policy's run, for https://ui.perfetto.dev");
  command.add_option("--timeline-policy", arguments.timeline_policy,
                     "Whose timeline (default: specinf's, else the last policy's)");
  command
      .add_option("--timeline-window", arguments.timeline_window,
                  "How much of the run the timeline shows, from the end of the warm-up on")
      ->capture_default_str();
}

// Options of runs without a config; times and seed also override a config's.
void add_quick_options(CLI::App& command, RunArguments& arguments) {
  command.add_option("--mode", arguments.mode, "Without CONFIG: the filler's mode")
      ->check(CLI::IsMember({"offline", "online", "both"}))
      ->capture_default_str();
  command
      .add_option("--load", arguments.quick.load,
                  "Without CONFIG, online: offered load, 1 is all that a GPU of the "
                  "service's own can serve")
      ->check(CLI::Range(0.001, 10.0))
      ->capture_default_str();
  command
      .add_option("--duration", arguments.duration,
                  "Simulated time, such as 60s, with CONFIG in place of its duration or "
                  "iterations. Without CONFIG auto: until training's rate is known to 0.5 %, an "
                  "offline filler's rate to 2 %, an online one's p95 to 5 %; measured for 120s at "
                  "most, or for half of the time in which a policy settles")
      ->capture_default_str();
  command
      .add_option("--warmup", arguments.warmup,
                  "Simulated time before anything is measured, with CONFIG in place of its "
                  "warm-up (default: with --duration auto 1s, and more for policies that need it; "
                  "else 60s, half of --duration at most)");
  command
      .add_option("--seed", arguments.quick.seed,
                  "Of arrivals and jitter, with CONFIG in place of its seed")
      ->capture_default_str();
}

// TRAINING FILLER without options.
Result<void> move_paths(RunArguments& arguments) {
  QuickRun& quick = arguments.quick;
  if (arguments.second_path.empty()) return {};
  if (!quick.training.empty() || !quick.filler.empty() || !arguments.synth_model.empty()) {
    return fail(arguments.command, {},
                "found two paths beside --training, --filler or --synth-model; expected either "
                "TRAINING FILLER or the options");
  }
  quick.training = {std::exchange(arguments.config, {})};
  quick.filler = std::exchange(arguments.second_path, {});
  return {};
}

// A trace where a config is expected: one of a run's two paths.
Result<void> check_config(const RunArguments& arguments) {
  if (!run::looks_like_trace(arguments.config)) return {};
  return fail(arguments.config, {},
              "is a trace or a folder, not a " + arguments.config_kind +
                  "; expected a second path: bubblesim " + arguments.command +
                  " TRAINING FILLER, the job's traces and one of the service that fills its "
                  "bubbles");
}

}  // namespace

void add_job_options(CLI::App& command, RunArguments& arguments) {
  command.add_option("FILLER", arguments.second_path,
                     "Trace of one pass of the inference service");
  auto* training = command.add_option("--training", arguments.quick.training,
                                      "The same as TRAINING; may be several files");
  auto* model = command
                    .add_option("--synth-model", arguments.synth_model,
                                "In place of traces: a model to train (bubblesim models)")
                    ->excludes(training);
  auto* plan =
      command.add_option("--plan", arguments.plan, "With --synth-model: how (bubblesim plans)");
  auto* cluster = command.add_option("--cluster", arguments.cluster,
                                     "With --synth-model: on what (bubblesim clusters). With "
                                     "Chakra traces whose collectives have sizes and no times: "
                                     "what they run on");
  model->needs(plan)->needs(cluster);
  plan->needs(model);
  command.add_option("--filler", arguments.quick.filler, "The same as FILLER");
}

void add_run_arguments(CLI::App& command, RunArguments& arguments, AppContext& context) {
  command.add_option("CONFIG|TRAINING", arguments.config,
                     "Run config (JSON; configs/README.md); with FILLER: traces of the training "
                     "job, a file or a folder");
  add_job_options(command, arguments);
  command.add_option("--policy", arguments.quick.policies,
                     "Policies to compare, comma-separated, or all; NAME:PARAMETER=VALUE sets a "
                     "parameter (default: the config's, else "
                     "exclusive, time_slicing, mps, tgs, specinf, pipefill and their bound ideal)");
  add_policy_library_option(command, context);
  add_policy_timeout_option(command, arguments.policy_bound);
  command.add_option("--device", arguments.quick.device,
                     "Device to simulate: a name (`bubblesim devices`) or a file, such as one of "
                     "`bubblesim calibrate` (default: the config's, else the one recorded)");
  add_quick_options(command, arguments);
  command.add_option("--out", arguments.out,
                     "Folder for table.txt, results.json, results.csv, timeline.json, view.json "
                     "(for `bubblesim view`), servers.csv of language-model servers and, with "
                     "--usage-interval, usage.csv");
  add_timeline_options(command, arguments);
  add_usage_options(command, arguments);
  command.add_option("--slo", arguments.slo,
                     "Limits that goodput of language-model servers counts, in place of the "
                     "config's: ttft=500ms,tpot=50ms,latency=10s, or some of them");
  command.add_option("--lone-rank", arguments.lone_rank,
                     "Simulate this rank only, on one GPU, as `bubblesim measure` runs it: its "
                     "collectives last what they last in the whole job alone, however late the "
                     "rank is; fillers are those of its GPU");
  command.add_option("--threads", arguments.threads,
                     "Simulations at once; results do not depend on it (default: all cores)");
  auto* json = command.add_flag("--json", arguments.json, "Print JSON instead of the table");
  command.add_flag("--force", arguments.force,
                   "Simulate more than 1e8 requests or 1e11 kernels: days, or all of the memory; "
                   "replace files that are there, and that bubblesim did not make");
  command.add_flag("--wide", arguments.wide, "Every column of the table");
  command.add_flag("--notices", arguments.notices,
                   "Print every note on the table, not the few that must be known");
  command.add_flag("--csv", arguments.csv, "Print CSV instead of the table")->excludes(json);
}

Result<observe::ServiceLimits> read_limits(const std::string& text,
                                           std::span<const std::string_view> names) {
  observe::ServiceLimits limits;
  const std::array places{&limits.ttft, &limits.tpot, &limits.latency};  // by kLimitNames
  const std::vector<std::string> parts = split_list(text);
  const auto commas = static_cast<std::size_t>(std::ranges::count(text, ','));
  if (parts.size() != commas + 1) {
    return fail("--slo", {}, "found \"" + text + "\", expected one limit between commas");
  }
  for (const std::string& part : parts) {
    const std::size_t sign = std::min(part.find('='), part.size());
    const std::string name = part.substr(0, sign);
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      return fail("--slo", {}, unknown_name_message("limit", name, names));
    }
    std::optional<Duration>& limit = *places[static_cast<std::size_t>(found - names.begin())];
    const auto span = parse_duration(part.substr(std::min(sign + 1, part.size())));
    if (!span || limit) {
      return fail("--slo", {}, "found \"" + part + "\", expected " + name +
                                   "=SPAN once, such as " + name + "=50ms");
    }
    if (*span == Duration{}) {
      return fail("--slo", {}, "found \"" + part + "\", expected more than 0s");
    }
    limit = *span;
  }
  return limits;
}

Result<void> read_job(RunArguments& arguments) {
  QuickRun& quick = arguments.quick;
  BUBBLESIM_RETURN_IF_ERROR(move_paths(arguments));
  if (!arguments.slo.empty() && arguments.config.empty()) {
    return fail("--slo", {}, "expected a CONFIG with a language-model server");
  }
  const bool synth = !arguments.synth_model.empty();
  const bool job = synth || !quick.training.empty();
  if ((job || !quick.filler.empty()) == !arguments.config.empty()) {
    return fail(arguments.command, {},
                "expected either CONFIG, or TRAINING and FILLER (bubblesim help " +
                    arguments.command + " has examples)");
  }
  if (!arguments.config.empty()) {
    if (arguments.cluster.empty()) return check_config(arguments);
    return fail("--cluster", {}, "found beside " + arguments.config +
                                     "; the config says it: training/cluster");
  }
  const std::string& command = arguments.command;
  if (!job) return fail(command, {}, "expected TRAINING (or --synth-model) with the filler");
  if (quick.filler.empty()) return fail(command, {}, "expected --filler FILLER with the job");
  if (!synth) {
    quick.cluster = arguments.cluster;
    return {};
  }
  quick.synth.emplace();
  quick.synth->model = arguments.synth_model;
  quick.synth->plan = arguments.plan;
  quick.synth->cluster = arguments.cluster;
  return {};
}

Result<void> refuse_beside_config(const CLI::App& command, const RunArguments& arguments,
                                  std::span<const ConfigPlace> options) {
  if (arguments.config.empty()) return {};
  for (const auto& [option, place] : options) {
    if (command.count(option) == 0) continue;
    return fail(option, {}, "found beside " + arguments.config + "; the " +
                                arguments.config_kind + " says it: " + place);
  }
  return {};
}

namespace {

Result<void> read_quick_times(RunArguments& arguments) {
  QuickRun& quick = arguments.quick;
  const bool automatic = arguments.duration == "auto";
  if (automatic) {
    quick.warmup = run::kAutoWarmup;  // policies that need more have more
  } else {
    BUBBLESIM_RETURN_IF_ERROR(read_duration("--duration", arguments.duration, quick.duration));
    quick.warmup = std::min(quick.warmup, quick.duration / 2);
  }
  if (!arguments.warmup.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(read_duration("--warmup", arguments.warmup, quick.warmup));
  }
  if (automatic) {
    quick.precision.emplace();
    quick.duration = quick.warmup + quick.precision->most;
  }
  if (quick.duration == Duration{}) return fail("--duration", {}, "found 0s, expected more");
  if (quick.warmup >= quick.duration) {
    return fail("--warmup", {},
                "found " + format_duration(quick.warmup) + ", expected less than --duration (" +
                    arguments.duration + ")");
  }
  return {};
}

}  // namespace

Result<void> override_config(const RunArguments& arguments, const CLI::App& command,
                             run::RunConfig& config) {
  const bool warmup = command.count("--warmup") > 0;
  if (command.count("--seed") > 0) config.seed = arguments.quick.seed;
  if (warmup) {
    BUBBLESIM_RETURN_IF_ERROR(read_duration("--warmup", arguments.warmup, config.warmup));
  }
  if (command.count("--duration") > 0) {
    if (arguments.duration == "auto") {
      return fail("--duration", {}, "found auto beside a config, expected a span such as 60s; "
                                    "the config may say it: \"duration\": \"auto\"");
    }
    Duration& duration = config.duration.emplace();
    BUBBLESIM_RETURN_IF_ERROR(read_duration("--duration", arguments.duration, duration));
    if (duration == Duration{}) return fail("--duration", {}, "found 0s, expected more");
    config.precision.reset();
    config.iterations.reset();
  } else if (config.precision) {
    config.duration = config.warmup + config.precision->most;
  }
  if (!config.duration || config.warmup < *config.duration) return {};
  return fail(warmup ? "--warmup" : "--duration", {},
              "a warm-up of " + format_duration(config.warmup) + " leaves nothing to measure of " +
                  format_duration(*config.duration) + "; expected less");
}

Result<void> read_times(RunArguments& arguments) {
  if (arguments.config.empty()) BUBBLESIM_RETURN_IF_ERROR(read_quick_times(arguments));
  BUBBLESIM_RETURN_IF_ERROR(
      read_duration("--timeline-window", arguments.timeline_window, arguments.timeline_length));
  return read_usage(arguments);
}

std::string timeline_policy(const RunArguments& arguments, const run::RunConfig& config) {
  if (!arguments.timeline_policy.empty()) return arguments.timeline_policy;
  for (const run::PolicyChoice& choice : config.policies) {
    if (choice.name == "specinf") return choice.name;
  }
  return config.policies.back().name;
}

std::string path_of_mode(const std::string& file, const std::string& mode) {
  const std::filesystem::path path(file);
  const std::string name = path.stem().string() + "-" + mode + path.extension().string();
  return (path.parent_path() / name).string();
}

std::string timeline_path(const RunArguments& arguments, const run::RunConfig& config) {
  const bool two = arguments.config.empty() && arguments.mode == "both";
  return two && config.name == "online" ? online_timeline(arguments.timeline)
                                        : arguments.timeline;
}

namespace {

constexpr std::array<std::string_view, 7> kDefaultPolicies{
    "exclusive", "time_slicing", "mps", "tgs", "specinf", "pipefill", "ideal"};

bool is_default(const std::string& name, const AppContext& context) {
  return context.policy_files.contains(name) ||
         std::find(kDefaultPolicies.begin(), kDefaultPolicies.end(), name) !=
             kDefaultPolicies.end();
}

std::string filler_name(const QuickRun& quick) {
  return std::filesystem::path(quick.filler).stem().stem().string();
}

std::string absolute(const std::string& path) {
  std::error_code fault;
  const auto whole = std::filesystem::absolute(path, fault).lexically_normal();
  return fault ? path : whole.string();
}

Json training_json(const QuickRun& quick) {
  if (quick.synth) {
    Json synth{{"model", quick.synth->model}, {"cluster", quick.synth->cluster}};
    if (const auto* plan = std::get_if<std::string>(&quick.synth->plan)) synth["plan"] = *plan;
    return {{"synth", std::move(synth)}};
  }
  Json training{{"trace", list_json(quick.training, absolute)}};
  if (!quick.cluster.empty()) training["cluster"] = quick.cluster;
  return training;
}

/// The parameters in NAME:PARAMETER=VALUE:...; nothing: not of this form.
std::optional<std::vector<policy::GivenParameter>> given_parameters(std::string_view text) {
  std::vector<policy::GivenParameter> given;
  for (std::size_t colon = text.find(':'); colon != std::string_view::npos;) {
    text.remove_prefix(colon + 1);
    colon = text.find(':');
    const std::string_view part = text.substr(0, colon);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    given.push_back({part.substr(0, equals), std::string(part.substr(equals + 1))});
  }
  return given;
}

CheckedResult<run::PolicyChoice> choose_policy(const std::string& text,
                                               const AppContext& context) {
  const auto spec = context.policies.find(text.substr(0, text.find(':')));
  if (!spec) return fail("--policy", {}, spec.error().message);
  const auto given = given_parameters(text);
  if (!given) {
    return fail("--policy", {}, "found \"" + text + "\", expected NAME:PARAMETER=VALUE");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(auto parameters,
                             policy::check_parameters(**spec, *given, "--policy", ""));
  return run::PolicyChoice{(*spec)->name, std::move(parameters)};
}

}  // namespace

std::string quick_config_text(const QuickRun& quick, observe::FillerMode mode) {
  Json filler{{"name", filler_name(quick)},
              {"mode", observe::filler_mode_name(mode)},
              {"program", {{"trace", absolute(quick.filler)}}}};
  if (!quick.filler_memory.empty()) filler["memory"] = quick.filler_memory;
  if (mode == observe::FillerMode::kOnline) {
    filler["arrivals"] = {{"process", "poisson"}, {"rate_per_s", 1}};
  }
  Json config{{"name", observe::filler_mode_name(mode)}, {"seed", quick.seed}};
  if (!quick.device.empty()) config["device"] = quick.device;
  config["duration"] = quick.precision ? "auto" : format_duration(quick.duration);
  config["warmup"] = format_duration(quick.warmup);
  config["training"] = training_json(quick);
  config["fillers"] = Json::array({std::move(filler)});
  config["policies"] = Json::array({"exclusive"});
  return compact_text(config);
}

CheckedResult<std::vector<run::PolicyChoice>> choose_policies(const std::string& names,
                                                              const AppContext& context) {
  std::vector<run::PolicyChoice> choices;
  Errors faults;
  const std::vector<std::string> list = names.empty() ? std::vector<std::string>{""}
                                                      : split_list(names);
  for (const std::string& text : list) {
    if (text.empty() || text == "all") {
      for (const policy::PolicySpec& spec : context.policies.all()) {
        if (text.empty() && !is_default(spec.name, context)) continue;
        choices.push_back({spec.name, policy::defaults(spec)});
      }
      continue;
    }
    auto choice = choose_policy(text, context);
    if (choice) {
      choices.push_back(std::move(*choice));
    } else {
      faults.insert(faults.end(), choice.error().begin(), choice.error().end());
    }
  }
  if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
  if (choices.empty()) return fail("--policy", {}, "found no name, expected a,b,c or all");
  if (Errors repeated = run::repeated_policies(choices, "--policy", {}); !repeated.empty()) {
    return tl::unexpected<Errors>(std::move(repeated));
  }
  return choices;
}

CheckedResult<run::RunConfig> quick_config(const QuickRun& quick, observe::FillerMode mode,
                                           double requests_per_s, std::size_t gpus,
                                           const AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto policies, choose_policies(quick.policies, context));
  run::RunConfig config;
  config.name = observe::filler_mode_name(mode);
  config.seed = quick.seed;
  if (!quick.device.empty()) config.device = quick.device;
  config.duration = quick.duration;
  config.precision = quick.precision;
  config.warmup = quick.warmup;
  config.training.traces = quick.training;
  if (!quick.cluster.empty()) config.training.cluster = quick.cluster;
  config.training.synth = quick.synth;
  config.policies = std::move(policies);
  run::FillerConfig filler;
  filler.name = filler_name(quick);
  filler.mode = mode;
  filler.program = run::TraceProgram{quick.filler};
  if (mode == observe::FillerMode::kOnline) {
    const double rate = quick.load * requests_per_s * static_cast<double>(gpus);
    filler.arrivals = workload::PoissonArrivals{rate};
  }
  config.fillers.push_back(std::move(filler));
  return config;
}

}  // namespace bubblesim::app
