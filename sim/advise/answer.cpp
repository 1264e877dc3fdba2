#include "sim/advise/answer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/advise/job_check.hpp"
#include "sim/advise/known_errors.hpp"
#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/sweep/baseline_keys.hpp"
#include "sim/sweep/config_edit.hpp"

namespace bubblesim::advise {
namespace {

constexpr int kLeastIterations = 4;       // of training that a trial measures
constexpr double kAlonePart = 1.0 / 9;    // of the full length, for what parts do alone
// Where searches of a load begin and how far they go, of what the service's own GPUs could serve.
constexpr double kFirstLoads[] = {0.05, 0.15, 0.4, 0.8};
constexpr std::pair<double, double> kLoadRange{0.002, 1.2};
constexpr std::uint32_t kBatchStep = 4;

class Answerer {
 public:
  Answerer(const Question& question, const policy::Registry& registry,
           const AnswerOptions& options)
      : question_(question), registry_(registry), options_(options),
        shared_(options.config_folder + "/devices"),
        base_(Json::parse(question.base, nullptr, false)) {}

  CheckedResult<Advice> run() {
    advice_.question = question_;
    if (const Errors faults = check_axes(); !faults.empty()) return tl::unexpected<Errors>(faults);
    BUBBLESIM_RETURN_IF_ERROR(measure_alone());
    const Space space(registry_, question_.system, places());
    Trials trials(question_, registry_, shared_, {advice_.own_per_s, ranks_}, trial_options());
    begin("searching");
    auto found = search(
        space, [&trials](const std::vector<Trial>& wanted) { return trials.run(wanted); },
        search_options());
    if (!found) return tl::make_unexpected(found.error());
    advice_.found = *std::move(found);
    advice_.simulated = trials.simulated();
    advice_.stored = trials.found();
    advice_.stopped = options_.stopped && options_.stopped();
    if (advice_.found.best) BUBBLESIM_RETURN_IF_ERROR(look_closer(trials));
    return std::move(advice_);
  }

 private:
  void begin(const std::string& step) const {
    if (options_.begins) options_.begins(step);
  }

  /// Axes are places that the base has room for, with values that it may have.
  [[nodiscard]] Errors check_axes() const {
    Errors faults;
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
        const auto parsed = run::parse_run_config(sweep::compact_text(config),
                                                  question_.base_file, registry_);
        if (!parsed) faults.add(parsed.error());
        if (!parsed) break;
      }
    }
    return faults;
  }

  [[nodiscard]] TrialOptions trial_options() const {
    TrialOptions options;
    options.execute.threads = options_.threads;
    options.execute.sweep = question_.name;
    options.execute.device_folder = options_.config_folder + "/devices";
    options.execute.version = options_.version;
    options.config_folder = options_.config_folder;
    options.store = options_.store;
    options.stopped = options_.stopped;
    options.told = options_.tried;
    return options;
  }

  [[nodiscard]] SearchOptions search_options() const {
    SearchOptions options;
    options.limits = question_.limits;
    options.full = full_;
    options.events = to_seconds(question_.budget) * kEventsPerSecond;
    options.stopped = options_.stopped;
    return options;
  }

  CheckedResult<observe::RunReport> report_of(const Json& config) {
    const std::string text = sweep::compact_text(config);
    BUBBLESIM_ASSIGN_OR_RETURN(const run::RunConfig parsed,
                               run::parse_run_config(text, question_.base_file, registry_));
    BUBBLESIM_ASSIGN_OR_RETURN(const run::LoadedRun loaded, shared_.inputs.load(parsed, text));
    run::RunOptions how;
    how.baselines = {&shared_.baselines, sweep::baseline_keys(text)};
    how.threads = options_.threads;
    auto report = run::run_policies(loaded, registry_, how);
    if (!report) return tl::make_unexpected(report.error());
    return *std::move(report);
  }

  /// The job and each filler alone, the latter offline: what gains are counted in.
  CheckedResult<void> measure_alone() {
    begin("the job alone");
    Json config = base_;
    config["policies"] = Json::array({"exclusive"});
    BUBBLESIM_ASSIGN_OR_RETURN(
        const run::RunConfig given,
        run::parse_run_config(sweep::compact_text(config), question_.base_file, registry_));
    BUBBLESIM_ASSIGN_OR_RETURN(
        const run::LoadedRun loaded,
        shared_.inputs.load(given, sweep::compact_text(config)));
    if (const Errors faults = check_job(question_, loaded); !faults.empty()) {
      return tl::unexpected<Errors>(faults);
    }
    for (const program::Program& rank : loaded.training->ranks) ranks_.push_back(rank.rank);
    for (const run::FillerConfig& filler : given.fillers) {
      filler_gpus_.push_back(filler.gpus ? filler.gpus->size() : ranks_.size());
    }
    shorten(config, given);
    for (Json& filler : config["fillers"]) make_offline(filler);
    BUBBLESIM_ASSIGN_OR_RETURN(const observe::RunReport report, report_of(config));
    keep_alone(report, given);
    return check_alone(report);
  }

  static void shorten(Json& config, const run::RunConfig& given) {
    if (!given.duration) return;
    const auto part = [](Duration span) {
      return format_duration(
          Duration{std::llround(static_cast<double>(span.count()) * kAlonePart)});
    };
    config.erase("precision");
    config["duration"] = part(*given.duration);
    config["warmup"] = part(given.warmup);
  }

  static void make_offline(Json& filler) {
    filler["mode"] = "offline";
    for (const char* key : {"arrivals", "deadline", "max_wait", "jobs"}) filler.erase(key);
  }

  void keep_alone(const observe::RunReport& report, const run::RunConfig& given) {
    JobAlone& alone = advice_.alone;
    alone.device = report.device;
    alone.gpus = report.ranks;
    alone.gpus_each = report.ranks_per_gpu;
    alone.iteration = report.baseline.training_mean_iteration;
    alone.bubble = report.baseline.training_use ? report.baseline.training_use->bubble_fraction : 0;
    alone.causes = causes_of(report.policies.front());
    for (const observe::FillerBaseline& filler : report.baseline.fillers) {
      advice_.own_per_s.push_back(filler.requests_per_s);
    }
    const auto iterations = static_cast<std::int64_t>(given.iterations.value_or(0));
    full_.length = given.duration.value_or(alone.iteration * iterations);
    full_.warmup = given.warmup;
    full_.shortest = std::min(kLeastIterations * alone.iteration, full_.length - full_.warmup);
    full_.seed = given.seed;
  }

  [[nodiscard]] CheckedResult<void> check_alone(const observe::RunReport& report) const {
    for (const observe::FillerBaseline& filler : report.baseline.fillers) {
      if (filler.requests_per_s > 0) continue;
      return tl::unexpected<Errors>(Errors{
          {question_.base_file, "/duration",
           "filler " + filler.name + " completes no request with a GPU of its own in a ninth of " +
               format_duration(full_.length) + "; expected a longer run, or shorter requests"}});
    }
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

  /// What is searched besides policies and their parameters.
  [[nodiscard]] std::vector<PlaceRange> places() const {
    std::vector<PlaceRange> places;
    const Json* fillers = sweep::find_value(base_, "/fillers");
    for (std::size_t i = 0; fillers != nullptr && i < fillers->size(); ++i) {
      const std::string place = "/fillers/" + std::to_string(i);
      const Json& filler = (*fillers)[i];
      const bool searched = question_.load == Load::kSearched || question_.load_share;
      if (searched && filler.contains("arrivals") &&
          filler["arrivals"].contains("rate_per_s")) {
        places.push_back(load_range(place + "/arrivals/rate_per_s", i));
      }
      const Json* batch = sweep::find_value(filler, "/program/batch");
      const bool has_axis = std::ranges::any_of(question_.axes, [&](const auto& axis) {
        return axis.pointer.ends_with("/program/batch");
      });
      if (batch != nullptr && !has_axis) {
        places.push_back({place + "/program/batch", batches(batch->get<std::uint32_t>())});
      }
    }
    for (const sweep::SweepAxis& axis : question_.axes) {
      std::erase_if(places, [&](const PlaceRange& own) { return own.pointer == axis.pointer; });
      places.push_back({axis.pointer, axis.values});
    }
    return places;
  }

  [[nodiscard]] PlaceRange load_range(const std::string& pointer, std::size_t filler) const {
    const double all = advice_.own_per_s[filler] * static_cast<double>(filler_gpus_[filler]);
    const auto text = [](double rate) {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%.6g", rate);
      return std::string(digits);
    };
    if (question_.load_share) return {pointer, {text(*question_.load_share * all)}};
    PlaceRange place{pointer, {}, std::pair(kLoadRange.first * all, kLoadRange.second * all)};
    for (const double load : kFirstLoads) place.values.push_back(text(load * all));
    return place;
  }

  static std::vector<std::string> batches(std::uint32_t given) {
    std::vector<std::string> values;
    if (given / kBatchStep > 0) values.push_back(std::to_string(given / kBatchStep));
    values.push_back(std::to_string(given));
    values.push_back(std::to_string(given * kBatchStep));
    return values;
  }

  /// The recommended setting's own report, and the config of it.
  CheckedResult<void> look_closer(const Trials& trials) {
    Trial trial;
    trial.proposal = advice_.found.best->proposal;
    trial.length = advice_.found.length;
    trial.warmup = advice_.found.warmup;
    trial.seed = full_.seed;
    const Json config = trials.config_of(trial);
    advice_.run_config = config.dump(2) + "\n";
    BUBBLESIM_ASSIGN_OR_RETURN(const observe::RunReport report, report_of(config));
    advice_.unfilled = causes_of(report.policies.front());
    advice_.counters = report.counters;
    advice_.counters.merge(report.policies.front().counters);
    BUBBLESIM_ASSIGN_OR_RETURN(
        advice_.errors,
        known_errors(options_.config_folder, trial.proposal.policy->name));
    return {};
  }

  const Question& question_;
  const policy::Registry& registry_;
  const AnswerOptions& options_;
  sweep::SharedWork shared_;
  Json base_;
  FullLength full_;
  std::vector<std::uint32_t> ranks_;
  std::vector<std::size_t> filler_gpus_;
  Advice advice_;
};

}  // namespace

CheckedResult<Advice> answer(const Question& question, const policy::Registry& registry,
                             const AnswerOptions& options) {
  return Answerer(question, registry, options).run();
}

}  // namespace bubblesim::advise
