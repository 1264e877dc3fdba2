#include "sim/validate/judge_sharing.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "sim/base/add_once.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency_file.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/run/parallel.hpp"
#include "sim/validate/pair_run.hpp"

namespace bubblesim::validate {
namespace {

constexpr int kScalings = 3;  // host waits that do not scale leave an error that shrinks each time

// A pair's two programs and what they do alone, shared by its systems.
struct PairBase {
  std::string inference;
  std::string training;
  double solo_ms = 0;
  program::Program service;
  program::Program job;
  std::vector<SimTime> arrivals;
  Duration length{};
  double service_rate = 0;  ///< requests served alone
  double job_rate = 0;      ///< iterations a second alone
};

using PairKey = std::tuple<std::string, std::string, double>;
PairKey key_of(const SharingRow& row) { return {row.inference, row.training, row.solo_ms}; }

Result<program::Program> scaled_service(program::Program program, Duration solo,
                                         const hardware::GpuSpec& gpu) {
  for (int i = 0; i < kScalings; ++i) {
    BUBBLESIM_ASSIGN_OR_RETURN(const Duration alone, solo_latency(gpu, program));
    program = stretched(std::move(program), to_seconds(solo) / to_seconds(alone));
  }
  return program;
}

CheckedResult<PairBase> make_base(const SharingRow& row, const SharingStage& stage) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      const PairWorkload* inference,
      find_workload(stage.workloads, WorkloadRole::kInference, row.inference));
  BUBBLESIM_ASSIGN_OR_RETURN(
      const PairWorkload* training,
      find_workload(stage.workloads, WorkloadRole::kTraining, row.training));
  PairBase out;
  const Duration solo{std::llround(row.solo_ms * 1e6)};
  BUBBLESIM_ASSIGN_OR_RETURN(program::Program service, pair_program(*inference, stage.machine));
  BUBBLESIM_ASSIGN_OR_RETURN(out.service,
                             scaled_service(std::move(service), solo, stage.machine.gpu));
  BUBBLESIM_ASSIGN_OR_RETURN(out.job, pair_program(*training, stage.machine));
  const SharingSetting& setting = stage.setting;
  out.length = std::max(setting.least_length,
                        scale(solo, setting.requests / setting.load));
  out.arrivals = pair_arrivals({setting.load, setting.ramp, setting.seed, setting.burst}, solo,
                               out.length);
  PairSetup alone;
  alone.gpu = &stage.machine.gpu;
  alone.length = out.length;
  alone.arrivals = out.arrivals;
  alone.inference = &out.service;
  BUBBLESIM_ASSIGN_OR_RETURN(const PairFigures served, run_pair(alone));
  out.service_rate = static_cast<double>(served.served);
  alone.arrivals.clear();
  alone.inference = nullptr;
  alone.training = &out.job;
  BUBBLESIM_ASSIGN_OR_RETURN(const PairFigures trained, run_pair(alone));
  out.job_rate = trained.iterations_per_s;
  if (out.service_rate <= 0 || out.job_rate <= 0) {
    return fail(training->id, {}, "no request or no iteration ends alone");
  }
  return out;
}

// A system's policy with its parameters. Null: the program has no such policy.
struct System {
  const policy::PolicySpec* spec = nullptr;
  policy::ParameterSet parameters;
};

CheckedResult<System> find_system(const SystemSetting& setting, const SharingStage& stage) {
  const auto spec = stage.policies->find(setting.policy);
  if (!spec) return System{};
  std::vector<policy::GivenParameter> given;
  for (const auto& [name, text] : setting.parameters) given.push_back({name, text});
  BUBBLESIM_ASSIGN_OR_RETURN(
      policy::ParameterSet parameters,
      policy::check_parameters(**spec, given, stage.setting.path,
                               "/systems/" + setting.name + "/parameters"));
  return System{*spec, std::move(parameters)};
}

void simulate(JudgedPair& out, const PairBase& base, const System& system,
              const SharingStage& stage) {
  PairSetup setup;
  setup.gpu = &stage.machine.gpu;
  setup.policy = system.spec;
  setup.parameters = &system.parameters;
  setup.inference = &base.service;
  setup.training = &base.job;
  setup.arrivals = base.arrivals;
  setup.length = base.length;
  const auto figures = run_pair(setup);
  if (!figures) {
    out.outcome = Outcome::kFailed;
    out.note = figures.error().text();
    return;
  }
  out.simulated = {static_cast<double>(figures->served) / base.service_rate,
                   figures->iterations_per_s / base.job_rate,
                   figures->average_ms, figures->p90_ms, figures->p95_ms, figures->p99_ms};
}

double sharing_aim(const std::string& system, SharingMetric metric) {
  const bool mps = system == "mps" || system == "mps_priority";
  switch (metric) {
    case SharingMetric::kInferenceThroughput:
    case SharingMetric::kTrainingThroughput:
      return mps ? 0.06 : (system == "time_slicing" ? 0.05 : 0.0);
    case SharingMetric::kP95: return 0.15;
    default: return 0;
  }
}

SharingSummary summary_of(const std::vector<JudgedPair>& rows, const std::string& system,
                          SharingMetric metric, std::string_view role) {
  std::vector<LabelledError> errors;
  for (const JudgedPair& it : rows) {
    if (it.outcome != Outcome::kPredicted || it.row.system != system) continue;
    if (role == "all" || role == role_name(it.row.role)) errors.push_back({it.error(metric), {}});
  }
  SharingSummary out{summarise_errors(errors), system, metric, std::string(role)};
  out.aim = sharing_aim(system, metric);
  const bool aimed = out.aim > 0 || errors.empty();
  out.within_aim = aimed ? share_within(errors, out.aim) : 1;
  return out;
}

std::vector<std::string> systems_of(const std::vector<JudgedPair>& rows) {
  std::vector<std::string> out;
  for (const JudgedPair& it : rows) add_once(out, it.row.system);
  return out;
}

std::string chain(std::vector<std::pair<double, std::string>> figures) {
  std::stable_sort(figures.begin(), figures.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (i > 0) out += figures[i].first > figures[i - 1].first ? " < " : " = ";
    out += figures[i].second;
  }
  return out;
}

SharingOrder order_of(const std::vector<const JudgedPair*>& pair, SharingMetric metric) {
  SharingOrder out;
  out.inference = pair.front()->row.inference;
  out.training = pair.front()->row.training;
  out.metric = metric;
  const auto at = static_cast<std::size_t>(metric);
  std::vector<std::pair<double, std::string>> measured, simulated;
  for (const JudgedPair* a : pair) {
    measured.emplace_back(a->row.measured[at], a->row.system);
    simulated.emplace_back(a->simulated[at], a->row.system);
    for (const JudgedPair* b : pair) {
      if (a->row.measured[at] >= b->row.measured[at]) continue;
      ++out.compared;
      if (a->simulated[at] < b->simulated[at]) ++out.right;
    }
  }
  out.measured = chain(std::move(measured));
  out.simulated = chain(std::move(simulated));
  return out;
}

}  // namespace

CheckedResult<SharingStage> find_sharing_stage(const std::string& setting,
                                               const std::string& configs,
                                               const policy::Registry& policies) {
  SharingStage out;
  BUBBLESIM_ASSIGN_OR_RETURN(out.setting, find_sharing_setting(setting, configs));
  BUBBLESIM_ASSIGN_OR_RETURN(out.machine.gpu,
                             hardware::find_gpu_spec(out.setting.device, configs + "/devices"));
  BUBBLESIM_ASSIGN_OR_RETURN(
      out.machine.efficiency,
      model::find_efficiency(out.setting.device, configs + "/efficiency"));
  out.machine.models = configs + "/models";
  BUBBLESIM_ASSIGN_OR_RETURN(out.workloads, read_workloads(configs + "/workloads"));
  out.policies = &policies;
  return out;
}

CheckedResult<std::vector<JudgedPair>> judge_sharing(
    const std::vector<SharingRow>& rows, const SharingStage& stage, std::size_t threads,
    const std::function<void(const std::string&)>& progress) {
  std::map<std::string, std::pair<System, std::string>> systems;  // with their policies' names
  Errors errors;
  for (const SystemSetting& it : stage.setting.systems) {
    systems[it.name] = {take(find_system(it, stage), errors), it.policy};
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  std::mutex mutex;
  const auto tell = [&](const std::string& text) {
    if (!progress) return;
    const std::scoped_lock lock(mutex);
    progress(text);
  };
  std::vector<PairKey> keys;
  std::vector<const SharingRow*> firsts;
  for (const SharingRow& row : rows) {
    if (std::find(keys.begin(), keys.end(), key_of(row)) != keys.end()) continue;
    keys.push_back(key_of(row));
    firsts.push_back(&row);
  }
  std::vector<CheckedResult<PairBase>> bases(keys.size());
  run::for_each_parallel(keys.size(), threads, [&](std::size_t i) {
    tell(firsts[i]->training + " alone");
    bases[i] = make_base(*firsts[i], stage);
  });
  std::vector<JudgedPair> out(rows.size());
  run::for_each_parallel(rows.size(), threads, [&](std::size_t i) {
    out[i].row = rows[i];
    const auto found = systems.find(rows[i].system);
    if (found == systems.end() || found->second.first.spec == nullptr) {
      out[i].outcome = Outcome::kStated;
      out[i].note = found == systems.end() ? "the setting has no system " + rows[i].system
                                           : "no policy " + found->second.second;
      return;
    }
    const auto key = std::find(keys.begin(), keys.end(), key_of(rows[i]));
    const auto& base = bases[static_cast<std::size_t>(key - keys.begin())];
    if (!base) {
      out[i].outcome = Outcome::kFailed;
      out[i].note = base.error().front().message;
      return;
    }
    tell(rows[i].inference + " and " + rows[i].training + ", " + rows[i].system);
    simulate(out[i], *base, found->second.first, stage);
  });
  return out;
}

std::vector<SharingSummary> summarise_sharing(const std::vector<JudgedPair>& rows) {
  std::vector<SharingSummary> out;
  for (const std::string& system : systems_of(rows)) {
    for (const SharingMetric metric : kAllSharingMetrics) {
      const SharingSummary all = summary_of(rows, system, metric, "all");
      if (all.rows == 0) continue;
      for (const std::string_view role : {"fit", "judge"}) {
        SharingSummary summary = summary_of(rows, system, metric, role);
        if (summary.rows > 0 && summary.rows < all.rows) out.push_back(std::move(summary));
      }
      out.push_back(all);
    }
  }
  return out;
}

std::vector<SharingOrder> order_sharing(const std::vector<JudgedPair>& rows) {
  std::vector<std::pair<std::string, std::string>> keys;
  std::map<std::pair<std::string, std::string>, std::vector<const JudgedPair*>> pairs;
  for (const JudgedPair& it : rows) {
    if (it.outcome != Outcome::kPredicted) continue;
    const std::pair key{it.row.inference, it.row.training};
    if (pairs[key].empty()) keys.push_back(key);
    pairs[key].push_back(&it);
  }
  std::vector<SharingOrder> out;
  for (const auto& key : keys) {
    if (pairs[key].size() < 2) continue;
    for (const SharingMetric metric : {SharingMetric::kP95, SharingMetric::kTrainingThroughput}) {
      out.push_back(order_of(pairs[key], metric));
    }
  }
  return out;
}

}  // namespace bubblesim::validate
