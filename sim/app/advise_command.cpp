// bubblesim advise: what to run, within limits, in one screen.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/advice_text.hpp"
#include "sim/advise/answer.hpp"
#include "sim/app/app.hpp"
#include "sim/app/policy_libraries.hpp"
#include "sim/app/run_arguments.hpp"
#include "sim/app/stop_signals.hpp"
#include "sim/base/json.hpp"
#include "sim/base/output_file.hpp"
#include "sim/base/units.hpp"
#include "sim/store/results_store.hpp"

namespace bubblesim::app {
namespace {

struct AdviseArguments {
  RunArguments job;  ///< the job, or the question's file as its config
  double keep = advise::Limits{}.keep;
  std::string p95;
  std::string want;  ///< empty: online with --p95, else offline
  std::optional<double> load;
  std::string can;
  std::string cannot;
  std::string policies;
  std::string budget = "60s";
  std::string store;
  std::string config;
  std::vector<std::string> policy_libraries;
  std::size_t threads = 0;
  bool json = false;
};

/// What is shown while it searches.
class AdviseProgress {
 public:
  explicit AdviseProgress(const advise::Limits& limits) : limits_(limits) {}

  void begins(const std::string& step) { line_.show(step); }

  void tried(const advise::Trial& trial, const advise::TrialResult& result) {
    ++trials_;
    const bool better = !best_ || advise::is_better(result, *best_, limits_);
    if (result.done && !trial.proposal.policy->oracle && better) {
      best_ = result;
      text_ = advise::proposal_text(trial.proposal);
    }
    if (!best_) return;
    line_.show(fmt::format("{} trials; {:.2f} GPUs, kept {:.3f}: {}", trials_, best_->gain,
                           best_->kept, text_));
  }

  void clear() { line_.clear(); }

 private:
  const advise::Limits& limits_;
  ProgressLine line_;
  std::size_t trials_ = 0;
  std::optional<advise::TrialResult> best_;
  std::string text_;
};

std::vector<observe::FillerMode> modes_of(const AdviseArguments& arguments) {
  std::string want = arguments.want;
  if (want.empty()) want = arguments.p95.empty() ? "offline" : "online";
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
  if (command.count("--budget") > 0) {
    const auto budget = parse_duration(arguments.budget);
    if (!budget || *budget < std::chrono::seconds(1)) {
      faults.push_back({"--budget", {}, budget ? "found " + arguments.budget + ", expected at "
                                                                               "least 1s"
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
  if (!file && arguments.want == "offline" && !arguments.p95.empty()) {
    return fail("--p95", {}, "found with --want offline, which has no latencies; expected --want "
                             "online or both");
  }
  if (!file && arguments.load && arguments.want == "offline") {
    return fail("--load", {}, "found with --want offline, which always has a next request; "
                              "expected --want online or both");
  }
  return {};
}

// One a mode; or that of a file.
CheckedResult<std::vector<advise::Question>> questions_of(AdviseArguments& arguments,
                                                          const CLI::App& command,
                                                          const AppContext& context) {
  if (auto read = read_job(arguments.job); !read) return tl::make_unexpected(read.error());
  if (auto read = read_times(arguments.job); !read) return tl::make_unexpected(read.error());
  if (auto ok = check_options(arguments); !ok) return tl::make_unexpected(ok.error());
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
    }
  }
  for (advise::Question& question : questions) {
    BUBBLESIM_RETURN_IF_ERROR(apply_options(arguments, command, context.policies, question));
    question.budget /= static_cast<std::int64_t>(questions.size());
    if (question.name == "offline" && questions.size() > 1) question.limits.p95.reset();
  }
  return questions;
}

// NAME-advice.json in the current folder, if no other was asked for.
std::string config_file(const AdviseArguments& arguments, const advise::Question& question,
                        std::size_t questions) {
  if (arguments.config.empty()) return question.name + "-advice.json";
  if (questions == 1) return arguments.config;
  const std::size_t dot = arguments.config.rfind('.');
  const std::string end = dot == std::string::npos ? "" : arguments.config.substr(dot);
  return arguments.config.substr(0, dot) + "-" + question.name + end;
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
  options.stopped = [&signals] { return signals.count() > 0; };
  for (const advise::Question& question : questions) {
    AdviseProgress progress(question.limits);
    options.begins = [&progress](const std::string& step) { progress.begins(step); };
    options.tried = [&progress](const advise::Trial& trial, const advise::TrialResult& result) {
      progress.tried(trial, result);
    };
    BUBBLESIM_ASSIGN_OR_RETURN(advise::Advice advice,
                               advise::answer(question, context.policies, options));
    progress.clear();
    const std::string file = config_file(arguments, question, questions.size());
    if (!advice.run_config.empty()) {
      BUBBLESIM_RETURN_IF_ERROR(write_output(file, advice.run_config));
    }
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
  if (json) text = (list.size() == 1 ? list.front() : list).dump(1) + "\n";
  std::fputs(text.c_str(), stdout);
}

int run_advise(AdviseArguments& arguments, const CLI::App& command, AppContext& context) {
  if (auto loaded = load_policy_libraries(arguments.policy_libraries, context); !loaded) {
    return report_faults(loaded.error());
  }
  const auto questions = questions_of(arguments, command, context);
  if (!questions) return report_faults(questions.error());
  StopSignals signals;
  Answered answered;
  const auto done = answer_all(*questions, arguments, context, signals, answered);
  if (!done) {
    report_faults(done.error());
    return signals.count() > 0 ? kExitInterrupted : kExitInputFault;
  }
  print_answers(answered, arguments.json);
  if (signals.count() > 0) return kExitInterrupted;
  const bool bad = std::ranges::any_of(answered.advices, [](const advise::Advice& advice) {
    return advice.counters.has_error();
  });
  return bad ? kExitUntrusted : kExitOk;
}

void add_question_options(CLI::App& command, AdviseArguments& arguments) {
  command.add_option("--keep", arguments.keep, "Least share of training's throughput that stays")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  command.add_option("--p95", arguments.p95,
                     "Longest p95 of the service's latency, such as 50ms (default: none)");
  command.add_option("--want", arguments.want,
                     "How the filler runs: offline, online or both, an answer each (default: "
                     "online with --p95, else offline)")
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
                     "How much to search: the work that two cores do in about this time. It is "
                     "counted in simulated events, so that the answer does not depend on the "
                     "machine")
      ->capture_default_str();
}

void add_output_options(CLI::App& command, AdviseArguments& arguments) {
  command.add_option("-o,--store", arguments.store,
                     "Store that keeps all runs, as a sweep's; started again, it goes on there "
                     "(default: nothing is kept)");
  command.add_option("--config", arguments.config,
                     "Where the recommendation's run config is written (default: "
                     "NAME-advice.json in the current folder)");
  command.add_option("--threads", arguments.threads,
                     "Simulations at once; the answer does not depend on it (default: all cores)");
  add_policy_library_option(command, arguments.policy_libraries);
  command.add_flag("--json", arguments.json, "Print JSON instead of text");
}

void add_time_options(CLI::App& command, RunArguments& job) {
  command.add_option("--filler", job.quick.filler, "The same as FILLER");
  command.add_option("--filler-memory", job.quick.filler_memory,
                     "Device memory that the filler holds, such as 4GB (default: not known)");
  command.add_option("--device", job.quick.device,
                     "Device to simulate: a name or a file (default: the one recorded)");
  command.add_option("--duration", job.duration,
                     "Without QUESTION: simulated time of a full trial")
      ->capture_default_str();
  command.add_option("--warmup", job.warmup,
                     "Without QUESTION: simulated time before anything is measured")
      ->capture_default_str();
  command.add_option("--seed", job.quick.seed, "Without QUESTION: of arrivals and jitter")
      ->capture_default_str();
}

}  // namespace

void add_advise_command(CLI::App& parser, AppContext& context) {
  auto arguments = std::make_shared<AdviseArguments>();
  arguments->job.command = "advise";
  arguments->job.config_kind = "question";
  CLI::App* command = parser.add_subcommand(
      "advise",
      "Says what to run: searches policies, their parameters and loads for what gains most while "
      "training keeps its throughput and the service its latency.\n\n"
      "Examples:\n"
      "  bubblesim advise traces/samples/training traces/samples/inference.json.gz --keep 0.95 "
      "--cannot mig,driver_patch,rewritten_kernels --duration 2s --warmup 500ms --budget 2s\n"
      "  bubblesim advise configs/advise/example.json --budget 1s --json\n"
      "  bubblesim advise --synth-model roberta-large --plan ddp-4 --cluster a100-40gb-4 "
      "--filler traces/samples/inference.json.gz --can mps,time_slicing --p95 200ms --duration 3s "
      "--warmup 1s --budget 1s\n\n"
      "Exit codes: 0 there is an answer, be it that nothing keeps the limits; 1 it must not be "
      "trusted (a counter of severity error); 2 a fault of the input, or limits that nothing could "
      "keep; 130 stopped by Ctrl-C or SIGTERM, with the best so far.");
  command->add_option("QUESTION|TRAINING", arguments->job.config,
                      "Question (JSON; configs/README.md); with FILLER: traces of the training "
                      "job, a file or a folder");
  command->add_option("FILLER", arguments->job.second_path,
                      "Trace of one pass of the inference service");
  add_job_options(*command, arguments->job);
  add_time_options(*command, arguments->job);
  add_question_options(*command, *arguments);
  add_output_options(*command, *arguments);
  command->callback([arguments, command, &context] {
    context.exit_code = run_advise(*arguments, *command, context);
  });
}

}  // namespace bubblesim::app
