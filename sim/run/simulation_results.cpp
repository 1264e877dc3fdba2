// What a finished simulation found.
#include <algorithm>

#include "sim/base/units.hpp"
#include "sim/observe/summary.hpp"
#include "sim/run/simulation.hpp"

namespace bubblesim::run {
namespace {

double fraction(Duration part, Duration whole) {
  return whole.count() == 0 ? 0 : to_seconds(part) / to_seconds(whole);
}

}  // namespace

observe::PolicyResult Simulation::collect() {
  observe::PolicyResult result;
  if (scenario_.policy != nullptr) {
    result.policy = scenario_.policy->name;
    result.oracle = scenario_.policy->oracle;
    result.reconstruction = scenario_.policy->reconstruction;
    for (const auto& [name, value] : *scenario_.parameters) {
      result.parameters.emplace_back(name, policy::value_text(value));
    }
  }
  result.simulated = end_ - kSimStart;
  result.warmup = warmup_ - kSimStart;
  result.events = conductor_.events();
  result.training = collect_training();
  for (const std::uint32_t filler : scenario_.fillers) {
    result.fillers.push_back(collect_filler(filler));
  }
  Duration held{};
  std::uint64_t released = 0;
  for (const auto& node : nodes_) {
    node->meter->advance(end_);
    result.gpus.push_back(collect_gpu(*node));
    if (!node->driver) continue;
    const policy::SessionCounts& counts = node->driver->session().counts();
    result.activity.calls += counts.calls;
    result.activity.holds += counts.holds;
    held += counts.held_time;
    released += counts.released;
    counters_.add(kHeldAtEnd, node->driver->session().still_held());
    counters_.add(kPreemptions, counts.preemptions);
    counters_.add(kReshapedLaunches, counts.reshaped);
    counters_.add(kMemoryMigrated, counts.migrated.value);
    for (const ClientId client : node->filler_clients) {
      counters_.add(kKernelResets, node->gpu->usage(client).resets);
    }
    node->policy->add_counts(counters_);
  }
  result.activity.total_hold = held;
  if (released > 0) result.activity.mean_hold = held / static_cast<std::int64_t>(released);
  for (const auto& router : routers_) counters_.merge(router->counters());
  placement_->add_counts(counters_);
  collect_usage(result);
  result.counters = counters_;
  return result;
}

observe::TrainingResult Simulation::collect_training() {
  std::vector<observe::RankIterations> ranks;
  std::vector<const GpuNode*> still;
  for (const auto& node : nodes_) {
    if (!node->training) continue;
    observe::RankIterations rank;
    rank.rank = loaded_.training->ranks[node->rank_index].rank;
    rank.times = node->monitors.front()->iterations;
    rank.per_pass = loaded_.training->ranks[node->rank_index].iterations;
    rank.first_counted = observe::first_after(rank.times, loaded_.config.warmup);
    if (rank.first_counted == rank.times.size()) still.push_back(node.get());
    ranks.push_back(std::move(rank));
  }
  counters_.add(kTrainingStoodStill, still.size());
  auto result = observe::summarise_training(std::move(ranks), {loaded_.samples_per_iteration, {}});
  if (!still.empty()) result.stands_still = why_still(still);
  return result;
}

// The rank whose wait nobody but the policy or the GPU can end; waits for peers come from those.
std::string Simulation::why_still(const std::vector<const GpuNode*>& nodes) const {
  const auto wait_of = [](const GpuNode* node) { return node->runs.front()->waits_for(); };
  const GpuNode* node = *std::ranges::min_element(
      nodes, {}, [&](const GpuNode* each) { return wait_of(each).what; });
  const workload::Wait wait = wait_of(node);
  const program::Program& program = node->runs.front()->program();
  std::string text = "no iteration in " + format_duration(end_ - warmup_) + " on " +
                     std::to_string(nodes.size()) + " of " + std::to_string(nodes_.size()) +
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

observe::FillerResult Simulation::collect_filler(std::uint32_t filler) {
  const FillerConfig& config = loaded_.config.fillers[filler];
  observe::FillerResult result;
  result.name = config.name;
  result.mode = config.mode;
  observe::Backlog backlog;
  for (const auto& node : nodes_) {
    for (const auto& instance : node->fillers) {
      if (instance->filler != filler) continue;
      result.instances.push_back({instance->gpu, instance->admitted, instance->reason,
                                  instance->passes, instance->completed,
                                  config.memory.value_or(Bytes{})});
      result.requests_before += instance->before;
      result.requests_arrived += instance->arrived;
      result.requests_refused += instance->refused;
      if (instance->service && instance->mode == observe::FillerMode::kOnline) {
        backlog.batch += batch_of(filler);
        for (const SimTime arrival : instance->service->unfinished()) {
          ++result.requests_unfinished;
          backlog.oldest = std::max(backlog.oldest, end_ - arrival);
          if (arrival >= warmup_) instance->latency.add_unfinished(end_ - arrival);
        }
      }
      result.latency.merge(instance->latency);
    }
  }
  counters_.add(kUnfinishedRequests, result.requests_unfinished);
  result.instances_unplaced = unplaced_[filler];
  counters_.add(kUnplacedInstances, result.instances_unplaced);
  if (queue_ && config.mode == observe::FillerMode::kJobs) {
    result.jobs = queue_->results(filler, end_);
    counters_.add(kUnfinishedJobs, result.jobs->submitted - result.jobs->finished);
  }
  observe::summarise_filler(result, end_ - warmup_, std::nullopt);
  if (config.mode == observe::FillerMode::kOnline) {
    result.overloaded = observe::is_overloaded(result, backlog, end_ - warmup_);
  } else {
    result.requests_arrived = result.requests_completed;
  }
  if (config.deadline && config.mode == observe::FillerMode::kOnline) {
    result.requests_within_deadline = result.latency.completed_within(*config.deadline);
  }
  return result;
}

// Requests that one GPU of the filler may serve together.
std::uint64_t Simulation::batch_of(std::uint32_t filler) const {
  const FillerConfig& config = loaded_.config.fillers[filler];
  if (filler < loaded_.tables.size() && loaded_.tables[filler]) {
    return loaded_.tables[filler]->sequences.back();
  }
  return std::max<std::uint64_t>(config.batching.requests_per_pass, config.batching.max_batch);
}

observe::GpuUse Simulation::collect_gpu(const GpuNode& node) const {
  const Duration window = end_ - warmup_;
  const observe::ActivityMeter& meter = *node.meter;
  observe::GpuUse use;
  use.gpu = node.id;
  use.busy_fraction = fraction(meter.busy(), window);
  use.busy_without_collectives_fraction = fraction(meter.busy_without_collectives(), window);
  use.bubble_fraction = fraction(meter.bubble(), window);
  use.bubbles = {{"collective", meter.collective_bubble()}, {"idle", meter.idle_bubble()}};
  use.recovered_fraction = fraction(meter.recovered(), meter.bubble());
  const double sm_seconds = to_seconds(window) * loaded_.device.sm_count;
  if (sm_seconds > 0) {
    use.training_sm_fraction =
        (node.training_sm_seconds() - node.training_sm_seconds_at_warmup) / sm_seconds;
    use.filler_sm_fraction =
        (node.filler_sm_seconds() - node.filler_sm_seconds_at_warmup) / sm_seconds;
  }
  if (node.memory_known) {
    use.memory_high_water = node.memory + placement_->workers_most(node.id);
  }
  return use;
}

}  // namespace bubblesim::run
