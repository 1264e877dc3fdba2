#include "sim/measure/arm.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/measure/job_plans.hpp"
#include "sim/observe/summary.hpp"
#include "sim/policy/session/start.hpp"
#include "sim/run/simulation.hpp"
#include "sim/run/simulation_results.hpp"
#include "sim/schedule/gpu_plan.hpp"
#include "sim/text/escaped_text.hpp"

namespace bubblesim::measure {
namespace {

// Training under a policy that starves it is cut at so many times what it takes alone.
constexpr std::int64_t kPatience = 20;

/// All memory that is known of is on the device at once.
bool fit_together(const std::vector<policy::ClientInfo>& clients,
                  const std::vector<policy::ClientSharing>& shares,
                  const hardware::GpuSpec& device) {
  Bytes together{};
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (shares[i].resident && *shares[i].resident < clients[i].memory) return false;
    together = Bytes{together.value + clients[i].memory.value};
  }
  return together <= device.memory;
}

Error cannot(const policy::PolicySpec& spec, const std::string& what) {
  return {{}, "policy " + spec.name, what};
}

/// One arm on its way through the rig.
class ArmRun {
 public:
  ArmRun(const run::LoadedRun& lone, const Arm& arm, const Alone& alone,
         const capture::RigPlace& place, const MeasureOptions& options)
      : lone_(lone), arm_(arm), alone_(alone), place_(place), options_(options),
        infos_(client_infos(lone, arm, alone)) {}

  Result<observe::PolicyResult> run() {
    BUBBLESIM_RETURN_IF_ERROR(ask_policy());
    BUBBLESIM_RETURN_IF_ERROR(add_jobs());
    setup_.limit = limit();
    setup_.sharing = plan_.decided.sharing;
    BUBBLESIM_ASSIGN_OR_RETURN(const capture::RigResult result, capture::run_rig(place_, setup_));
    if (options_.operations) {
      BUBBLESIM_RETURN_IF_ERROR(
          options_.operations(arm_.name, operations_csv(setup_.jobs, result.jobs)));
    }
    return collect(result);
  }

 private:
  Result<void> ask_policy() {
    setup_.substrate = infos_.size() > 1 ? capture::Substrate::kTimeSliced
                                         : capture::Substrate::kAlone;
    if (arm_.policy == nullptr) {
      plan_ = schedule::plan_without_policy(infos_);
      setup_.shares = plan_.decided.shares;
      if (!arm_.training || infos_.size() == 1) setup_.substrate = capture::Substrate::kAlone;
      return {};
    }
    BUBBLESIM_ASSIGN_OR_RETURN(policy_, policy::make_policy(*arm_.policy, *arm_.parameters));
    BUBBLESIM_ASSIGN_OR_RETURN(
        plan_, schedule::plan_gpu(*arm_.policy, *policy_, lone_.device, infos_,
                                  schedule::DrivenBy::kGate));
    setup_.shares = plan_.decided.shares;
    BUBBLESIM_ASSIGN_OR_RETURN(
        setup_.substrate,
        substrate_of(*arm_.policy, plan_.decided, infos_, lone_.device, place_));
    if (options_.substrate) setup_.substrate = *options_.substrate;
    setup_.host = host_setup();
    return {};
  }

  [[nodiscard]] capture::PolicyHostSetup host_setup() const {
    capture::PolicyHostSetup host;
    host.spec = arm_.policy;
    host.policy = policy_.get();
    host.sharing = plan_.decided.sharing.mode;
    for (const policy::ClientInfo& client : infos_) {
      host.clients.push_back({client.memory, capture::GateMode::kAsk, options_.window});
    }
    const bool asks = options_.ask_training || place_.fake != nullptr;
    host.clients.front().mode = asks ? capture::GateMode::kAsk : capture::GateMode::kTell;
    host.clients.front().window = 0;
    return host;
  }

  Result<void> add_jobs() {
    const PlanSetup setup{.spec = arm_.policy,
                          .shares = &setup_.shares,
                          .bubbles = arm_.bubbles,
                          .length = limit(),
                          .record_operations = options_.operations != nullptr};
    if (arm_.training) {
      BUBBLESIM_ASSIGN_OR_RETURN(PlannedJob job, training_plan(lone_, setup));
      add_job(std::move(job));
    }
    for (std::size_t i = 0; i < arm_.fillers.size(); ++i) {
      const ClientId client{static_cast<std::uint32_t>(i + 1)};
      BUBBLESIM_ASSIGN_OR_RETURN(PlannedJob job,
                                 filler_plan(lone_, arm_.fillers[i], client, setup));
      arrivals_.push_back(job.plan.serve->arrivals);  // they come to a refused filler too
      if (plan_.decided.admissions[i + 1].admitted) add_job(std::move(job));
    }
    return {};
  }

  void add_job(PlannedJob job) {
    counters_.merge(job.counters);
    setup_.jobs.push_back(std::move(job.plan));
  }

  // Longest run; 0: it ends with training's last iteration.
  [[nodiscard]] Duration limit() const {
    if (lone_.config.duration) return *lone_.config.duration;
    if (!arm_.training) return alone_.length;
    if (!alone_.iteration) return Duration{};
    return alone_.length * kPatience;
  }

  Result<observe::PolicyResult> collect(const capture::RigResult& rig) const {
    observe::PolicyResult result;
    const capture::JobRecord* training = nullptr;
    if (arm_.training) {
      if (!rig.jobs.front().record) {
        return fail({}, place_of(), "the training process ended early: " + rig.jobs.front().end);
      }
      training = &*rig.jobs.front().record;
    }
    // A service that has served all of its requests may end before the run does.
    const bool whole = lone_.config.duration.has_value() || !arm_.training;
    result.simulated = end_of_run(lone_.config, training, whole ? limit() : rig.length);
    result.warmup = lone_.config.warmup;
    result.counters = counters_;
    result.counters.merge(rig.counters);
    if (result.simulated <= result.warmup) {
      return fail({}, place_of(), "ended before the warm-up did");
    }
    const MeasuredWindow window{result.warmup, result.simulated};
    if (training != nullptr) add_training(*training, window, result);
    add_fillers(rig, window, result);
    if (arm_.policy != nullptr) add_policy(rig, result);
    return result;
  }

  void add_training(const capture::JobRecord& record, const MeasuredWindow& window,
                    observe::PolicyResult& result) const {
    observe::RankIterations rank = iterations_of(record, window);
    rank.per_pass = lone_.training->ranks.front().iterations;
    result.training =
        observe::summarise_training({std::move(rank)}, {lone_.samples_per_iteration, {}});
    run::count_training(result.training.ranks, result.counters);
    if (lone_.config.iterations && record.iterations.size() < *lone_.config.iterations) {
      result.counters.add(run::kIterationsNotReached);
    }
  }

  void add_fillers(const capture::RigResult& rig, const MeasuredWindow& window,
                   observe::PolicyResult& result) const {
    std::size_t job = arm_.training ? 1 : 0;
    for (std::size_t i = 0; i < arm_.fillers.size(); ++i) {
      const policy::Admission& admission = plan_.decided.admissions[i + 1];
      std::optional<capture::JobRecord> record;
      if (admission.admitted) record = rig.jobs[job++].record;
      result.fillers.push_back(filler_result(lone_.config.fillers[arm_.fillers[i]], record,
                                             admission, arrivals_[i], window));
      result.counters.add(run::kUnfinishedRequests, result.fillers.back().requests_unfinished);
    }
  }

  void add_policy(const capture::RigResult& rig, observe::PolicyResult& result) const {
    run::add_policy(*arm_.policy, *arm_.parameters, result);
    if (rig.host) result.activity = run::policy_activity(rig.host->session);
    result.host = host_activity(rig, setup_.substrate);
  }

  [[nodiscard]] std::string place_of() const {
    return arm_.policy != nullptr ? "policy " + arm_.policy->name : std::string("alone");
  }

  const run::LoadedRun& lone_;
  const Arm& arm_;
  const Alone& alone_;
  const capture::RigPlace& place_;
  const MeasureOptions& options_;
  std::vector<policy::ClientInfo> infos_;
  schedule::GpuPlan plan_;
  std::unique_ptr<policy::Policy> policy_;
  std::vector<std::vector<Duration>> arrivals_;  ///< by Arm::fillers
  capture::RigSetup setup_;
  CounterSet counters_;  ///< of making plans
};

}  // namespace

std::vector<policy::ClientInfo> client_infos(const run::LoadedRun& lone, const Arm& arm,
                                             const Alone& alone) {
  std::vector<policy::ClientInfo> clients{run::rank_info(lone, 0)};
  const bool told = arm.policy != nullptr && arm.policy->needs.kernel_durations;
  for (const std::uint32_t index : arm.fillers) {
    policy::ClientInfo info = run::filler_info(lone.config.fillers[index]);
    info.id = ClientId{static_cast<std::uint32_t>(clients.size())};
    if (told && index < alone.pass.size()) info.pass = alone.pass[index];
    clients.push_back(std::move(info));
  }
  return clients;
}

Result<capture::Substrate> substrate_of(const policy::PolicySpec& spec,
                                        const policy::StartDecisions& decided,
                                        const std::vector<policy::ClientInfo>& clients,
                                        const hardware::GpuSpec& device,
                                        const capture::RigPlace& place) {
  using Mode = program::SharingMode;
  const policy::Sharing& sharing = decided.sharing;
  const bool real = place.fake == nullptr;
  if (sharing.mode == Mode::kIdleOnly || sharing.mode == Mode::kLeftover) {
    return tl::make_unexpected(cannot(spec, "is a bound that no GPU reaches"));
  }
  if (real && sharing.mode == Mode::kPartitioned) {
    return tl::make_unexpected(cannot(
        spec, "wants MIG partitions; measuring leaves the GPU's settings as they are"));
  }
  const bool sliced = sharing.slice && *sharing.slice != device.time_slice;
  const bool own = std::any_of(decided.shares.begin(), decided.shares.end(),
                               [](const auto& share) { return share.slice.has_value(); });
  if (real && (sliced || own)) {
    return tl::make_unexpected(
        cannot(spec, "wants time slices of its own; the driver's can be measured only"));
  }
  if (sharing.changing_slices) {
    return tl::make_unexpected(
        cannot(spec, "sets time slices while jobs run, and the driver's are fixed; `bubblesim "
                     "policies " + spec.name + "` names the parameter that leaves them alone"));
  }
  if (real && sharing.unified_memory && !fit_together(clients, decided.shares, device)) {
    return tl::make_unexpected(cannot(
        spec, "leaves memory of jobs off the device; stand-ins hold theirs on it"));
  }
  return capture::substrate_for(sharing.mode);
}

Result<observe::PolicyResult> run_arm(const run::LoadedRun& lone, const Arm& arm,
                                      const Alone& alone, const capture::RigPlace& place,
                                      const MeasureOptions& options) {
  return ArmRun(lone, arm, alone, place, options).run();
}

namespace {

// Requests of a service that is always busy: each pass serves as many as its record says.
void add_offline(const capture::JobRecord& record, const MeasuredWindow& window,
                 observe::InstanceResult& instance) {
  for (std::size_t i = 0; i < record.passes.size(); ++i) {
    if (record.passes[i] < window.warmup || record.passes[i] > window.end) continue;
    ++instance.passes;
    if (i < record.pass_requests.size()) instance.requests_completed += record.pass_requests[i];
  }
}

// A request that the run's end found waiting or running.
void add_unfinished(Duration arrival, const MeasuredWindow& window, observe::FillerResult& result,
                    observe::Backlog& backlog) {
  if (arrival > window.end) return;
  ++result.requests_unfinished;
  backlog.oldest = std::max(backlog.oldest, window.end - arrival);
  if (arrival < window.warmup) {
    ++result.requests_before;
  } else {
    result.latency.add_unfinished(window.end - arrival);
  }
}

void add_online(const capture::JobRecord& record, const MeasuredWindow& window,
                observe::InstanceResult& instance, observe::FillerResult& result,
                observe::Backlog& backlog) {
  for (const Duration end : record.passes) {
    if (end >= window.warmup && end <= window.end) ++instance.passes;
  }
  for (const capture::RequestRecord& request : record.requests) {
    if (request.end < window.warmup) continue;
    if (request.end > window.end) {
      add_unfinished(request.arrival, window, result, backlog);
      continue;
    }
    ++instance.requests_completed;
    if (request.arrival < window.warmup) {
      ++result.requests_before;
    } else {
      result.latency.add(request.end - request.arrival);
    }
  }
  for (const Duration arrival : record.unfinished) {
    add_unfinished(arrival, window, result, backlog);
  }
}

std::uint64_t arrived_in(const std::vector<Duration>& arrivals, const MeasuredWindow& window) {
  return static_cast<std::uint64_t>(
      std::count_if(arrivals.begin(), arrivals.end(), [&](Duration arrival) {
        return arrival >= window.warmup && arrival <= window.end;
      }));
}

}  // namespace

Duration end_of_run(const run::RunConfig& config, const capture::JobRecord* training,
                    Duration limit) {
  if (!config.iterations || training == nullptr) return limit;
  const auto& ends = training->iterations;
  return ends.size() < *config.iterations ? limit : ends[*config.iterations - 1];
}

observe::RankIterations iterations_of(const capture::JobRecord& training,
                                      const MeasuredWindow& window) {
  observe::RankIterations rank;
  rank.rank = training.rank;
  Duration before{};
  for (const Duration end : training.iterations) {
    if (end > window.end) break;
    rank.times.push_back(end - before);
    before = end;
  }
  rank.first_counted = observe::first_after(rank.times, window.warmup);
  return rank;
}

observe::FillerResult filler_result(const run::FillerConfig& config,
                                    const std::optional<capture::JobRecord>& record,
                                    const policy::Admission& admission,
                                    const std::vector<Duration>& arrivals,
                                    const MeasuredWindow& window) {
  observe::FillerResult result;
  result.name = config.name;
  result.mode = config.mode;
  observe::InstanceResult instance;
  instance.admitted = admission.admitted;
  instance.reason = admission.reason;
  if (admission.admitted) instance.memory = config.memory.value_or(Bytes{});
  const bool online = config.mode == observe::FillerMode::kOnline;
  observe::Backlog backlog;
  backlog.batch =
      std::max<std::uint64_t>(config.batching.requests_per_pass, config.batching.max_batch);
  if (record && online) add_online(*record, window, instance, result, backlog);
  if (record && !online) add_offline(*record, window, instance);
  if (online) {
    result.requests_arrived = arrived_in(arrivals, window);
    if (!admission.admitted) result.requests_refused = result.requests_arrived;
  }
  result.instances.push_back(instance);
  run::summarise_filler(config, backlog, window.end - window.warmup, result);
  return result;
}

observe::HostActivity host_activity(const capture::RigResult& result,
                                    capture::Substrate substrate) {
  observe::HostActivity host;
  host.substrate = capture::substrate_name(substrate);
  if (result.host) {
    const capture::SpanSummary& latency = result.host->decision_latency;
    host.decisions = latency.count;
    host.decision_p50 = latency.p50;
    host.decision_p95 = latency.p95;
    host.decision_p99 = latency.p99;
    host.decision_max = latency.max;
    host.policy_call_mean = result.host->policy_call.mean;
  }
  for (const capture::JobOutcome& job : result.jobs) {
    if (job.record) host.gate_time += job.record->gate_time;
  }
  return host;
}

namespace {

std::string_view kind_text(program::WorkKind kind) {
  switch (kind) {
    case program::WorkKind::kKernel: return "kernel";
    case program::WorkKind::kCollective: return "collective";
    case program::WorkKind::kCopy: return "copy";
    case program::WorkKind::kMemset: return "memset";
  }
  return "";
}

void append_job(std::string& text, const program::Program& program,
                const capture::JobRecord& record) {
  std::vector<capture::OperationRecord> rows = record.operations;
  std::ranges::sort(rows, {}, [](const capture::OperationRecord& row) {
    return std::tuple(row.start, row.pass, row.op);
  });
  for (const capture::OperationRecord& row : rows) {
    const program::Op& op = program.ops[row.op];
    append_csv_cell(text, record.name);
    fmt::format_to(std::back_inserter(text), ",{},{},{},{},", row.pass, row.op,
                   kind_text(op.kind), op.stream);
    append_csv_cell(text, program.names[op.name]);
    fmt::format_to(std::back_inserter(text), ",{},{},{},{},{}\n", to_ns(row.called),
                   to_ns(row.start), to_ns(row.end), to_ns(row.returned), to_ns(row.noticed));
  }
}

}  // namespace

std::string operations_csv(const std::vector<capture::JobPlan>& jobs,
                           const std::vector<capture::JobOutcome>& outcomes) {
  std::string text =
      "job,pass,op,kind,stream,name,called_ns,start_ns,end_ns,returned_ns,noticed_ns\n";
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].record) append_job(text, jobs[i].program, *outcomes[i].record);
  }
  return text;
}

}  // namespace bubblesim::measure
