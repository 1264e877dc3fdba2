#include "sim/run/load_training.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "sim/synth/find_job.hpp"
#include "sim/synth/synthesise.hpp"
#include "sim/workload/program_builder.hpp"

namespace bubblesim::run {
namespace {

constexpr const char* kPlanPlace = "/training/synth/plan";

tl::unexpected<Errors> one(Error fault) { return tl::unexpected<Errors>(Errors{std::move(fault)}); }

// What an iteration took when it was recorded, as a job that goes on repeats it: host and device
// are two stages of a pipeline, so the slower one sets the pace. The host's time is that of the
// marked iterations, the device's from the first start to the last end of what they launched. Mean
// over ranks; nothing if the trace marks no iterations.
std::optional<Duration> recorded_mean(const workload::JobProgram& job) {
  Duration total{};
  std::int64_t iterations = 0;
  for (const workload::Program& rank : job.ranks) {
    if (rank.counters.count("program_iterations_unmarked") > 0) return std::nullopt;
    Duration host{};
    for (const Duration time : rank.recorded_iterations) host += time;
    total += std::max(host, rank.recorded_device_span);
    iterations += rank.iterations;
  }
  if (iterations == 0) return std::nullopt;
  return total / iterations;
}

std::optional<Bytes> memory_of(const traces::RankTrace& rank, const RunConfig& config) {
  if (config.training.memory) return config.training.memory;
  std::uint64_t most = 0;
  for (const traces::MemorySample& sample : rank.memory) {
    most = std::max({most, sample.reserved_bytes, sample.allocated_bytes});
  }
  if (most == 0) return std::nullopt;
  return Bytes{most};
}

CheckedResult<void> check_numbers(const LoadedRun& loaded) {
  std::vector<std::uint32_t> numbers;
  for (const workload::Program& rank : loaded.training.ranks) numbers.push_back(rank.rank);
  // Numbers of a trace may be anything: its ranks are counted.
  Errors faults = loaded.config.training.synth
                      ? check_ranks(loaded.config, numbers)
                      : check_ranks(loaded.config, static_cast<std::uint32_t>(numbers.size()));
  if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
  return {};
}

CheckedResult<void> load_recorded(LoadedRun& loaded, const std::string& device_folder,
                                  const ProgressText& progress) {
  const RunConfig& config = loaded.config;
  auto trace = load_trace(config.training.traces, progress);
  if (!trace) return one(trace.error());
  auto device = device_of(trace->job, config.device, device_folder);
  if (!device) return tl::unexpected<Errors>(device.error());
  loaded.device = *device;
  auto job = workload::build_job_program(trace->job, loaded.device, {});
  if (!job) return one(job.error());
  loaded.training = std::move(*job);
  loaded.counters = trace->counters;
  loaded.counters.merge(loaded.training.counters);
  loaded.recorded_mean_iteration = recorded_mean(loaded.training);
  loaded.world_size = static_cast<std::uint32_t>(loaded.training.ranks.size());
  loaded.samples_per_iteration = config.training.samples_per_iteration;
  for (const traces::RankTrace& rank : trace->job.ranks) {
    loaded.rank_memory.push_back(memory_of(rank, config));
    if (!loaded.rank_memory.back()) loaded.counters.add(kMemoryUnknown);
  }
  return {};
}

// A plan that the config writes out has no file of its own: its faults are the config's.
tl::unexpected<Errors> faults_of_config(const RunConfig& config, Errors faults) {
  const bool inside = std::holds_alternative<synth::PlanSpec>(config.training.synth->plan);
  for (Error& fault : faults) {
    if (inside && fault.file.empty()) {
      fault.file = config.file;
      fault.place.insert(0, kPlanPlace);
    }
  }
  return tl::unexpected<Errors>(std::move(faults));
}

CheckedResult<void> load_synthesised(LoadedRun& loaded, const std::string& device_folder,
                                     const ProgressText& progress) {
  const RunConfig& config = loaded.config;
  if (progress) progress("synthesising the training job");
  synth::JobNames names = *config.training.synth;
  if (config.device) names.device = config.device;
  const std::string configs = std::filesystem::path(device_folder).parent_path().string();
  auto request = synth::find_job(names, configs);
  if (!request) return faults_of_config(config, request.error());
  const auto plan = synth::plan_job(*std::move(request));
  if (!plan) return faults_of_config(config, plan.error());
  loaded.device = plan->request.gpu;
  synth::SynthesisedJob job = synth::synthesise(*plan);
  loaded.training = std::move(job.program);
  loaded.counters = loaded.training.counters;
  loaded.world_size = job.world_size;
  loaded.fold = job.fold;
  loaded.samples_per_iteration = config.training.samples_per_iteration.value_or(job.samples);
  for (const synth::MemoryNeed& need : job.memory) {
    const Bytes peak{static_cast<std::uint64_t>(std::llround(need.total()))};
    loaded.rank_memory.emplace_back(config.training.memory.value_or(peak));
  }
  return {};
}

}  // namespace

CheckedResult<void> load_training(LoadedRun& loaded, const std::string& device_folder,
                                  const ProgressText& progress) {
  auto done = loaded.config.training.synth ? load_synthesised(loaded, device_folder, progress)
                                           : load_recorded(loaded, device_folder, progress);
  return done ? check_numbers(loaded) : done;
}

}  // namespace bubblesim::run
