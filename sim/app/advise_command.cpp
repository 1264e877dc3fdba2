// bubblesim advise: what to run, within limits, in one screen.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "capture/live/live_plan.hpp"
#include "sim/advise/advice.hpp"
#include "sim/advise/answer.hpp"
#include "sim/advise/question.hpp"
#include "sim/advise/space.hpp"
#include "sim/app/shared/app.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/app/shared/own_process.hpp"
#include "sim/app/shared/policy_options.hpp"
#include "sim/app/shared/run_arguments.hpp"
#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/measure/measure.hpp"
#include "sim/policy/session/start.hpp"
#include "sim/report/advice/advice_page.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/schedule/policy_terms.hpp"
#include "sim/store/results_store.hpp"

namespace bubblesim::app {
namespace {

// ---- What `bubblesim advise` is asked for: its options, and the questions that they make.

struct AdviseArguments {
  RunArguments job;  ///< the job, or the question's file as its config
  double keep = advise::Limits{}.keep;
  std::string p95;
  std::string slo;
  std::string want;  ///< empty: online with --p95, --slo or --load, else offline
  std::optional<double> load;
  std::string can;
  std::string cannot;
  std::string policies;
  std::string budget = "60s";
  std::string store;
  std::string config;
  std::string html;
  std::size_t threads = 0;
  bool json = false;
};

// A question says these of its base.
constexpr std::array kQuestionPlaces{
    ConfigPlace{"--seed", "/base/seed"},
    ConfigPlace{"--duration", "/base/duration"},
    ConfigPlace{"--warmup", "/base/warmup"},
    ConfigPlace{"--device", "/base/device"},
    ConfigPlace{"--filler-memory", "/base/fillers/.../memory"}};
constexpr Duration kLeastBudget = std::chrono::milliseconds(10);  // as in the file of a question

bool has_latency_limit(const AdviseArguments& arguments) {
  return !arguments.p95.empty() || !arguments.slo.empty();
}

std::vector<observe::FillerMode> modes_of(const AdviseArguments& arguments) {
  std::string want = arguments.want;
  const bool of_service = has_latency_limit(arguments) || arguments.load;
  if (want.empty()) want = of_service ? "online" : "offline";
  std::vector<observe::FillerMode> modes;
  if (want != "online") modes.push_back(observe::FillerMode::kOffline);
  if (want != "offline") modes.push_back(observe::FillerMode::kOnline);
  return modes;
}

// What the options say of limits and system; what they do not say stays.
CheckedResult<void> apply_options(const AdviseArguments& arguments, const CLI::App& command,
                                  const policy::Registry& registry, advise::Question& question) {
  Errors faults;
  const auto read_span = [&](const char* option, const std::string& text, Duration least,
                             const char* expected) {
    const auto span = parse_duration(text);
    if (span && *span >= least) return *span;
    faults.push_back({option, {}, span ? "found " + text + ", expected " + expected
                                       : span.error().message});
    return least;
  };
  if (command.count("--keep") > 0) question.limits.keep = arguments.keep;
  if (!arguments.p95.empty()) {
    question.limits.p95 = read_span("--p95", arguments.p95, Duration{1}, "more than 0s");
  }
  if (!arguments.slo.empty()) {
    const auto limits = read_limits(arguments.slo, std::span(kLimitNames).first(2));
    if (limits) question.limits.slo = {limits->ttft, limits->tpot};
    else faults.push_back(limits.error());
  }
  if (command.count("--budget") > 0) {
    question.budget = read_span("--budget", arguments.budget, kLeastBudget, "at least 10ms");
  }
  if (command.count("--can") > 0) {
    question.system.can = advise::read_features(split_list(arguments.can), {"--can", {}, {}},
                                                faults);
  }
  if (command.count("--cannot") > 0) {
    question.system.cannot = advise::read_features(split_list(arguments.cannot),
                                                   {"--cannot", {}, {}}, faults);
  }
  if (command.count("--policy") > 0) question.system.policies = split_list(arguments.policies);
  if (faults.empty()) faults.add(advise::check_question(question, registry));
  if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
  return {};
}

Result<void> check_options(const AdviseArguments& arguments) {
  const bool file = !arguments.job.config.empty();
  if (file && (!arguments.want.empty() || arguments.load)) {
    return fail(arguments.job.config, {},
                "is a question, whose fillers say their modes and loads; expected no --want and no "
                "--load");
  }
  if (!file && arguments.want == "offline" && has_latency_limit(arguments)) {
    return fail(arguments.p95.empty() ? "--slo" : "--p95", {},
                "found with --want offline, which has no latencies; expected --want online or "
                "both");
  }
  if (!file && arguments.load && arguments.want == "offline") {
    return fail("--load", {}, "found with --want offline, which always has a next request; "
                              "expected --want online or both");
  }
  return {};
}

void add_question_options(CLI::App& command, AdviseArguments& arguments) {
  command.add_option("--keep", arguments.keep, "Least share of training's throughput that stays")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  command.add_option("--p95", arguments.p95,
                     "Longest p95 of the service's latency, such as 50ms (default: none)");
  command.add_option("--slo", arguments.slo,
                     "Longest p95 of a language model's time to the first token and of its time "
                     "per further token: ttft=500ms,tpot=50ms, or one of them");
  command.add_option("--want", arguments.want,
                     "How the filler runs: offline, online or both, an answer each (default: "
                     "online with --p95, --slo or --load, else offline)")
      ->check(CLI::IsMember({"offline", "online", "both"}));
  command.add_option("--load", arguments.load,
                     "Online: the load, 1 is all that the service could serve with its GPUs to "
                     "itself (default: the largest that keeps the limits is searched)")
      ->check(CLI::Range(0.001, 10.0));
  std::string features;
  for (const policy::FeatureText& text : policy::feature_texts()) {
    features += (features.empty() ? "" : ", ") + std::string(text.word);
  }
  command.add_option("--can", arguments.can,
                     "What the system has, comma-separated, of " + features +
                         " (default: all; `bubblesim policies` says who demands what)");
  command.add_option("--cannot", arguments.cannot, "What of it the system has not");
  command.add_option("--policy", arguments.policies,
                     "Policies to try, comma-separated (default: all)");
  command.add_option("--budget", arguments.budget,
                     "How much to simulate: the work that two cores do in about this time. It is "
                     "counted in simulated events, so that the answer does not depend on the "
                     "machine. Half of it confirms the answer; with --duration, confirming comes "
                     "on top and is told before the search begins")
      ->capture_default_str();
}

void add_output_options(CLI::App& command, AdviseArguments& arguments, AppContext& context) {
  command.add_option("-o,--store", arguments.store,
                     "Store that keeps all runs, as a sweep's; started again, it goes on there "
                     "(default: nothing is kept)");
  command.add_option("--config", arguments.config,
                     "Write the recommendation's run config here");
  command.add_option("--html", arguments.html,
                     "Write the answer as a page: every setting that was tried, by what training "
                     "keeps and what the filler gains");
  command.add_option("--threads", arguments.threads,
                     "Simulations at once; the answer does not depend on it (default: all cores)");
  add_policy_library_option(command, context);
  add_policy_timeout_option(command, arguments.job.policy_bound);
  command.add_flag("--json", arguments.json, "Print JSON instead of text");
}

void add_time_options(CLI::App& command, RunArguments& job) {
  command.add_option("--filler-memory", job.quick.filler_memory,
                     "Without QUESTION: device memory that the filler holds, such as 4GB (default: "
                     "not known)");
  command.add_option("--device", job.quick.device,
                     "Device to simulate: a name or a file (default: the one recorded)");
  command.add_option("--duration", job.duration,
                     "Without QUESTION: simulated time of a full trial, which the answer is "
                     "confirmed at; where it is not given, less if --budget is small")
      ->capture_default_str();
  command.add_option("--warmup", job.warmup,
                     "Without QUESTION: simulated time before anything is measured (default: 60s, "
                     "half of --duration at most)");
  command.add_option("--seed", job.quick.seed, "Without QUESTION: of arrivals and jitter")
      ->capture_default_str();
}

// One a mode; or that of a file.
CheckedResult<std::vector<advise::Question>> advise_questions(AdviseArguments& arguments,
                                                              const CLI::App& command,
                                                              const AppContext& context) {
  BUBBLESIM_RETURN_IF_ERROR(read_job(arguments.job));
  BUBBLESIM_RETURN_IF_ERROR(refuse_beside_config(command, arguments.job, kQuestionPlaces));
  BUBBLESIM_RETURN_IF_ERROR(read_times(arguments.job));
  BUBBLESIM_RETURN_IF_ERROR(check_options(arguments));
  std::vector<advise::Question> questions;
  if (!arguments.job.config.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(advise::Question question,
                               advise::read_question(arguments.job.config, context.policies));
    questions.push_back(std::move(question));
  } else {
    for (const observe::FillerMode mode : modes_of(arguments)) {
      advise::Question& question = questions.emplace_back();
      question.file = "advise";
      question.name = observe::filler_mode_name(mode);
      question.base.text = quick_config_text(arguments.job.quick, mode);
      if (mode == observe::FillerMode::kOnline) question.load_share = arguments.load;
      if (command.count("--duration") == 0) {
        question.confirmed_at = advise::ConfirmedAt::kAffordedLength;
      }
    }
  }
  for (advise::Question& question : questions) {
    BUBBLESIM_RETURN_IF_ERROR(apply_options(arguments, command, context.policies, question));
    question.budget /= static_cast<std::int64_t>(questions.size());
    if (question.name == "offline" && questions.size() > 1) {
      question.limits.p95.reset();
      question.limits.slo = {};
    }
  }
  return questions;
}

void add_advise_options(CLI::App& command, AdviseArguments& arguments, AppContext& context) {
  arguments.job.command = "advise";
  arguments.job.config_kind = "question";
  arguments.job.duration = "120s";
  command.add_option("QUESTION|TRAINING", arguments.job.config,
                     "Question (JSON; configs/README.md); with FILLER: traces of the training "
                     "job, a file or a folder");
  add_job_options(command, arguments.job);
  add_time_options(command, arguments.job);
  add_question_options(command, arguments);
  add_output_options(command, arguments, context);
}

// ---- What `measure` and `fill` say to a recommended setting, asked without starting anything.

constexpr const char* kDeviceToldToFill = "h100";  // what `fill` takes where no driver is

CheckedResult<void> check_measured(const std::string& run_config, std::uint32_t rank,
                                   const AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const run::RunConfig config,
                             run::parse_run_config(run_config, "advice", context.policies));
  BUBBLESIM_ASSIGN_OR_RETURN(const run::LoadedRun loaded,
                             run::load_run(config, context.device_folder()));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto lone, run::lone_rank(loaded, rank));
  Errors faults = measure::check_measurable(lone, context.policies, {});
  if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
  return {};
}

Result<void> check_filled(const advise::Proposal& proposal, policy::Role filler,
                          const AppContext& context) {
  const policy::ParameterSet parameters = advise::parameters_of(proposal);
  const auto gpu = hardware::find_gpu_spec(kDeviceToldToFill, context.device_folder());
  if (!gpu) return tl::make_unexpected(gpu.error().front());
  std::vector<policy::ClientInfo> clients(2);
  clients[0].name = "training";
  clients[1].id = ClientId{1};
  clients[1].name = "filler";
  clients[1].role = filler;
  BUBBLESIM_ASSIGN_OR_RETURN(const std::unique_ptr<policy::Policy> policy,
                             policy::make_policy(*proposal.policy, parameters));
  BUBBLESIM_RETURN_IF_ERROR(capture::plan_live(*proposal.policy, parameters, *policy,
                                               schedule::gpu_info(*gpu, schedule::DrivenBy::kGate),
                                               clients, capture::Substitute::kRefuse));
  return {};
}

// Why `measure --rank RANK` on a GPU would refuse the run config (its text); empty: it takes it.
std::string why_not_measured(const std::string& run_config, std::uint32_t rank,
                             const AppContext& context) {
  const auto checked = check_measured(run_config, rank, context);
  return checked ? std::string() : checked.error().front().message;
}

// Why `fill` would refuse the policy with these parameters; empty: it takes them.
std::string why_not_filled(const advise::Proposal& proposal, policy::Role filler,
                           const AppContext& context) {
  const auto checked = check_filled(proposal, filler, context);
  return checked ? std::string() : checked.error().message;
}

std::string progress_text(const advise::BestTrial& best) {
  return fmt::format("{} trials; {:.2f} GPUs, kept {:.3f}: {}", best.trials, best.result->gain,
                     best.result->kept, best.text);
}

// Before what may take long: how long it does, in work of two cores.
void tell_plan(const advise::SearchPlan& plan) {
  fmt::print(stderr, "bubblesim: at most about {:.3g} s to search, {:.3g} s to confirm at {} "
                     "(work of two cores)\n",
             plan.search_events / advise::kEventsPerSecond,
             plan.confirmation_events / advise::kEventsPerSecond,
             format_duration(plan.length));
}

struct Answered {
  std::vector<advise::Advice> advices;
  std::vector<std::string> files;
};

CheckedResult<void> answer_all(const std::vector<advise::Question>& questions,
                               const AdviseArguments& arguments, const AppContext& context,
                               const StopSignals& signals, Answered& answered) {
  std::unique_ptr<store::ResultsStore> store;
  if (!arguments.store.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(store,
                               store::open_store(arguments.store, store::StoreAccess::kWrite));
  }
  advise::AnswerOptions options;
  options.config_folder = context.config_folder;
  BUBBLESIM_ASSIGN_OR_RETURN(options.version, version_with_policies(context));
  options.threads = threads_of(arguments.threads);
  options.store = store.get();
  options.stop = &signals.stop();
  options.why_not_live = [&context](const advise::Proposal& proposal, policy::Role filler) {
    return why_not_filled(proposal, filler, context);
  };
  options.why_not_measured = [&context](const std::string& config, std::uint32_t rank) {
    return why_not_measured(config, rank, context);
  };
  for (const advise::Question& question : questions) {
    ProgressLine progress;
    advise::BestTrial best;
    options.begins = progress.callback();
    options.planned = [&progress](const advise::SearchPlan& plan) {
      progress.clear();
      if (progress.on_terminal()) tell_plan(plan);
    };
    options.tried = [&](const advise::Trial& trial, const advise::TrialResult& result) {
      best.note(trial, result, question.limits);
      if (best.result) progress.show(progress_text(best));
    };
    BUBBLESIM_ASSIGN_OR_RETURN(advise::Advice advice,
                               advise::answer(question, context.policies, options));
    progress.clear();
    const std::string& asked = arguments.config;
    const bool one = questions.size() == 1 || asked.empty();
    const std::string file = one ? asked : path_of_mode(asked, question.name);
    answered.advices.push_back(std::move(advice));
    answered.files.push_back(file);
    if (signals.count() > 0) break;
  }
  return {};
}

void print_answers(const Answered& answered, bool json) {
  std::string text;
  Json list = Json::array();
  for (std::size_t i = 0; i < answered.advices.size(); ++i) {
    if (json) {
      list.push_back(advise::advice_json(answered.advices[i], answered.files[i]));
    } else {
      text += (i > 0 ? "\n" : "") + advise::advice_text(answered.advices[i], answered.files[i]);
    }
  }
  if (json) text = indented_text(list.size() == 1 ? list.front() : list, 1) + "\n";
  std::fputs(text.c_str(), stdout);
}

// The faults of all files, when the answers are printed.
Errors write_files(const Answered& answered, const std::string& page) {
  Errors faults;
  const auto write = [&](const std::string& path, const std::string& text) {
    if (const auto done = write_output(path, text); !done) faults.push_back(done.error());
  };
  std::vector<report::ShownAdvice> shown;
  for (std::size_t i = 0; i < answered.advices.size(); ++i) {
    const advise::Advice& advice = answered.advices[i];
    if (!advice.run_config.empty()) write(answered.files[i], advice.run_config);
    shown.push_back({&advice, answered.files[i]});
  }
  if (!page.empty()) write(page, report::advice_page(shown));
  return faults;
}

ExitCode run_advise(AdviseArguments& arguments, const CLI::App& command, AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto questions, advise_questions(arguments, command, context));
  StopSignals signals;
  const PolicyTimeout timeout(arguments.job.policy_bound, nullptr);
  Answered answered;
  const auto done = answer_all(questions, arguments, context, signals, answered);
  if (!done) {
    report_faults(done.error());
    return signals.count() > 0 ? kExitInterrupted : kExitInputFault;
  }
  print_answers(answered, arguments.json);
  std::fflush(stdout);
  const Errors unwritten = write_files(answered, arguments.html);
  report_faults(unwritten);
  if (signals.count() > 0) return kExitInterrupted;
  if (!unwritten.empty()) return kExitInputFault;
  const bool bad = std::ranges::any_of(answered.advices, [](const advise::Advice& advice) {
    return advice.counters.has_error();
  });
  return bad ? kExitUntrusted : kExitOk;
}

}  // namespace

void add_advise_command(CLI::App& parser, AppContext& context) {
  auto [command, arguments] = add_command(
      parser, context, run_advise, "advise",
      "Says what to run: searches policies, their parameters and loads for what gains most while "
      "training keeps its throughput and the service its latency.\n\n"
      "Examples:\n"
      "  bubblesim advise traces/samples/training traces/samples/inference.json.gz --keep 0.95 "
      "--cannot mig,driver_patch,rewritten_kernels --duration 2s --warmup 500ms --budget 2s\n"
      "  bubblesim advise configs/advise/example.json --budget 1s --json\n"
      "  bubblesim advise --synth-model roberta-large --plan ddp-4 --cluster a100-40gb-4 "
      "--filler traces/samples/inference.json.gz --can mps,time_slicing --p95 200ms --duration 3s "
      "--warmup 1s --budget 1s\n\n"
      "Many jobs and a queue of work: python3 -m bubblesim.fleet (configs/README.md, A fleet).\n\n"
      "Exit codes: 0 there is an answer, be it that nothing keeps the limits; 1 it must not be "
      "trusted (a counter of severity error); 2 a fault of the input or of a policy, or limits "
      "that nothing could keep; 130 stopped by Ctrl-C or SIGTERM, with the best so far.");
  add_advise_options(*command, *arguments, context);
  context.outputs.writes(*command, "--config", [](const std::string& value) {
    return std::vector<std::string>{value, path_of_mode(value, "offline"),
                                    path_of_mode(value, "online")};
  });
  context.outputs.writes(*command, "--html");
}

}  // namespace bubblesim::app
