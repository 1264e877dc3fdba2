#include "sim/app/advise_arguments.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <utility>

#include "sim/app/policy_options.hpp"
#include "sim/app/quick_config.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::app {
namespace {

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
  if (command.count("--keep") > 0) question.limits.keep = arguments.keep;
  if (!arguments.p95.empty()) {
    const auto p95 = parse_duration(arguments.p95);
    if (!p95 || *p95 <= Duration{}) {
      faults.push_back({"--p95", {}, p95 ? "found " + arguments.p95 + ", expected more than 0s"
                                         : p95.error().message});
    } else {
      question.limits.p95 = *p95;
    }
  }
  if (!arguments.slo.empty()) question.limits.slo = advise::read_slo(arguments.slo, faults);
  if (command.count("--budget") > 0) {
    const auto budget = parse_duration(arguments.budget);
    if (!budget || *budget < kLeastBudget) {
      faults.push_back({"--budget", {}, budget ? "found " + arguments.budget + ", expected at "
                                                                               "least 10ms"
                                               : budget.error().message});
    } else {
      question.budget = *budget;
    }
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

void add_output_options(CLI::App& command, AdviseArguments& arguments) {
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
  add_policy_library_option(command, arguments.policy_libraries);
  add_policy_timeout_option(command, arguments.job.policy_bound);
  command.add_flag("--json", arguments.json, "Print JSON instead of text");
}

void add_time_options(CLI::App& command, RunArguments& job) {
  command.add_option("--filler", job.quick.filler, "The same as FILLER");
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
                     "Without QUESTION: simulated time before anything is measured")
      ->capture_default_str();
  command.add_option("--seed", job.quick.seed, "Without QUESTION: of arrivals and jitter")
      ->capture_default_str();
}

}  // namespace

CheckedResult<std::vector<advise::Question>> advise_questions(AdviseArguments& arguments,
                                                              const CLI::App& command,
                                                              const AppContext& context) {
  BUBBLESIM_RETURN_IF_ERROR(read_job(arguments.job));
  BUBBLESIM_RETURN_IF_ERROR(refuse_beside_config(command, arguments.job, kQuestionPlaces));
  BUBBLESIM_RETURN_IF_ERROR(read_times(arguments.job, command));
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
      question.base = quick_config_text(arguments.job.quick, mode);
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

void add_advise_options(CLI::App& command, AdviseArguments& arguments) {
  arguments.job.command = "advise";
  arguments.job.config_kind = "question";
  command.add_option("QUESTION|TRAINING", arguments.job.config,
                     "Question (JSON; configs/README.md); with FILLER: traces of the training "
                     "job, a file or a folder");
  command.add_option("FILLER", arguments.job.second_path,
                     "Trace of one pass of the inference service");
  add_job_options(command, arguments.job);
  add_time_options(command, arguments.job);
  add_question_options(command, arguments);
  add_output_options(command, arguments);
}

}  // namespace bubblesim::app
