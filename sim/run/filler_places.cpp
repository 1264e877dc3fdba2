#include "sim/run/filler_places.hpp"

#include <algorithm>
#include <numeric>
#include <string>

namespace bubblesim::run {
namespace {

policy::GpuState state_of(GpuId id, Bytes memory, const schedule::BubbleTable* bubbles,
                          std::uint32_t iterations) {
  policy::GpuState state;
  state.id = id;
  state.memory = memory;
  if (bubbles == nullptr) return state;
  for (const policy::MeasuredBubble& bubble : *bubbles) {
    const policy::BubbleInfo& info = bubble.info;
    state.bubble_time += info.expected;
    if (info.pipeline) state.pipeline_time += info.expected;
    if (info.free_memory == Bytes{}) continue;
    state.bubble_memory = state.bubble_memory == Bytes{}
                              ? info.free_memory
                              : std::min(state.bubble_memory, info.free_memory);
  }
  const auto per_pass = static_cast<std::int64_t>(std::max(1U, iterations));
  state.bubble_time /= per_pass;
  state.pipeline_time /= per_pass;
  return state;
}

std::vector<policy::GpuState> gpu_states(const LoadedRun& loaded, const RunScenario& scenario) {
  std::vector<policy::GpuState> states;
  for (std::uint32_t gpu = 0; gpu < loaded.training->ranks.size(); ++gpu) {
    const schedule::BubbleTable* bubbles =
        scenario.bubbles == nullptr ? nullptr : &(*scenario.bubbles)[gpu];
    states.push_back(state_of(GpuId{gpu}, loaded.device.memory, bubbles,
                              loaded.training->ranks[gpu].iterations));
    if (!scenario.training) continue;
    states.back().used = loaded.memory_of(gpu).value_or(Bytes{});
    states.back().iteration = scenario.iteration;
  }
  return states;
}

std::string name_of(const policy::PolicySpec* policy) {
  return policy == nullptr ? "" : policy->name;
}

std::unique_ptr<policy::Placer> placer_of(const RunScenario& scenario) {
  if (scenario.policy == nullptr || !scenario.policy->make_placer) return nullptr;
  return scenario.policy->make_placer(*scenario.parameters);
}

}  // namespace

FillerPlaces::FillerPlaces(const LoadedRun& loaded, const RunScenario& scenario)
    : loaded_(loaded),
      scenario_(scenario),
      cluster_(name_of(scenario.policy), placer_of(scenario), gpu_states(loaded, scenario)),
      placed_(loaded.training->ranks.size()),
      unplaced_(loaded.config.fillers.size()) {}

observe::FillerMode FillerPlaces::mode_of(std::uint32_t filler) const {
  const observe::FillerMode mode = loaded_.config.fillers[filler].mode;
  const bool alone = !scenario_.training && mode == observe::FillerMode::kJobs;
  return alone ? observe::FillerMode::kOffline : mode;
}

std::vector<std::uint32_t> FillerPlaces::gpus_of(std::uint32_t filler) const {
  const FillerConfig& config = loaded_.config.fillers[filler];
  std::vector<std::uint32_t> gpus(loaded_.training->ranks.size());
  std::iota(gpus.begin(), gpus.end(), 0U);
  if (config.gpus) gpus = *config.gpus;
  std::size_t most = gpus.size();
  if (config.instances && !cluster_.has_placer()) most = *config.instances;
  if (!scenario_.training && config.mode == observe::FillerMode::kJobs) most = 1;
  gpus.resize(std::min(gpus.size(), most));
  return gpus;
}

Result<void> FillerPlaces::decide() {
  std::vector<policy::JobInfo> waiting;
  for (const std::uint32_t filler : scenario_.fillers) {
    const FillerConfig& config = loaded_.config.fillers[filler];
    policy::JobInfo next = job_of(filler, config);
    if (config.instances && cluster_.has_placer()) {
      for (std::uint32_t i = 0; i < *config.instances; ++i) {
        next.id = next_job_++;
        waiting.push_back(next);
      }
      continue;
    }
    const bool queue = mode_of(filler) == observe::FillerMode::kJobs;
    if (queue) cluster_.add_worker_kind(filler);
    for (const std::uint32_t gpu : gpus_of(filler)) {
      next.id = next_job_++;
      placed_[gpu].push_back(next);
      if (!queue) cluster_.add_fixed(next, GpuId{gpu});
    }
  }
  return place_instances(waiting);
}

// Fillers that may use the same GPUs are asked for together.
Result<void> FillerPlaces::place_instances(const std::vector<policy::JobInfo>& waiting) {
  for (const policy::JobInfo& instance : waiting) ++unplaced_[instance.kind];
  std::vector<std::vector<std::uint32_t>> asked;
  for (const policy::JobInfo& first : waiting) {
    const std::vector<std::uint32_t> gpus = gpus_of(first.kind);
    if (std::ranges::find(asked, gpus) != asked.end()) continue;
    asked.push_back(gpus);
    std::vector<policy::JobInfo> infos;
    for (const policy::JobInfo& instance : waiting) {
      if (gpus_of(instance.kind) == gpus) infos.push_back(instance);
    }
    BUBBLESIM_ASSIGN_OR_RETURN(const auto placements, cluster_.place(infos, gpus, Duration{}));
    for (const policy::Placement& placement : placements) {
      const auto job = std::ranges::find(infos, placement.job, &policy::JobInfo::id);
      placed_[placement.gpu.index()].push_back(*job);
      --unplaced_[job->kind];
    }
  }
  return {};
}

void FillerPlaces::refuse(GpuId gpu, std::size_t place) {
  cluster_.remove(placed_[gpu.index()][place], gpu);
}

}  // namespace bubblesim::run
