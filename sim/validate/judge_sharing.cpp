#include "sim/validate/judge_sharing.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/base/add_once.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency_file.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/run/parallel.hpp"
#include "sim/validate/job_name.hpp"
#include "sim/validate/pair_arrivals.hpp"
#include "sim/validate/scene_run.hpp"

namespace bubblesim::validate {
namespace {

constexpr std::string_view kAlone = "alone";  // a system that needs no policy
constexpr int kScalings = 3;  // host waits that do not scale leave an error that shrinks each time

// One client's program, and what it does alone under no policy.
struct LoneClient {
  program::Program program;
  double per_s = 0;
  double mean_ms = 0;
};

using LoneKey = std::tuple<std::string, std::uint32_t, WorkloadRole, std::string, std::uint32_t,
                           double>;  // device, instance, and what the client runs
LoneKey key_of(const SharingRow& row, const SharingClient& client, const SharingStage& stage) {
  return {stage.device_of(row), row.instance,  client.role,
          client.workload,      client.batch, client.solo_ms};
}

Result<LoneClient> alone(program::Program program, const hardware::GpuSpec& gpu) {
  LoneClient out{std::move(program)};
  BUBBLESIM_ASSIGN_OR_RETURN(const Duration pass, solo_latency(gpu, out.program));
  out.mean_ms = 1e3 * to_seconds(pass);
  out.per_s = 1 / to_seconds(pass);
  return out;
}

// What a client runs; refused, too, at another batch size in its table's column than it can.
Result<FoundWorkload> workload_of(const SharingClient& client, const SharingStage& stage) {
  BUBBLESIM_ASSIGN_OR_RETURN(FoundWorkload out,
                             find_workload(stage.workloads, client.role, client.workload));
  if (client.batch == 0 || !out.refused.empty()) return out;
  const auto named = batches_in(client.workload);
  out.refused = named.empty() || named == std::vector{client.batch}
                    ? refuse_batch(*out.workload, client.batch)
                    : "batch: found " + std::to_string(client.batch) + " beside the name " +
                          client.workload + "; expected one batch size";
  return out;
}

CheckedResult<LoneClient> make_lone(const SharingClient& client, const PairMachine& machine,
                                    const SharingStage& stage) {
  BUBBLESIM_ASSIGN_OR_RETURN(const FoundWorkload found, workload_of(client, stage));
  const std::uint32_t batch = client.batch > 0 ? client.batch : found.batch;
  BUBBLESIM_ASSIGN_OR_RETURN(program::Program program,
                             pair_program(*found.workload, machine, batch));
  BUBBLESIM_ASSIGN_OR_RETURN(LoneClient out, alone(std::move(program), machine.gpu));
  for (int i = 0; client.solo_ms > 0 && i < kScalings; ++i) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        out, alone(stretched(std::move(out.program), client.solo_ms / out.mean_ms), machine.gpu));
  }
  return out;
}

// A system's policy with its parameters. Null: the program has no such policy.
struct System {
  const policy::PolicySpec* spec = nullptr;
  policy::ParameterSet parameters;
  std::string policy;
  std::string refused;  ///< why the policy does not take the row's own parameters
};

// Faults are the setting's.
CheckedResult<System> find_system(const SystemSetting& setting, const SharingRow& row,
                                  const SharingStage& stage) {
  const auto spec = stage.policies->find(setting.policy);
  if (!spec) return System{nullptr, {}, setting.policy, {}};
  std::vector<policy::GivenParameter> given;
  for (const auto& [name, value] : setting.parameters) given.push_back({name, value});
  const auto check = [&] {
    return policy::check_parameters(**spec, given, stage.settings.at(row.table).path,
                                    "/systems/" + setting.name + "/parameters");
  };
  BUBBLESIM_ASSIGN_OR_RETURN(policy::ParameterSet shared, check());
  System out{*spec, std::move(shared), setting.policy, {}};
  const auto give = [&](std::string_view name, JsonScalar value) {
    given.push_back({name, std::move(value)});
  };
  if (row.sm_percentage > 0) give("training_percentage", row.sm_percentage);
  if (row.partition > 0) give("training_profile", std::to_string(row.partition) + "g");
  auto parameters = check();
  if (parameters) {
    out.parameters = *std::move(parameters);
  } else {
    out.refused = setting.policy + ": " + parameters.error().front().message;
  }
  return out;
}

policy::Role policy_role(const SharingClient& client) {
  if (client.role == WorkloadRole::kTraining) return policy::Role::kTraining;
  return client.pace == Pace::kLoop ? policy::Role::kOffline : policy::Role::kOnline;
}

std::vector<SimTime> arrivals_of(const SharingClient& client, Duration length,
                                 const SharingSetting& setting) {
  if (client.pace == Pace::kLoop) return {};
  const Duration period{std::llround(1e9 / client.per_s)};
  if (client.pace == Pace::kEven) {
    return pair_arrivals({1, setting.seed, setting.burst}, period, length);
  }
  std::vector<SimTime> out;
  for (Duration at{}; at < length; at += period) out.push_back(kSimStart + at);
  return out;
}

bool begins_so(const SharingRow& row, std::string_view case_name) {
  return job_letters(row.subject).starts_with(job_letters(case_name));
}

using Lone = std::map<LoneKey, CheckedResult<LoneClient>>;

// Nothing takes longer on a part of a GPU than in proportion to its SMs: runs on parts are so much
// longer, so that as many passes end.
double slowdown_bound(const SharingRow& row, const hardware::GpuSpec& gpu) {
  if (row.sm_percentage > 0) return 100.0 / row.sm_percentage;
  if (row.partition > 0) return static_cast<double>(gpu.mig.compute_slices) / row.partition;
  return 1;
}

// A scene's clients over all of its runs, and those with arrivals alone for the same time.
struct SceneFigures {
  std::vector<ClientFigures> shared;
  std::vector<double> alone_passes;  ///< 0 of a loop
};

// Rates are means of the runs; how they move over time is the first run's.
void add_run(std::vector<ClientFigures>& all, std::vector<ClientFigures> run, double share) {
  all.resize(run.size());
  for (std::size_t i = 0; i < run.size(); ++i) {
    all[i].passes += run[i].passes;
    all[i].per_s += share * run[i].per_s;
    std::vector<Duration>& latencies = all[i].latencies;
    const auto known = static_cast<std::ptrdiff_t>(latencies.size());
    latencies.insert(latencies.end(), run[i].latencies.begin(), run[i].latencies.end());
    std::inplace_merge(latencies.begin(), latencies.begin() + known, latencies.end());
    if (all[i].ends.empty()) all[i].ends = std::move(run[i].ends);
  }
}

class Scene {
 public:
  Scene(const SharingRow& row, const SharingStage& stage, const Lone& lone)
      : row_(row), setting_(stage.settings.at(row.table)) {
    for (const SharingClient& client : row.clients) {
      lone_.push_back(&*lone.at(key_of(row, client, stage)));
    }
  }

  [[nodiscard]] Result<SceneFigures> run(const System& system, const hardware::GpuSpec& gpu) const {
    SceneSetup setup;
    setup.gpu = &gpu;
    setup.policy = system.spec;
    setup.parameters = &system.parameters;
    setup.length = scale(length(), slowdown_bound(row_, gpu));
    if (const MeasuredSpan* span = measured_span()) {
      setup.from = span->from;
      setup.length = span->until;
    }
    setup.latencies_from = setting_.latencies_from;
    for (std::size_t i = 0; i < lone_.size(); ++i) setup.clients.push_back(client(i, setup.length));
    SceneFigures out;
    for (std::uint32_t start = 0; start < setting_.starts; ++start) {
      space_loops(setup.clients, start);
      BUBBLESIM_ASSIGN_OR_RETURN(auto run, run_scene(setup));
      add_run(out.shared, std::move(run), 1.0 / setting_.starts);
    }
    for (std::size_t i = 0; i < lone_.size(); ++i) {
      BUBBLESIM_ASSIGN_OR_RETURN(const double passes, alone_passes(setup, i));
      out.alone_passes.push_back(passes * setting_.starts);
    }
    return out;
  }

  [[nodiscard]] double figure(const SharingFigure& asked, const SceneFigures& found) const {
    const ClientFigures& client = found.shared[asked.client];
    const LoneClient& alone = *lone_[asked.client];
    switch (asked.quantity) {
      case Quantity::kShare:
        return found.alone_passes[asked.client] > 0
                   ? static_cast<double>(client.passes) / found.alone_passes[asked.client]
                   : client.per_s * pass_ms(asked.client) * 1e-3;
      case Quantity::kSum: {
        double sum = 0;
        for (const ClientFigures& other : found.shared) sum += other.per_s;
        return sum / lone_.front()->per_s;
      }
      case Quantity::kTime: return client.mean_ms() / alone.mean_ms;
      case Quantity::kMean: return client.mean_ms();
      case Quantity::kPercentile: return client.percentile_ms(asked.percent);
    }
    return 0;
  }

 private:
  // Alone, with its share of pauses.
  [[nodiscard]] double pass_ms(std::size_t i) const {
    const SharingClient& client = row_.clients[i];
    if (client.epoch == 0) return lone_[i]->mean_ms;
    return std::max(client.feed_ms, lone_[i]->mean_ms + client.between_ms) +
           client.pause_ms / client.epoch;
  }

  [[nodiscard]] const MeasuredSpan* measured_span() const {
    for (const MeasuredSpan& span : setting_.spans) {
      if (begins_so(row_, span.case_name)) return &span;
    }
    return nullptr;
  }

  [[nodiscard]] Duration length() const {
    Duration out = setting_.least_length;
    for (std::size_t i = 0; i < lone_.size(); ++i) {
      const SharingClient& client = row_.clients[i];
      const double pass_s = client.pace == Pace::kLoop
                                ? 1e-3 * pass_ms(i) * static_cast<double>(lone_.size())
                                : 1 / client.per_s;
      if (i == 0 || client.pace != Pace::kLoop) {
        out = std::max(out, Duration{std::llround(1e9 * pass_s * setting_.requests)});
      }
    }
    return out;
  }

  [[nodiscard]] SceneClient client(std::size_t i, Duration length) const {
    const SharingClient& given = row_.clients[i];
    SceneClient out;
    out.name = given.workload;
    out.role = policy_role(given);
    out.program = &lone_[i]->program;
    out.loops = given.pace == Pace::kLoop;
    out.epoch = given.epoch;
    out.pause = Duration{std::llround(1e6 * given.pause_ms)};
    out.host_gap = Duration{std::llround(1e6 * given.between_ms)};
    out.feed = Duration{std::llround(1e6 * given.feed_ms)};
    out.arrivals = arrivals_of(given, length, setting_);
    return out;
  }

  // Processes of one model stay where they stand to each other, and how often they meet on the GPU
  // hangs on that: over several runs they begin so far apart that any two have stood everywhere. In
  // a single one, as far apart as can be.
  void space_loops(std::vector<SceneClient>& clients, std::uint32_t run) const {
    const double apart = setting_.starts > 1
                             ? static_cast<double>(run) / setting_.starts
                             : 1 / static_cast<double>(clients.size());
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const double passes = apart * static_cast<double>(i);
      const double share = passes - std::floor(passes);
      clients[i].start = Duration{std::llround(1e6 * lone_[i]->mean_ms * share)};
    }
  }

  // Requests that end within the run when nobody else is there; 0 of a loop.
  [[nodiscard]] Result<double> alone_passes(const SceneSetup& shared, std::size_t i) const {
    if (shared.clients[i].loops) return 0.0;
    SceneSetup setup;
    setup.gpu = shared.gpu;
    setup.from = shared.from;
    setup.length = shared.length;
    setup.clients = {shared.clients[i]};
    BUBBLESIM_ASSIGN_OR_RETURN(const auto figures, run_scene(setup));
    return static_cast<double>(figures.front().passes);
  }

  const SharingRow& row_;
  const SharingSetting& setting_;
  std::vector<const LoneClient*> lone_;
};

std::vector<double> rates_over_time(const std::vector<SimTime>& ends, Duration window) {
  if (window <= Duration{} || ends.empty()) return {};
  std::vector<double> out(static_cast<std::size_t>((ends.back() - kSimStart) / window));
  for (const SimTime end : ends) {
    const auto at = static_cast<std::size_t>((end - kSimStart) / window);
    if (at < out.size()) out[at] += 1 / to_seconds(window);
  }
  return out;
}

// Rows of one scene have one run.
std::string scene_key(const SharingRow& row, const SharingStage& stage) {
  std::string out = row.table + "|" + stage.device_of(row) + "|" + row.system + "|" +
                    std::to_string(row.instance) + "|" + std::to_string(row.partition) + "|" +
                    std::to_string(row.sm_percentage);
  for (const SharingClient& client : row.clients) {
    out += "|" + client.workload + "," + std::to_string(static_cast<int>(client.role)) + "," +
           std::to_string(client.batch) + "," + std::to_string(client.solo_ms) + "," +
           std::to_string(client.per_s);
  }
  return out;
}

CheckedResult<PairMachine> find_machine(const std::string& device, const std::string& configs) {
  PairMachine out;
  BUBBLESIM_ASSIGN_OR_RETURN(out.gpu, hardware::find_gpu_spec(device, configs + "/devices"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.efficiency,
                             model::find_efficiency(device, configs + "/efficiency"));
  out.models = configs + "/models";
  return out;
}

// Rows whose systems, devices and clients are as they should be, each with a run of its own or that
// of an earlier row.
class Judging {
 public:
  Judging(const std::vector<SharingRow>& rows, const SharingStage& stage, std::size_t threads,
          const std::function<void(const std::string&)>& progress)
      : rows_(rows), stage_(stage), threads_(threads), progress_(progress) {}

  CheckedResult<std::vector<JudgedRow>> run() {
    BUBBLESIM_RETURN_IF_ERROR(find_systems());
    for (std::size_t i = 0; i < rows_.size(); ++i) unjudged_.push_back(why_not(i));
    find_scenes();
    make_clients();
    std::vector<Result<SceneFigures>> found(scenes_.size());
    run::for_each_parallel(scenes_.size(), threads_, [&](std::size_t i) {
      const SharingRow& row = rows_[scenes_[i]];
      tell(row.subject + ", " + row.system);
      found[i] = simulate(scenes_[i]);
    });
    std::vector<JudgedRow> out;
    for (std::size_t i = 0; i < rows_.size(); ++i) out.push_back(judged(i, found));
    return out;
  }

 private:
  void tell(const std::string& text) {
    if (!progress_) return;
    const std::scoped_lock lock(mutex_);
    progress_(text);
  }

  CheckedResult<void> find_systems() {
    Errors errors;
    for (const SharingRow& row : rows_) {
      std::optional<System> system;
      for (const SystemSetting& setting : stage_.settings.at(row.table).systems) {
        if (setting.name == row.system && begins_so(row, setting.case_name)) {
          system = take(find_system(setting, row, stage_), errors);
        }
      }
      if (row.system == kAlone) system = System{};
      systems_.push_back(std::move(system));
      if (!errors.empty()) return tl::make_unexpected(std::move(errors));
    }
    return {};
  }

  // Why a row is stated; empty of one that runs.
  [[nodiscard]] std::string why_not(std::size_t i) const {
    const SharingRow& row = rows_[i];
    if (!row.note.empty()) return row.note;
    if (!systems_[i]) return "the setting has no system " + row.system;
    if (row.system != kAlone && systems_[i]->spec == nullptr) {
      return "no policy " + systems_[i]->policy;
    }
    for (const SharingClient& client : row.clients) {
      const auto found = workload_of(client, stage_);
      if (!found) return "no workload of configs/workloads is called " + client.workload;
      if (!found->refused.empty()) return found->refused;
    }
    const std::uint32_t slices = std::max(row.instance, row.partition);
    if (slices > 0) {
      const auto instance = mig_instance(stage_.machines.at(stage_.device_of(row)), slices);
      if (!instance) return instance.error().message;
    }
    return systems_[i]->refused;
  }

  // The first client that runs a workload at another batch size than its file's.
  [[nodiscard]] std::string resized(const SharingRow& row) const {
    std::string out;
    for (const SharingClient& client : row.clients) {
      const auto found = workload_of(client, stage_);
      if (!found || found->batch == 0 || !out.empty()) continue;
      out = client.workload + ": " + found->workload->id + " at batch " +
            std::to_string(found->batch) +
            (client.solo_ms > 0 ? ", scaled to its time alone"
                                : ", by our kernel times; no job of it was measured alone");
    }
    return out;
  }

  void find_scenes() {
    std::map<std::string, std::size_t> known;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      scene_of_.push_back(scenes_.size());
      if (!unjudged_[i].empty()) continue;
      const auto [at, fresh] = known.try_emplace(scene_key(rows_[i], stage_), scenes_.size());
      scene_of_.back() = at->second;
      if (fresh) scenes_.push_back(i);
    }
  }

  [[nodiscard]] Result<PairMachine> machine_of(const SharingRow& row) const {
    const PairMachine& whole = stage_.machines.at(stage_.device_of(row));
    const std::uint32_t slices = row.partition > 0 ? whole.gpu.mig.compute_slices : row.instance;
    if (slices > 0) return mig_instance(whole, slices);
    return whole;
  }

  void make_clients() {
    std::vector<std::pair<const SharingRow*, const SharingClient*>> fresh;
    for (const std::size_t scene : scenes_) {
      for (const SharingClient& client : rows_[scene].clients) {
        const auto [at, added] = lone_.try_emplace(key_of(rows_[scene], client, stage_));
        if (added) fresh.emplace_back(&rows_[scene], &client);
      }
    }
    run::for_each_parallel(fresh.size(), threads_, [&](std::size_t i) {
      const auto& [row, client] = fresh[i];
      tell(client->workload + " alone");
      auto& out = lone_.at(key_of(*row, *client, stage_));
      const auto machine = machine_of(*row);
      if (machine) {
        out = make_lone(*client, *machine, stage_);
      } else {
        out = tl::make_unexpected(Errors{machine.error()});
      }
    });
  }

  [[nodiscard]] Result<SceneFigures> simulate(std::size_t at) const {
    const SharingRow& row = rows_[at];
    for (const SharingClient& client : row.clients) {
      const auto& lone = lone_.at(key_of(row, client, stage_));
      if (!lone) return tl::make_unexpected(lone.error().front());
    }
    BUBBLESIM_ASSIGN_OR_RETURN(const PairMachine machine, machine_of(row));
    return Scene(row, stage_, lone_).run(*systems_[at], machine.gpu);
  }

  [[nodiscard]] JudgedRow judged(std::size_t i, const std::vector<Result<SceneFigures>>& found) {
    JudgedRow out;
    out.row = rows_[i];
    if (!unjudged_[i].empty()) {
      out.outcome = RowOutcome::kStated;
      out.note = unjudged_[i];
      return out;
    }
    const auto& figures = found[scene_of_[i]];
    if (!figures) {
      out.outcome = RowOutcome::kFailed;
      out.note = figures.error().text();
      return out;
    }
    out.note = resized(out.row);
    const Scene scene(rows_[i], stage_, lone_);
    const std::size_t client = out.row.figures.front().client;
    out.over_time = rates_over_time(figures->shared[client].ends, stage_.window);
    for (SharingFigure& figure : out.row.figures) {
      figure.simulated = scene.figure(figure, *figures);
      if (figure.simulated > 0) continue;
      out.outcome = RowOutcome::kFailed;
      out.note = "no pass ends within the run";
    }
    return out;
  }

  const std::vector<SharingRow>& rows_;
  const SharingStage& stage_;
  std::size_t threads_;
  const std::function<void(const std::string&)>& progress_;
  std::mutex mutex_;
  std::vector<std::optional<System>> systems_;  ///< by row
  std::vector<std::string> unjudged_;           ///< by row: why not; empty of those that run
  std::vector<std::size_t> scenes_;             ///< the first row of each
  std::vector<std::size_t> scene_of_;           ///< by row
  Lone lone_;
};

}  // namespace

CheckedResult<SharingStage> make_sharing_stage(const std::string& configs,
                                               const policy::Registry& policies) {
  SharingStage out;
  BUBBLESIM_ASSIGN_OR_RETURN(out.workloads, read_workloads(configs + "/workloads"));
  out.policies = &policies;
  return out;
}

CheckedResult<std::vector<SharingRow>> add_sharing_table(SharingStage& stage,
                                                         const std::string& path,
                                                         const std::string& setting,
                                                         const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::read(path));
  std::string name = setting;
  if (name.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(name, setting_of_form(table));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(SharingSetting found, find_sharing_setting(name, configs));
  BUBBLESIM_ASSIGN_OR_RETURN(std::vector<SharingRow> rows, read_sharing_rows(table, found));
  std::vector<std::string> devices{found.device};
  for (const SharingRow& row : rows) {
    if (!row.device.empty()) add_once(devices, row.device);
  }
  for (const std::string& device : devices) {
    if (stage.machines.contains(device)) continue;
    BUBBLESIM_ASSIGN_OR_RETURN(PairMachine machine, find_machine(device, configs));
    stage.machines.emplace(device, std::move(machine));
  }
  const std::string called = sharing_table_name(table);
  if (!stage.settings.emplace(called, std::move(found)).second) {
    return fail(path, "line 1", "a table called " + called + " is there already; names differ");
  }
  stage.unread[called] = unread_columns(table);
  return rows;
}

namespace {

// NVIDIA MIG user guide: 1, 2, 3, 4, 7 of 7 compute slices; 1, 2, 4 of 4 (A30).
bool has_instance(std::uint32_t all_slices, std::uint32_t slices) {
  if (slices == 0 || slices > all_slices) return false;
  return slices <= 2 || slices == all_slices || (all_slices == 7 && slices <= 4);
}

std::string instances_text(std::uint32_t all_slices) {
  std::string out;
  for (std::uint32_t slices = 1; slices <= all_slices; ++slices) {
    if (!has_instance(all_slices, slices)) continue;
    out += (out.empty() ? "it has those of " : ", ") + std::to_string(slices);
  }
  return out.empty() ? "it has none" : out;
}

}  // namespace

// Memory slices of a profile by NVIDIA's table for GPUs of 7 compute and 8 memory slices.
Result<PairMachine> mig_instance(const PairMachine& whole, std::uint32_t slices) {
  const hardware::GpuSpec& gpu = whole.gpu;
  const MigGeometry& mig = gpu.mig;
  if (!has_instance(mig.compute_slices, slices)) {
    return fail(gpu.name + " has no MIG instance of " + std::to_string(slices) +
                " compute slices; " + instances_text(mig.compute_slices));
  }
  const std::uint32_t memory = slices == mig.compute_slices ? mig.memory_slices
                               : slices == 3                ? std::min(4U, mig.memory_slices)
                                                            : slices;
  const double of_memory = static_cast<double>(memory) / mig.memory_slices;
  PairMachine out = whole;
  out.gpu.sm_count = mig.sms_of(slices);
  out.gpu.dram_bandwidth.value *= of_memory;
  out.gpu.memory.value = gpu.memory.value / mig.memory_slices * memory;
  if (slices < mig.compute_slices) out.gpu.mig = {};  // an instance is not cut again
  for (double& peak : out.efficiency.peak_flops) {
    peak *= static_cast<double>(out.gpu.sm_count) / gpu.sm_count;
  }
  out.efficiency.l2_resident_bytes *= of_memory;
  return out;
}

CheckedResult<std::vector<JudgedRow>> judge_sharing(
    const std::vector<SharingRow>& rows, const SharingStage& stage, std::size_t threads,
    const std::function<void(const std::string&)>& progress) {
  return Judging(rows, stage, threads, progress).run();
}

}  // namespace bubblesim::validate
