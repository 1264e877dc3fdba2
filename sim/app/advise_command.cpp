// bubblesim advise: what to run, within limits, in one screen.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "capture/live/live_plan.hpp"
#include "sim/advise/advice.hpp"
#include "sim/advise/answer.hpp"
#include "sim/advise/proposal.hpp"
#include "sim/app/advise_arguments.hpp"
#include "sim/app/app.hpp"
#include "sim/app/own_process.hpp"
#include "sim/app/policy_options.hpp"
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

// Both modes have an answer: "advice.json" becomes "advice-online.json".
std::string config_of_mode(const std::string& config, const std::string& mode) {
  const std::filesystem::path path(config);
  const std::string name = path.stem().string() + "-" + mode + path.extension().string();
  return (path.parent_path() / name).string();
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
    const std::string file = one ? asked : config_of_mode(asked, question.name);
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
  BUBBLESIM_RETURN_IF_ERROR(load_policy_libraries(arguments.policy_libraries, context));
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
  auto arguments = std::make_shared<AdviseArguments>();
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
      "Many jobs and a queue of work: python3 -m bubblesim.fleet (configs/README.md, A fleet).\n\n"
      "Exit codes: 0 there is an answer, be it that nothing keeps the limits; 1 it must not be "
      "trusted (a counter of severity error); 2 a fault of the input or of a policy, or limits "
      "that nothing could keep; 130 stopped by Ctrl-C or SIGTERM, with the best so far.");
  add_advise_options(*command, *arguments);
  context.outputs.writes(*command, "--config", [](const std::string& value) {
    return std::vector<std::string>{value, config_of_mode(value, "offline"),
                                    config_of_mode(value, "online")};
  });
  context.outputs.writes(*command, "--html");
  command->callback([arguments, command, &context] {
    context.exit_code = reported(run_advise(*arguments, *command, context));
  });
}

}  // namespace bubblesim::app
