#include "sim/advise/fleet/fleet_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "sim/advise/answer_parts.hpp"
#include "sim/advise/fleet/split.hpp"
#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/run/loaded_run.hpp"
#include "sim/run/run_config.hpp"
#include "sim/sweep/run_key.hpp"

namespace bubblesim::advise {
namespace {

constexpr Duration kLeastBudget = std::chrono::milliseconds(100);
constexpr double kSecondsOfHour = 3600;
constexpr double kNoHours = 1e-9;  // rounding
constexpr std::string_view kFillers = "/fillers";

/// The column of a queue that a key of a filler stands in; `place`: the key's pointer, or none.
std::string column_of(const Json& filler, std::string_view place) {
  const std::string key(place.substr(place.rfind('/') + 1));
  if (key == "name") return "work";
  for (const char* column : {"memory", "batch", "prompt_tokens", "output_tokens"}) {
    if (key == column) return key;
  }
  return filler["program"].contains("model") ? "model" : "trace";
}

double hours_of(const FleetJob& job) { return std::min(job.hours, kHoursOfDay); }

class Planner {
 public:
  Planner(FleetQuestion question, const policy::Registry& registry, const AnswerOptions& options)
      : registry_(registry), options_(options), shared_(options.config_folder + "/devices") {
    plan_.question = std::move(question);
  }

  CheckedResult<FleetPlan> run() {
    BUBBLESIM_RETURN_IF_ERROR(sort_into_kinds());
    Errors faults;
    for (const FillWork& work : plan_.question.work) {
      faults.add(faults_of_work(plan_.kinds.front(), work));  // before hours of searches
    }
    if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
    for (FleetKind& kind : plan_.kinds) {
      for (const FillWork& work : plan_.question.work) {
        kind.answers.push_back(ask(kind, work, faults));
        if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
        if (options_.stop != nullptr && *options_.stop) plan_.stopped = true;
      }
    }
    if (!fits_ && !plan_.stopped) return tl::unexpected<Errors>(no_work_fits());
    add_gpu_hours();
    place_work(plan_);
    return std::move(plan_);
  }

 private:
  [[nodiscard]] Json base_of(const FleetJob& job) const {
    const FleetQuestion& question = plan_.question;
    Json base{{"name", "fleet"},
              {"seed", question.seed},
              {"duration", format_duration(question.length)},
              {"warmup", format_duration(question.warmup)},
              {"training", Json::parse(job.training, nullptr, false)},
              {"fillers", Json::array()},
              {"policies", Json::array({"exclusive"})}};
    if (!job.device.empty()) base["device"] = job.device;
    return base;
  }

  /// Jobs are alike where all that decides a run is: files by their content.
  CheckedResult<void> sort_into_kinds() {
    std::map<std::string, std::size_t> known;
    Errors faults;
    const auto& jobs = plan_.question.jobs;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto content = sweep::run_content(base_of(jobs[i]), options_.config_folder, files_);
      if (!content) {
        for (const Error& fault : content.error()) faults.push_back(at_job(jobs[i], fault));
        continue;
      }
      const auto [at, fresh] = known.try_emplace(*content, plan_.kinds.size());
      if (fresh) plan_.kinds.push_back({.first = i});
      ++plan_.kinds[at->second].jobs;
      plan_.kind_of.push_back(at->second);
    }
    if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
    return {};
  }

  [[nodiscard]] Error at_job(const FleetJob& job, const Error& fault) const {
    return {plan_.question.file, job.place, "job " + job.name + ": " + fault.message};
  }

  [[nodiscard]] Error at_work(const FillWork& work, const Error& fault) const {
    const Json filler = Json::parse(work.filler, nullptr, false);
    const bool key = fault.place.starts_with(kFillers);
    const std::string column = column_of(filler, key ? fault.place : "");
    return {plan_.question.work_file, work.place,
            column + ": " + (key ? fault.message : fault.text())};
  }

  CheckedResult<run::LoadedRun> load(const Json& config) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        const run::RunConfig parsed,
        run::parse_run_config(compact_text(config), plan_.question.file, registry_));
    return shared_.inputs.load(parsed, config);
  }

  /// What is wrong with a work's row: why its filler does not load beside a job that does. What is
  /// wrong with the job is told when it is asked about.
  Errors faults_of_work(const FleetKind& kind, const FillWork& work) {
    Json base = base_of(plan_.question.jobs[kind.first]);
    if (!load(base)) return {};
    base["fillers"].push_back(Json::parse(work.filler, nullptr, false));
    Errors faults;
    if (const auto loaded = load(base); !loaded) {
      for (const Error& fault : loaded.error()) faults.push_back(at_work(work, fault));
    }
    return faults;
  }

  [[nodiscard]] Question question_of(const FleetKind& kind, const FillWork& work) const {
    const FleetQuestion& asked = plan_.question;
    const FleetJob& job = asked.jobs[kind.first];
    Json base = base_of(job);
    base["fillers"].push_back(Json::parse(work.filler, nullptr, false));
    Question question;
    question.file = asked.file;
    question.name = job.name + "-" + work.name;
    question.base = compact_text(base);
    question.base_file = asked.file;
    question.limits.keep = asked.limits.keep;
    question.system = asked.system;
    question.confirmed_at = ConfirmedAt::kSearchedLength;  // many pairs share one budget
    const auto pairs = static_cast<std::int64_t>(plan_.kinds.size() * asked.work.size());
    question.budget = std::max(kLeastBudget, asked.budget / std::max<std::int64_t>(1, pairs));
    return question;
  }

  KindAnswer ask(FleetKind& kind, const FillWork& work, Errors& faults) {
    if (plan_.stopped) return {.reason = "stopped"};
    const FleetJob& job = plan_.question.jobs[kind.first];
    if (options_.begins) options_.begins(job.name + " with " + work.name);
    faults.add(faults_of_work(kind, work));
    if (!faults.empty()) return {};
    AnswerOptions options = options_;
    options.shared = &shared_;
    options.begins = nullptr;
    const auto advice = answer(question_of(kind, work), registry_, options);
    if (advice) {
      fits_ = true;
      return kind_answer(kind, *advice);
    }
    if (options_.stop != nullptr && *options_.stop) return {.reason = "stopped"};
    // What the filler asks for in vain is this pair's; all else is wrong with the job.
    const Error& fault = advice.error().front();
    if (fault.place.starts_with(kFillers)) return {.reason = fault.message};
    for (const Error& error : advice.error()) faults.push_back(at_job(job, error));
    return {};
  }

  /// For each work why the first kind that says so takes none of it, and what would do.
  [[nodiscard]] Errors no_work_fits() const {
    Errors faults;
    for (std::size_t work = 0; work < plan_.question.work.size(); ++work) {
      const FleetJob& job = plan_.question.jobs[plan_.kinds.front().first];
      faults.push_back({plan_.question.work_file, plan_.question.work[work].place,
                        "fits no job; beside " + job.name + ": " +
                            plan_.kinds.front().answers[work].reason});
    }
    return faults;
  }

  KindAnswer kind_answer(FleetKind& kind, const Advice& advice) {
    const JobAlone& alone = advice.alone;
    kind.device = alone.device;
    kind.own_gpus = static_cast<double>(alone.gpus) * alone.gpus_each;
    kind.bubble = alone.bubble;
    plan_.simulated += advice.simulated;
    plan_.stored += advice.stored;
    KindAnswer out;
    out.own_per_s = alone.fillers.front().requests_per_s;
    if (!advice.found.best) return {.reason = "nothing that was tried keeps the limits"};
    const Tried& best = *advice.found.best;
    out.setting = setting_text(best.proposal);
    out.policy = best.proposal.policy->name;
    if (best.result.gain <= 0) return {.reason = "nothing gains anything within the limits"};
    out.gains = best.result.gain / alone.gpus;
    out.costs = 1 - best.result.kept;
    out.requests_per_s = best.result.requests_per_s / alone.gpus;
    out.run_config = advice.run_config;
    return out;
  }

  void add_gpu_hours() {
    for (std::size_t i = 0; i < plan_.question.jobs.size(); ++i) {
      const FleetJob& job = plan_.question.jobs[i];
      FleetKind& kind = plan_.kinds[plan_.kind_of[i]];
      plan_.gpus.push_back(job.gpus.value_or(kind.own_gpus));
      kind.gpu_hours += plan_.gpus.back() * hours_of(job);
    }
  }

  const policy::Registry& registry_;
  const AnswerOptions& options_;
  sweep::SharedWork shared_;
  sweep::FileHashes files_;
  FleetPlan plan_;
  bool fits_ = false;  // some work beside some job
};

SplitProblem problem_of(const FleetPlan& plan) {
  SplitProblem problem;
  for (const FleetKind& kind : plan.kinds) {
    problem.hours.push_back(kind.gpu_hours);
    auto& value = problem.value.emplace_back();
    auto& done = problem.done.emplace_back();
    for (std::size_t work = 0; work < kind.answers.size(); ++work) {
      const KindAnswer& answer = kind.answers[work];
      value.push_back(answer.gains * plan.question.work[work].weight - answer.costs);
      done.push_back(answer.requests_per_s * kSecondsOfHour);
    }
  }
  for (const FillWork& work : plan.question.work) problem.left.push_back(work.requests);
  return problem;
}

}  // namespace

void place_work(FleetPlan& plan) {
  const auto split = best_split(problem_of(plan));
  auto left = split;  // GPU-hours, by kind and work
  for (std::size_t k = 0; k < plan.kinds.size(); ++k) plan.kinds[k].hours = split[k];
  for (std::size_t i = 0; i < plan.question.jobs.size(); ++i) {
    double free = hours_of(plan.question.jobs[i]);
    std::vector<double>& of_kind = left[plan.kind_of[i]];
    for (std::size_t work = 0; work < of_kind.size(); ++work) {
      const double hours = std::min(free, of_kind[work] / plan.gpus[i]);
      if (hours <= kNoHours) continue;
      plan.placements.push_back({i, work, hours});
      of_kind[work] -= hours * plan.gpus[i];
      free -= hours;
    }
  }
}

FleetSum sum_of(const FleetPlan& plan) {
  FleetSum sum;
  for (const FleetKind& kind : plan.kinds) sum.jobs += kind.gpu_hours;
  for (const FleetPlacement& placement : plan.placements) {
    const KindAnswer& answer = plan.answer_of(placement);
    const double hours = placement.hours * plan.gpus[placement.job];
    sum.filled += hours;
    sum.gained += hours * answer.gains;
    sum.lost += hours * answer.costs;
  }
  return sum;
}

WorkSum sum_of_work(const FleetPlan& plan, std::size_t work) {
  WorkSum sum;
  for (const FleetPlacement& placement : plan.placements) {
    if (placement.work != work) continue;
    const KindAnswer& answer = plan.answer_of(placement);
    const double hours = placement.hours * plan.gpus[placement.job];
    sum.gained += hours * answer.gains;
    sum.requests += hours * answer.requests_per_s * kSecondsOfHour;
  }
  return sum;
}

CheckedResult<FleetPlan> plan_fleet(FleetQuestion question, const policy::Registry& registry,
                                    const AnswerOptions& options) {
  return Planner(std::move(question), registry, options).run();
}

}  // namespace bubblesim::advise
