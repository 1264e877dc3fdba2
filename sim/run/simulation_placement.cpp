// Which fillers a simulation has on which GPUs: where the config puts them, or where the policy's
// placer does; and the queue of fill jobs.
#include <algorithm>
#include <numeric>

#include "sim/run/simulation.hpp"

namespace bubblesim::run {
namespace {

policy::GpuState state_of(GpuId id, Bytes memory, const schedule::BubbleTable* bubbles,
                          std::uint32_t iterations) {
  policy::GpuState state;
  state.id = id;
  state.memory = memory;
  if (bubbles == nullptr) return state;
  for (const schedule::Bubble& bubble : *bubbles) {
    state.bubble_time += bubble.length;
    if (bubble.pipeline) state.pipeline_time += bubble.length;
    if (bubble.free_memory == Bytes{}) continue;
    state.bubble_memory = state.bubble_memory == Bytes{}
                              ? bubble.free_memory
                              : std::min(state.bubble_memory, bubble.free_memory);
  }
  const auto per_pass = static_cast<std::int64_t>(std::max(1U, iterations));
  state.bubble_time /= per_pass;
  state.pipeline_time /= per_pass;
  return state;
}

}  // namespace

std::optional<Bytes> Simulation::training_memory(std::size_t rank) const {
  return loaded_.rank_memory.empty() ? loaded_.config.training.memory : loaded_.rank_memory[rank];
}

std::vector<policy::GpuState> Simulation::gpu_states() const {
  std::vector<policy::GpuState> states;
  for (std::uint32_t gpu = 0; gpu < loaded_.training->ranks.size(); ++gpu) {
    const schedule::BubbleTable* bubbles =
        scenario_.bubbles == nullptr ? nullptr : &(*scenario_.bubbles)[gpu];
    states.push_back(state_of(GpuId{gpu}, loaded_.device.memory, bubbles,
                              loaded_.training->ranks[gpu].iterations));
    if (!scenario_.training) continue;
    states.back().used = training_memory(gpu).value_or(Bytes{});
    states.back().iteration = scenario_.iteration;
  }
  return states;
}

// Alone, the requests of fill jobs never end: what is measured is how fast they are served.
observe::FillerMode Simulation::mode_of(std::uint32_t filler) const {
  const observe::FillerMode mode = loaded_.config.fillers[filler].mode;
  const bool alone = !scenario_.training && mode == observe::FillerMode::kJobs;
  return alone ? observe::FillerMode::kOffline : mode;
}

std::vector<std::uint32_t> Simulation::gpus_of(std::uint32_t filler) const {
  const FillerConfig& config = loaded_.config.fillers[filler];
  std::vector<std::uint32_t> gpus(loaded_.training->ranks.size());
  std::iota(gpus.begin(), gpus.end(), 0U);
  if (config.gpus) gpus = *config.gpus;
  std::size_t most = gpus.size();
  if (config.instances && !placement_->has_placer()) most = *config.instances;
  if (!scenario_.training && config.mode == observe::FillerMode::kJobs) most = 1;
  gpus.resize(std::min(gpus.size(), most));
  return gpus;
}

Result<void> Simulation::place_fillers() {
  std::unique_ptr<policy::Placer> placer;
  if (scenario_.policy != nullptr && scenario_.policy->make_placer) {
    placer = scenario_.policy->make_placer(*scenario_.parameters);
  }
  placement_ = std::make_unique<ClusterPlacement>(
      scenario_.policy == nullptr ? "" : scenario_.policy->name, std::move(placer), gpu_states());
  placed_.resize(loaded_.training->ranks.size());
  unplaced_.resize(loaded_.config.fillers.size());
  std::vector<PlacedFiller> waiting;
  for (const std::uint32_t filler : scenario_.fillers) {
    const FillerConfig& config = loaded_.config.fillers[filler];
    PlacedFiller next{filler, job_of(filler, config)};
    if (config.instances && placement_->has_placer()) {
      for (std::uint32_t i = 0; i < *config.instances; ++i) {
        next.job.id = next_job_++;
        waiting.push_back(next);
      }
      continue;
    }
    const bool queue = mode_of(filler) == observe::FillerMode::kJobs;
    if (queue) placement_->add_worker_kind(filler);
    for (const std::uint32_t gpu : gpus_of(filler)) {
      next.job.id = next_job_++;
      placed_[gpu].push_back(next);
      if (!queue) placement_->add_fixed(next.job, GpuId{gpu});
    }
  }
  return place_instances(waiting);
}

// Fillers that may use the same GPUs are asked for together.
Result<void> Simulation::place_instances(const std::vector<PlacedFiller>& waiting) {
  for (const PlacedFiller& each : waiting) ++unplaced_[each.filler];
  std::vector<std::vector<std::uint32_t>> asked;
  for (const PlacedFiller& first : waiting) {
    const std::vector<std::uint32_t> gpus = gpus_of(first.filler);
    if (std::ranges::find(asked, gpus) != asked.end()) continue;
    asked.push_back(gpus);
    std::vector<policy::JobInfo> infos;
    for (const PlacedFiller& each : waiting) {
      if (gpus_of(each.filler) == gpus) infos.push_back(each.job);
    }
    BUBBLESIM_ASSIGN_OR_RETURN(const auto placements,
                               placement_->place(infos, gpus, Duration{}));
    for (const policy::Placement& placement : placements) {
      const auto job = std::ranges::find(infos, placement.job, &policy::JobInfo::id);
      placed_[placement.gpu.index()].push_back({job->kind, *job});
      --unplaced_[job->kind];
    }
  }
  return {};
}

Result<void> Simulation::build_queue() {
  bool jobs = false;
  for (const auto& node : nodes_) {
    for (std::size_t i = 0; i < node->fillers.size(); ++i) {
      const bool worker = node->fillers[i]->mode == observe::FillerMode::kJobs;
      jobs = jobs || worker;
      if (!worker && !node->fillers[i]->admitted) {
        placement_->remove(placed_[node->id.index()][i].job, node->id);
      }
    }
  }
  if (unified_memory_) placement_->allow_oversubscription();
  BUBBLESIM_RETURN_IF_ERROR(placement_->check_memory(Duration{}));
  if (!jobs) return {};
  static const std::vector<FillerProfile> kNotMeasured;
  queue_ = std::make_unique<FillQueue>(
      conductor_.shared(), loaded_.config,
      scenario_.profiles != nullptr ? *scenario_.profiles : kNotMeasured,
      *placement_, next_job_, scenario_.timeline);
  for (const auto& node : nodes_) {
    for (const auto& instance : node->fillers) {
      const bool worker = instance->mode == observe::FillerMode::kJobs;
      if (worker && instance->admitted) queue_->add_worker(*instance);
    }
  }
  return {};
}

}  // namespace bubblesim::run
