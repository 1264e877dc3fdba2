#include "sim/advise/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "sim/advise/answer_parts.hpp"
#include "sim/advise/question.hpp"
#include "sim/advise/space.hpp"
#include "sim/advise/trials.hpp"
#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/observe/summary.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/run/simulation.hpp"
#include "sim/sweep/run_key.hpp"
#include "sim/sweep/sweep_config.hpp"

namespace bubblesim::advise {
namespace {

constexpr int kLeastIterations = 4;       // of training alone
constexpr int kJudged = 10;  // iterations of training and passes of a filler, for a gain to show
constexpr double kAlonePart = 1.0 / 9;    // of the full length, for what the job does alone
// The rate of a service alone: how well it is known, and the warm-up of its first measurement.
constexpr double kKnownTo = 0.02;
constexpr Duration kFirstWarmup = std::chrono::seconds(1);
constexpr const char* kNoMemory = "\"1MB\"";

/// Tokens that a request of the filler writes; 0: none, or not known.
double tokens_per_request(const run::FillerConfig& filler) {
  const auto* names = std::get_if<synth::InferenceNames>(&filler.program);
  if (names == nullptr || !names->prompt_tokens) return 0;
  return static_cast<double>(names->output_tokens);
}

Duration longest_operation(const run::LoadedRun& loaded) {
  Duration longest{};
  for (const auto& filler : loaded.fillers) {
    for (const auto& op : filler->program.ops) longest = std::max(longest, op.duration);
  }
  return longest;
}

/// On a GPU of its own; of servers whose requests last for many steps nothing.
Duration longest_pass(const run::LoadedRun& loaded) {
  Duration longest{};
  for (std::size_t i = 0; i < loaded.fillers.size(); ++i) {
    if (loaded.server(i) != nullptr) continue;
    longest = std::max(longest, run::measure_pass(loaded.fillers[i]->program, loaded.device));
  }
  return longest;
}

/// The first GPU that a filler may run on, by position.
std::size_t first_filled_gpu(const Json& config) {
  const Json* gpus = sweep::find_value(config, "/fillers/0/gpus");
  return gpus != nullptr && gpus->is_array() && !gpus->empty() ? gpus->front().get<std::size_t>()
                                                               : 0;
}

class Answerer {
 public:
  Answerer(const Question& question, const policy::Registry& registry,
           const AnswerOptions& options)
      : question_(question), registry_(registry), options_(options),
        shared_(options.config_folder + "/devices"),
        base_(Json::parse(question.base.text, nullptr, false)) {}

  CheckedResult<Advice> run() {
    advice_.question = question_;
    if (const Errors faults = check_axes(); !faults.empty()) return tl::unexpected<Errors>(faults);
    BUBBLESIM_RETURN_IF_ERROR(measure_alone());
    const Space space(registry_, question_.system, searched_places(question_, base_, parts_));
    Trials trials(question_, registry_, shared_, parts_, options_);
    begin("searching");
    const auto run = [&trials](const std::vector<Trial>& wanted) { return trials.run(wanted); };
    BUBBLESIM_ASSIGN_OR_RETURN(advice_.found, search(space, run, search_options()));
    advice_.stopped = stopped();
    if (const Errors faults = broken_policies(); !faults.empty() && !advice_.stopped) {
      return tl::unexpected<Errors>(faults);
    }
    if (advice_.found.best) BUBBLESIM_RETURN_IF_ERROR(put_into_practice(trials));
    if (const Tried* setting = analysed(advice_); setting != nullptr && !advice_.stopped) {
      BUBBLESIM_RETURN_IF_ERROR(look_closer(*setting, trials));
    }
    advice_.simulated = trials.simulated();
    advice_.stored = trials.found();
    return std::move(advice_);
  }

 private:
  [[nodiscard]] bool stopped() const { return options_.stop != nullptr && *options_.stop; }

  void begin(const std::string& step) const {
    if (options_.begins) options_.begins(step);
  }

  /// Axes are places that the base has room for, with values that it may have; trials set them in
  /// the order of their pointers' texts.
  [[nodiscard]] Errors check_axes() const {
    Errors faults;
    std::multiset<std::string> pointers;
    for (const sweep::SweepAxis& axis : question_.axes) pointers.insert(axis.pointer);
    sweep::SetPlaces set_places;
    for (const std::string& pointer : pointers) {
      std::string fault = set_places.add(base_, "the axis of ", pointer);
      if (!fault.empty()) faults.push_back({question_.file, "/axes", std::move(fault)});
    }
    for (const sweep::SweepAxis& axis : question_.axes) {
      for (const std::string& value : axis.values) {
        Json config = base_;
        config["policies"] = Json::array({"exclusive"});
        const auto set =
            sweep::set_value(config, axis.pointer, Json::parse(value, nullptr, false));
        if (!set) {
          faults.push_back({question_.file, "/axes", set.error().text()});
          break;
        }
        const auto parsed = run::parse_run_config(compact_text(config),
                                                  question_.base.file, registry_);
        if (!parsed) faults.add(parsed.error());
        if (!parsed) break;
      }
    }
    return faults;
  }

  /// Why the runs of policies failed that no setting runs under: an answer without them would be
  /// one to another question.
  [[nodiscard]] Errors broken_policies() const {
    std::set<const policy::PolicySpec*> told;
    for (const Tried& tried : advice_.found.all) {
      if (tried.result.done) told.insert(tried.proposal.policy);
    }
    for (const Unsettled& policy : advice_.found.unsettled) told.insert(policy.policy);
    for (const Unafforded& policy : advice_.found.unafforded) told.insert(policy.policy);
    Errors faults;
    for (const Tried& tried : advice_.found.all) {
      const bool broken = tried.available && told.insert(tried.proposal.policy).second;
      if (broken) faults.push_back({{}, {}, tried.result.reason});
    }
    return faults;
  }

  [[nodiscard]] SearchOptions search_options() const {
    SearchOptions options;
    options.limits = question_.limits;
    options.full = full_;
    options.gpus = advice_.alone.gpus;
    options.events = to_seconds(question_.budget) * kEventsPerSecond;
    options.stop = options_.stop;
    options.planned = options_.planned;
    options.confirmed_at = question_.confirmed_at;
    if (has_tools()) {
      options.takes = [this](const Proposal& setting) {
        return options_.why_not_live(setting, filler_role()).empty();
      };
    }
    return options;
  }

  [[nodiscard]] bool has_tools() const {
    return options_.why_not_measured && options_.why_not_live;
  }

  CheckedResult<run::LoadedRun> load(const Json& config) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        const run::RunConfig parsed,
        run::parse_run_config(compact_text(config), question_.base.file, registry_));
    return shared_.load(parsed, config);
  }

  CheckedResult<observe::RunReport> report_of(const Json& config) {
    BUBBLESIM_ASSIGN_OR_RETURN(const run::LoadedRun loaded, load(config));
    run::RunOptions how;
    how.baselines = {&shared_.baselines, sweep::baseline_keys(config)};
    how.threads = options_.threads;
    how.stop = options_.stop;
    return run::run_policies(loaded, registry_, how);
  }

  /// The job and each filler alone, the latter offline: what gains are counted in.
  CheckedResult<void> measure_alone() {
    begin("the job alone");
    Json config = base_;
    config["policies"] = Json::array({"exclusive"});
    BUBBLESIM_ASSIGN_OR_RETURN(
        const run::RunConfig given,
        run::parse_run_config(compact_text(config), question_.base.file, registry_));
    BUBBLESIM_ASSIGN_OR_RETURN(const run::LoadedRun loaded, shared_.load(given, config));
    if (const Errors faults = check_job(question_, loaded); !faults.empty()) {
      return tl::unexpected<Errors>(faults);
    }
    for (const program::Program& rank : loaded.training->ranks) parts_.ranks.push_back(rank.rank);
    for (const run::FillerConfig& filler : given.fillers) {
      parts_.filler_gpus.push_back(filler.gpus ? filler.gpus->size() : parts_.ranks.size());
    }
    advice_.alone.filler_longest = longest_operation(loaded);
    advice_.alone.filler_pass = longest_pass(loaded);
    advice_.alone.memory_known = loaded.memory_of(0).has_value();
    advice_.alone.fillers_have_memory =
        std::ranges::any_of(given.fillers, [](const run::FillerConfig& filler) {
          return filler.memory.value_or(Bytes{}) > Bytes{};
        });
    for (Json& filler : config["fillers"]) make_offline(filler);
    const Json whole = config;
    shorten(config, given);
    BUBBLESIM_ASSIGN_OR_RETURN(observe::RunReport report, report_of(config));
    const std::int64_t few = kLeastIterations;
    if (report.policies.front().training.iterations < static_cast<std::uint64_t>(few)) {
      BUBBLESIM_ASSIGN_OR_RETURN(report, report_of(whole));
    }
    keep_alone(report, given);
    BUBBLESIM_RETURN_IF_ERROR(measure_services(whole));
    BUBBLESIM_RETURN_IF_ERROR(check_alone(report));
    BUBBLESIM_RETURN_IF_ERROR(keep_bubbles(loaded));
    return check_loads();
  }

  /// What each filler serves on a GPU of its own, however long the question's runs are: a window of
  /// a given length may hold few requests, and counts those as whole that it holds in part.
  CheckedResult<void> measure_services(const Json& offline) {
    BUBBLESIM_ASSIGN_OR_RETURN(const run::LoadedRun loaded, load(offline));
    for (std::uint32_t i = 0; i < parts_.fillers.size(); ++i) {
      BUBBLESIM_ASSIGN_OR_RETURN(parts_.fillers[i].requests_per_s,
                                 loaded.server(i) != nullptr ? settled_rate(loaded, i)
                                                                : pass_rate(loaded, i));
    }
    advice_.alone.fillers = parts_.fillers;
    return {};
  }

  /// Passes a second on the first of the filler's GPUs, over whole passes if all are alike. Where
  /// passes are so long that hardly one is whole, passes that end are counted.
  [[nodiscard]] Result<double> pass_rate(run::LoadedRun loaded, std::uint32_t filler) const {
    run::FillerConfig& config = loaded.config.fillers[filler];
    config.gpus = std::vector<std::uint32_t>{config.gpus ? config.gpus->front() : 0};
    config.instances.reset();
    BUBBLESIM_ASSIGN_OR_RETURN(const observe::FillerResult served,
                               served_after(kFirstWarmup, std::move(loaded), filler));
    return served.whole_batches_requests_per_s.value_or(served.requests_per_s);
  }

  /// Servers of language models, and others that requests join and leave between passes: a request
  /// lasts for many of their steps, so that the first ones end late, all about then. Hence after
  /// warm-ups twice as long each, until two in a row agree or one is as long as a run.
  [[nodiscard]] Result<double> settled_rate(const run::LoadedRun& loaded,
                                            std::uint32_t filler) const {
    double before = 0;
    for (Duration warmup = kFirstWarmup;; warmup *= 2) {
      BUBBLESIM_ASSIGN_OR_RETURN(const observe::FillerResult served,
                                 served_after(warmup, loaded, filler));
      const std::size_t gpus = std::max<std::size_t>(1, served.instances.size());
      const double rate = served.requests_per_s / static_cast<double>(gpus);
      const bool agree = rate > 0 && std::abs(rate - before) <= kKnownTo * rate;
      if (agree || warmup >= full_.length) return rate;
      before = rate;
    }
  }

  /// On GPUs of its own, until its rate is known.
  [[nodiscard]] Result<observe::FillerResult> served_after(Duration warmup, run::LoadedRun loaded,
                                                           std::uint32_t filler) const {
    run::PrecisionGoal goal{.fillers = kKnownTo, .least = warmup};
    goal.most = std::max(goal.most, warmup);
    loaded.config.precision = goal;
    loaded.config.warmup = warmup;
    loaded.config.duration = warmup + goal.most;
    loaded.config.iterations.reset();
    run::RunScenario alone;
    alone.training = false;
    alone.fillers = {filler};
    alone.gpus.threads = options_.threads;
    alone.stop = options_.stop;
    BUBBLESIM_ASSIGN_OR_RETURN(const observe::PolicyResult result,
                               run::Simulation(loaded, alone).run());
    return result.fillers.front();
  }

  static void shorten(Json& config, const run::RunConfig& given) {
    if (!given.duration) return;
    config.erase("precision");
    config["duration"] = format_duration(scale(*given.duration, kAlonePart));
    config["warmup"] = format_duration(scale(given.warmup, kAlonePart));
  }

  /// Bubbles of whole iterations: those of a window that ends inside one depend on where it does.
  CheckedResult<void> keep_bubbles(run::LoadedRun loaded) {
    JobAlone& alone = advice_.alone;
    run::RunConfig& config = loaded.config;
    if (!config.duration || alone.iteration <= Duration{}) return {};
    config.precision.reset();
    config.warmup = scale(config.warmup, kAlonePart);
    const std::int64_t whole = std::max<std::int64_t>(
        kLeastIterations,
        (scale(*config.duration, kAlonePart) - config.warmup) / alone.iteration);
    config.duration = config.warmup + whole * alone.iteration;
    run::RunScenario job;
    job.gpus.threads = options_.threads;
    job.stop = options_.stop;
    BUBBLESIM_ASSIGN_OR_RETURN(const auto result, run::Simulation(loaded, job).run());
    alone.bubble = observe::use_alone(result).bubble_fraction;
    alone.causes = causes_of(result);
    return {};
  }

  static void make_offline(Json& filler) {
    filler["mode"] = "offline";
    keep_lengths(filler);
    for (const char* key : {"arrivals", "deadline", "max_wait", "jobs"}) filler.erase(key);
  }

  /// A server whose requests are as long as its file of arrivals says needs that file for them.
  static void keep_lengths(Json& filler) {
    Json& program = filler["program"];
    if (!program.contains("engine") || program.contains("requests")) return;
    const Json& arrivals = filler["arrivals"];
    program["requests"] = {{"path", arrivals["path"]}, {"format", arrivals["format"]}};
  }

  void keep_alone(const observe::RunReport& report, const run::RunConfig& given) {
    JobAlone& alone = advice_.alone;
    alone.device = report.device;
    alone.gpus = report.ranks;
    alone.gpus_each = report.ranks_per_gpu;
    alone.iteration = report.baseline.training_mean_iteration;
    alone.bubble = report.baseline.training_use ? report.baseline.training_use->bubble_fraction : 0;
    alone.causes = causes_of(report.policies.front());
    for (const observe::GpuUse& gpu : report.policies.front().gpus) {
      parts_.gpu_bubbles.push_back(gpu.bubble_fraction);
    }
    for (const run::FillerConfig& filler : given.fillers) {
      parts_.fillers.push_back({0, tokens_per_request(filler)});
    }
    const auto iterations = static_cast<std::int64_t>(given.iterations.value_or(0));
    full_.length = given.duration.value_or(alone.iteration * iterations);
    full_.warmup = given.warmup;
    full_.shortest = std::min(kJudged * std::max(alone.iteration, alone.filler_pass),
                              full_.length - full_.warmup);
    full_.seed = given.seed;
    full_.iteration = alone.iteration;
  }

  [[nodiscard]] CheckedResult<void> check_alone(const observe::RunReport& report) const {
    if (report.policies.front().training.iterations == 0) {
      return fail(question_.base.file, "/duration",
                  "training ends no iteration alone in the " +
                      format_duration(full_.length - full_.warmup) +
                      " after the warm-up, so nothing says what it keeps; expected a longer run, "
                      "or a recording that repeats");
    }
    const Duration window = full_.length - full_.warmup;
    for (std::size_t i = 0; i < parts_.fillers.size(); ++i) {
      if (parts_.fillers[i].requests_per_s * to_seconds(window) >= 1) continue;
      return fail(question_.base.file, "/duration",
                  "filler " + report.baseline.fillers[i].name + " completes no request in " +
                      format_duration(window) +
                      " with a GPU of its own; expected a longer run, or shorter requests");
    }
    return {};
  }

  /// Rates that are asked for as they are, which no policy can serve.
  [[nodiscard]] CheckedResult<void> check_loads() const {
    if (question_.load != Load::kAsGiven) return {};
    Errors faults;
    for (std::size_t i = 0; i < parts_.fillers.size(); ++i) {
      const std::string place = "/fillers/" + std::to_string(i) + "/arrivals/rate_per_s";
      const Json* rate = sweep::find_value(base_, place);
      const double most =
          parts_.fillers[i].requests_per_s * static_cast<double>(parts_.filler_gpus[i]);
      if (rate == nullptr || !rate->is_number() || rate->get<double>() <= most) continue;
      faults.push_back({question_.base.file, place,
                        fmt::format("found {:g}, and the service serves {:.4g} requests/s with its "
                                    "GPUs to itself; expected at most that",
                                    rate->get<double>(), most)});
    }
    if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
    return {};
  }

  static std::vector<CauseShare> causes_of(const observe::PolicyResult& result) {
    std::vector<CauseShare> causes;
    const double window = to_seconds(result.simulated - result.warmup);
    const double all = window * static_cast<double>(result.gpus.size());
    for (const observe::GpuUse& gpu : result.gpus) {
      for (std::size_t i = 0; i < gpu.bubbles.size(); ++i) {
        if (causes.size() <= i) causes.push_back({gpu.bubbles[i].cause});
        causes[i].share += to_seconds(gpu.bubbles[i].time) / all;
        causes[i].filled += to_seconds(gpu.bubbles[i].recovered) / all;
      }
    }
    return causes;
  }

  /// The recommendation's config, and what the tools say of it.
  CheckedResult<void> put_into_practice(const Trials& trials) {
    const Proposal& best = advice_.found.best->proposal;
    const Json config = trials.config_of(trial_of(best, advice_.found.length,
                                                  advice_.found.warmup));
    advice_.run_config = indented_text(config, 2) + "\n";
    advice_.measured_rank = parts_.ranks[first_filled_gpu(config)];
    BUBBLESIM_ASSIGN_OR_RETURN(
        advice_.errors,
        known_errors(options_.config_folder, best.policy->name, advice_.alone.device));
    advice_.tools_asked = has_tools();
    if (!advice_.tools_asked) return {};
    advice_.why_not_measured = options_.why_not_measured(advice_.run_config, advice_.measured_rank);
    advice_.why_not_live = options_.why_not_live(best, filler_role());
    return {};
  }

  /// The setting's own report: what it leaves unfilled, and whom it does not admit. It comes on top
  /// of the budget, so a run of the searched length has to do. Stopped, the answer goes without.
  CheckedResult<void> look_closer(const Tried& setting, Trials& trials) {
    const Trial trial = trial_of(setting.proposal, advice_.found.searched,
                                 advice_.found.searched_warmup);
    const auto told = report_of(trials.config_of(trial));
    if (!told && stopped()) {
      advice_.stopped = true;
      return {};
    }
    if (!told) return tl::make_unexpected(told.error());
    const observe::RunReport& report = *told;
    advice_.unfilled = causes_of(report.policies.front());
    for (const observe::FillerResult& filler : report.policies.front().fillers) {
      for (const observe::InstanceResult& instance : filler.instances) {
        if (!instance.admitted) advice_.refused.push_back(instance.reason);
      }
    }
    advice_.counters = report.counters;
    advice_.counters.merge(report.policies.front().counters);
    return advice_.refused.empty() ? CheckedResult<void>{} : give_memory(trial, trials);
  }

  /// What the setting would gain if no memory were in the way.
  CheckedResult<void> give_memory(Trial trial, Trials& trials) {
    for (std::size_t i = 0; i < parts_.fillers.size(); ++i) {
      trial.proposal.places["/fillers/" + std::to_string(i) + "/memory"] = kNoMemory;
    }
    BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<TrialResult> results, trials.run({trial}));
    advice_.with_memory = results.front();
    return {};
  }

  [[nodiscard]] policy::Role filler_role() const {
    const bool online = sweep::text_at(base_, "/fillers/0/mode") == "\"online\"";
    return online ? policy::Role::kOnline : policy::Role::kOffline;
  }

  [[nodiscard]] Trial trial_of(const Proposal& proposal, Duration length, Duration warmup) const {
    return settled({proposal, length, warmup, full_.seed}, full_.iteration);
  }

  const Question& question_;
  const policy::Registry& registry_;
  const AnswerOptions& options_;
  sweep::SharedWork shared_;
  Json base_;
  FullLength full_;
  PartsAlone parts_;
  Advice advice_;
};

}  // namespace

CheckedResult<Advice> answer(const Question& question, const policy::Registry& registry,
                             const AnswerOptions& options) {
  return Answerer(question, registry, options).run();
}

}  // namespace bubblesim::advise
