// Loads what a run config names.
#include <algorithm>
#include <variant>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/workload/kernel_table.hpp"
#include "sim/workload/program_builder.hpp"

namespace bubblesim::run {
namespace {

constexpr CounterSpec kMemoryUnknown{
    "run_memory_unknown", Severity::kNotice,
    "ranks and fillers whose memory neither config nor trace gives: admission takes them as "
    "fitting"};

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

// Whether profilers call the device `recorded`.
bool is_named(const hardware::GpuSpec& device, const std::string& recorded,
              const std::string& device_folder) {
  const auto devices = hardware::read_device_folder(device_folder);
  if (!devices) return recorded == device.name;
  const auto match = hardware::match_recorded_name(recorded, *devices);
  return match && (*match)->spec.name == device.name;
}

constexpr CounterSpec kOtherDevice{
    "filler_recorded_on_other_device", Severity::kNotice,
    "filler programs recorded on another GPU than the one simulated; their times are taken as "
    "they are"};

std::optional<Bytes> memory_of(const traces::RankTrace& rank, const RunConfig& config) {
  if (config.training.memory) return config.training.memory;
  std::uint64_t most = 0;
  for (const traces::MemorySample& sample : rank.memory) {
    most = std::max({most, sample.reserved_bytes, sample.allocated_bytes});
  }
  if (most == 0) return std::nullopt;
  return Bytes{most};
}

Result<workload::Program> load_program(const FillerProgram& source,
                                       const hardware::GpuSpec& device,
                                       const std::string& device_folder,
                                       const ProgressText& progress) {
  if (const auto* table = std::get_if<KernelTableProgram>(&source)) {
    return workload::read_kernel_table(table->path, device, table->launch_gap);
  }
  const std::string& path = std::get<TraceProgram>(source).path;
  BUBBLESIM_ASSIGN_OR_RETURN(LoadedTrace trace, load_trace({path}, progress));
  if (trace.job.ranks.size() != 1) {
    return fail(path, {}, "found " + std::to_string(trace.job.ranks.size()) +
                              " ranks, expected one: a filler's program is one rank's trace");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(workload::Program program,
                             workload::build_program(trace.job.ranks.front(), device,
                                                     {workload::Window::kMedianIteration}));
  if (!is_named(device, trace.job.ranks.front().device.name, device_folder)) {
    program.counters.add(kOtherDevice);
  }
  return program;
}

}  // namespace

CheckedResult<LoadedRun> load_run(const RunConfig& config, const std::string& device_folder,
                                  const ProgressText& progress) {
  LoadedRun loaded;
  loaded.config = config;
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
  const Errors faults =
      check_ranks(config, static_cast<std::uint32_t>(loaded.training.ranks.size()));
  if (!faults.empty()) return tl::unexpected<Errors>(faults);
  for (const traces::RankTrace& rank : trace->job.ranks) {
    loaded.rank_memory.push_back(memory_of(rank, config));
    if (!loaded.rank_memory.back()) loaded.counters.add(kMemoryUnknown);
  }
  for (const FillerConfig& filler : config.fillers) {
    if (!filler.memory) loaded.counters.add(kMemoryUnknown);
    auto program = load_program(filler.program, loaded.device, device_folder, progress);
    if (!program) return one(program.error());
    loaded.counters.merge(program->counters);
    loaded.fillers.push_back(std::move(*program));
  }
  return loaded;
}

}  // namespace bubblesim::run
