#include "sim/run/simulation_results.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/base/units.hpp"
#include "sim/observe/batch_means.hpp"
#include "sim/run/unmet_config.hpp"
#include "sim/serving/scheduler.hpp"

namespace bubblesim::run {
namespace {

// Finds the rank whose wait only the policy or the GPU can end; waits for peers follow from it.
std::string why_still(const EndedSimulation& ended, const std::vector<const GpuNode*>& still) {
  const auto wait_of = [](const GpuNode* node) { return node->training()->run->waits_for(); };
  const GpuNode* node = *std::ranges::min_element(
      still, {}, [&](const GpuNode* other) { return wait_of(other).what; });
  const workload::Wait wait = wait_of(node);
  const program::Program& program = node->training()->run->program();
  std::string text = "no iteration in " + format_duration(ended.now - ended.warmup) + " on " +
                     std::to_string(still.size()) + " of " + std::to_string(ended.nodes.size()) +
                     " GPUs; rank " + std::to_string(program.rank) + " waits for ";
  switch (wait.what) {
    case workload::WaitsFor::kPolicy: text += "the policy to let a launch go on"; break;
    case workload::WaitsFor::kRoom: text += "room, or its turn, on the GPU"; break;
    case workload::WaitsFor::kDevice: text += "what it runs"; break;
    case workload::WaitsFor::kPeers: text += "other ranks in a collective"; break;
    case workload::WaitsFor::kHost: text += "its own host"; break;
  }
  if (wait.op == program::kNoIndex) return text;
  const NameId name = program.ops[wait.op].name;
  if (name.index() < program.names.size()) text += ": " + program.names[name];
  return text;
}

bool stood_still(const observe::RankIterations& rank) {
  return rank.first_counted == rank.times.size();
}

observe::TrainingResult collect_training(EndedSimulation& ended) {
  std::vector<observe::RankIterations> ranks;
  std::vector<const GpuNode*> still;
  for (const auto& node : ended.nodes) {
    if (node->training() == nullptr) continue;
    const program::Program& program = node->training()->run->program();
    observe::RankIterations rank;
    rank.rank = program.rank;
    rank.times = node->training()->iterations;
    rank.per_pass = program.iterations;
    rank.first_counted = observe::first_after(rank.times, ended.warmup - kSimStart);
    if (stood_still(rank)) still.push_back(node.get());
    ranks.push_back(std::move(rank));
  }
  count_training(ranks, ended.counters);
  auto result = observe::summarise_training(
      std::move(ranks), scale_of(ended.loaded, ended.now - kSimStart, std::nullopt));
  if (!still.empty()) result.stands_still = why_still(ended, still);
  return result;
}

// Requests that the instance may serve together. Of a server's max_num_seqs its cache often holds
// a small part, and which part depends on their lengths: what ran at once says it.
std::uint64_t batch_of(const LoadedRun& loaded, const FillerInstance& instance) {
  const std::uint32_t filler = instance.filler;
  if (loaded.server(filler) != nullptr) {
    std::uint64_t running = 0;
    for (const serving::Scheduler* scheduler : instance.service->schedulers()) {
      running += scheduler->counts().most_running;
    }
    return running;
  }
  const auto& batching = loaded.config.fillers[filler].batching;
  return std::max<std::uint64_t>(batching.requests_per_pass, batching.max_batch);
}

// Its latencies are whole from then on: with the ages of what has not been served.
void add_instance(const EndedSimulation& ended, FillerInstance& instance,
                  observe::FillerResult& result) {
  const FillerConfig& config = ended.loaded.config.fillers[instance.filler];
  const Bytes held = instance.admitted ? config.memory.value_or(Bytes{}) : Bytes{};
  result.instances.push_back({instance.gpu, instance.admitted, instance.reason, instance.passes,
                              instance.completed, held});
  if (instance.service && instance.mode == observe::FillerMode::kOnline) {
    for (const auto& [arrival, first_token] : instance.service->unfinished()) {
      if (arrival >= ended.warmup) instance.latency.add_unfinished(ended.now - arrival);
    }
  }
  result.latency.merge(instance.latency);
}

/// Adds what the server on one GPU did; shares of the cache are sums over GPUs until all are in.
void add_server(EndedSimulation& ended, FillerInstance& instance,
                observe::ServerResult& result) {
  ServerTally& tally = instance.server;
  if (instance.mode == observe::FillerMode::kOnline) {
    for (const serving::UnfinishedRequest& request : instance.service->unfinished()) {
      if (request.arrival < ended.warmup) continue;
      if (request.first_token) {
        tally.ttft.add(*request.first_token - request.arrival);
      } else {
        tally.ttft.add_unfinished(ended.now - request.arrival);
      }
    }
  }
  result.ttft.merge(tally.ttft);
  result.tpot.merge(tally.tpot);
  result.tbt.merge(tally.tbt);
  result.output_tokens += tally.output_tokens;
  result.steps += instance.passes;
  double all_blocks = 0;
  for (const serving::Scheduler* scheduler : instance.service->schedulers()) {
    const serving::SchedulerCounts& counts = scheduler->counts();
    result.preemptions += counts.preemptions;
    result.recomputed_tokens += counts.recomputed_tokens;
    result.prefix_hit_tokens += counts.prefix_hit_tokens;
    const double blocks = scheduler->spec().kv_blocks;
    result.most_kv_fraction = std::max(result.most_kv_fraction, counts.most_blocks / blocks);
    all_blocks += blocks;
    serving::add_counters(counts, ended.counters);
  }
  tally.count_blocks(ended.now);
  result.mean_kv_fraction += tally.block_seconds / all_blocks;
  if (result.limits) *result.within_limits += tally.within_limits;
}

std::optional<observe::ServerResult> collect_server(EndedSimulation& ended,
                                                    std::uint32_t filler) {
  if (ended.loaded.server(filler) == nullptr) return std::nullopt;
  observe::ServerResult result;
  const FillerConfig& config = ended.loaded.config.fillers[filler];
  if (config.mode == observe::FillerMode::kOnline && config.limits) {
    result.limits = config.limits;
    result.within_limits = 0;
  }
  double gpus = 0;
  for (FillerInstance* instance : instances_of(ended.nodes, filler)) {
    if (!instance->service) continue;
    add_server(ended, *instance, result);
    ++gpus;
  }
  const double window = to_seconds(ended.now - ended.warmup);
  if (gpus > 0 && window > 0) result.mean_kv_fraction /= gpus * window;
  if (window > 0) {
    result.output_tokens_per_s = static_cast<double>(result.output_tokens) / window;
    if (result.within_limits) {
      result.goodput_per_s = static_cast<double>(*result.within_limits) / window;
    }
  }
  return result;
}

// After GpuNode::use(), which lets the last of the run's power pass.
observe::FillerResult collect_filler(EndedSimulation& ended, std::uint32_t filler) {
  const FillerConfig& config = ended.loaded.config.fillers[filler];
  observe::FillerResult result;
  result.name = config.name;
  result.mode = config.mode;
  const observe::Backlog backlog = count_requests(ended, filler, result);
  for (FillerInstance* instance : instances_of(ended.nodes, filler)) {
    add_instance(ended, *instance, result);
    if (instance->mode == observe::FillerMode::kOffline && !instance->course.empty()) {
      auto& rate = result.whole_batches_requests_per_s;
      rate = rate.value_or(0) + observe::rate_of(instance->course);
    }
    if (const auto energy = ended.nodes[instance->gpu.index()]->energy_of(instance->client)) {
      result.energy_j = result.energy_j.value_or(0) + *energy;
    }
  }
  result.server = collect_server(ended, filler);
  ended.counters.add(kUnfinishedRequests, result.requests_unfinished);
  result.instances_unplaced = ended.places.unplaced(filler);
  ended.counters.add(kUnplacedInstances, result.instances_unplaced);
  if (ended.queue != nullptr && config.mode == observe::FillerMode::kJobs) {
    result.jobs = ended.queue->results(filler, ended.now);
    ended.counters.add(kUnfinishedJobs, result.jobs->submitted - result.jobs->finished);
  }
  summarise_filler(config, backlog, ended.now - ended.warmup, result);
  return result;
}

observe::PolicyActivity collect_policies(EndedSimulation& ended) {
  policy::SessionCounts all;
  for (const auto& node : ended.nodes) {
    const policy::CheckedActions* session = node->gpu().session();
    if (session == nullptr) continue;
    const policy::SessionCounts counts = *node->gpu().counts();
    all.calls += counts.calls;
    all.holds += counts.holds;
    all.held_time += counts.held_time;
    all.released += counts.released;
    ended.counters.add(kHeldAtEnd, session->still_held());
    ended.counters.add(kPreemptions, counts.preemptions);
    ended.counters.add(kReshapedLaunches, counts.reshaped);
    ended.counters.add(kMemoryMigrated, counts.migrated.value);
    ended.counters.add(kKernelResets, node->resets());
    node->gpu().policy()->add_counts(ended.counters);
  }
  return policy_activity(all);
}

}  // namespace

void count_training(const std::vector<observe::RankIterations>& ranks, CounterSet& counters) {
  counters.add(kTrainingStoodStill, std::ranges::count_if(ranks, stood_still));
  counters.add(kWindowWithinPass, observe::ranks_within_pass(ranks));
}
observe::RunReport report_before_runs(const LoadedRun& loaded) {
  observe::RunReport report;
  report.config = loaded.config.name;
  report.seed = loaded.config.seed;
  report.device = loaded.device.name;
  report.ranks = static_cast<std::uint32_t>(loaded.training->ranks.size());
  report.ranks_per_gpu = loaded.fold;
  report.world_size = std::max(loaded.world_size, report.ranks);
  report.counters = loaded.counters;
  report.training_counters = loaded.training->counters;
  for (const auto& filler : loaded.fillers) {
    report.filler_counters.push_back(filler->program.counters);
  }
  report.baseline.recorded_mean_iteration = loaded.recorded_mean_iteration;
  report.baseline.iterations_recorded = loaded.training->iterations_recorded;
  report.baseline.iterations_used = loaded.training->iterations_used;
  report.baseline.iterations_text = loaded.training->iterations_text;
  report.baseline.overruns =
      std::ranges::any_of(loaded.training->ranks, &program::Program::overruns);
  return report;
}

std::optional<double> replay_error(const LoadedRun& loaded, Duration mean_iteration) {
  const auto& recorded = loaded.recorded_mean_iteration;
  if (!recorded || recorded->count() <= 0) return std::nullopt;
  return to_seconds(mean_iteration) / to_seconds(*recorded) - 1;
}

observe::Backlog count_requests(const SimulationAt& at, std::uint32_t filler,
                                observe::FillerResult& result) {
  observe::Backlog backlog;
  for (const FillerInstance* instance : instances_of(at.nodes, filler)) {
    result.requests_before += instance->before;
    result.requests_arrived += instance->arrived;
    result.requests_refused += instance->refused;
    result.requests_completed += instance->completed;
    if (!instance->service || instance->mode != observe::FillerMode::kOnline) continue;
    backlog.batch += batch_of(at.loaded, *instance);
    const auto unfinished = instance->service->unfinished();
    result.requests_unfinished += unfinished.size();
    if (!unfinished.empty()) {
      backlog.oldest = std::max(backlog.oldest, at.now - unfinished.front().arrival);
    }
  }
  return backlog;
}

void add_policy(const policy::PolicySpec& spec, const policy::ParameterSet& parameters,
                observe::PolicyResult& result) {
  result.policy = spec.name;
  result.oracle = spec.oracle;
  result.reconstruction = spec.reconstruction;
  for (const auto& [name, value] : parameters) {
    result.parameters.emplace_back(name, policy::value_text(value));
  }
}

observe::PolicyActivity policy_activity(const policy::SessionCounts& counts) {
  observe::PolicyActivity activity;
  activity.calls = counts.calls;
  activity.holds = counts.holds;
  activity.total_hold = counts.held_time;
  if (counts.released > 0) {
    activity.mean_hold = counts.held_time / static_cast<std::int64_t>(counts.released);
  }
  return activity;
}

void summarise_filler(const FillerConfig& filler, const observe::Backlog& backlog, Duration window,
                      observe::FillerResult& result) {
  observe::summarise_filler(result, window, std::nullopt);
  if (filler.mode != observe::FillerMode::kOnline) {
    result.requests_arrived = result.requests_completed;
    return;
  }
  result.overloaded = observe::is_overloaded(result, backlog, window);
  if (filler.deadline) {
    result.requests_within_deadline = result.latency.completed_within(*filler.deadline);
  }
}

observe::PolicyResult collect_results(EndedSimulation ended) {
  observe::PolicyResult result;
  if (ended.scenario.policy != nullptr) {
    add_policy(*ended.scenario.policy, *ended.scenario.parameters, result);
  }
  result.simulated = ended.now - kSimStart;
  result.warmup = ended.warmup - kSimStart;
  result.events = ended.events;
  result.training = collect_training(ended);
  const ClusterPlacement& cluster = ended.places.cluster();
  for (const auto& node : ended.nodes) {
    result.gpus.push_back(node->use(ended.now, cluster.workers_most(node->id())));
  }
  for (const std::uint32_t filler : ended.scenario.fillers) {
    result.fillers.push_back(collect_filler(ended, filler));
  }
  result.activity = collect_policies(ended);
  cluster.add_counts(ended.counters);
  result.precision = std::move(ended.precision);
  result.counters = std::move(ended.counters);
  note_unmet_config(ended.loaded, result.simulated, result);
  return result;
}

}  // namespace bubblesim::run
