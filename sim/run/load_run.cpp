// Loads what a run config names.
#include <variant>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/run/model_filler.hpp"
#include "sim/run/run_inputs.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/workload/kernel_table.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/what_if.hpp"

namespace bubblesim::run {
namespace {

// Whether profilers call the device `recorded`.
bool is_named(const hardware::GpuSpec& device, const std::string& recorded,
              const std::string& device_folder) {
  if (recorded == device.name) return true;
  const auto devices = hardware::read_device_folder(device_folder);
  if (!devices) return false;
  const auto match = hardware::match_recorded_name(recorded, *devices);
  return match && (*match)->spec.name == device.name;
}

constexpr CounterSpec kOtherDevice{
    "filler_recorded_on_other_device", Severity::kLoss,
    "filler programs recorded on another GPU than the one simulated: their times are that GPU's, "
    "and so is all that a filler gains or costs here"};

constexpr CounterSpec kDeviceNotRecorded{
    "filler_device_not_recorded", Severity::kNotice,
    "filler programs whose recording does not name its GPU; their times are taken as those of the "
    "one simulated"};

Result<program::Program> load_program(const FillerProgram& source,
                                       const hardware::GpuSpec& device,
                                       const std::string& device_folder,
                                       const ProgressText& progress) {
  if (const auto* table = std::get_if<KernelTableProgram>(&source)) {
    return workload::read_kernel_table(table->path, device, table->launch_gap);
  }
  const auto& [path, host_speed] = std::get<TraceProgram>(source);
  BUBBLESIM_ASSIGN_OR_RETURN(LoadedTrace trace, load_trace({path}, progress));
  if (trace.job.ranks.size() != 1) {
    return fail(path, {}, "found " + std::to_string(trace.job.ranks.size()) +
                              " ranks, expected one: a filler's program is one rank's trace");
  }
  auto program = workload::build_program(trace.job.ranks.front(), device,
                                         {workload::Window::kMedianIteration});
  if (!program) return tl::unexpected<Error>(trace.located(program.error()));
  program->counters.merge(trace.counters);
  if (host_speed != 1) workload::speed_up_host(host_speed, *program);
  const std::string& recorded = trace.job.ranks.front().device.name;
  if (recorded.empty()) {
    program->counters.add(kDeviceNotRecorded);
  } else if (!is_named(device, recorded, device_folder)) {
    program->counters.add(kOtherDevice);
  }
  return program;
}

}  // namespace

CheckedResult<LoadedFiller> load_filler(const FillerConfig& filler, const hardware::GpuSpec& device,
                                        const std::string& device_folder,
                                        const ProgressText& progress) {
  if (std::holds_alternative<synth::InferenceNames>(filler.program)) {
    return load_model_filler(filler, device, device_folder);
  }
  if (std::holds_alternative<TrainProgram>(filler.program)) {
    return load_train_filler(filler, device, device_folder);
  }
  BUBBLESIM_ASSIGN_OR_RETURN(auto program,
                             load_program(filler.program, device, device_folder, progress));
  return LoadedFiller{std::move(program)};
}

void add_filler(LoadedRun& run, Shared<LoadedFiller> filler) {
  FillerConfig& config = run.config.fillers[run.fillers.size()];
  if (!config.memory) config.memory = filler->memory;
  if (!config.memory) run.counters.add(kMemoryUnknown);
  if (filler->memory && *config.memory < *filler->memory) run.counters.add(kMemoryBelowModel);
  run.counters.merge(filler->program.counters);
  run.fillers.push_back(std::move(filler));
}

CheckedResult<LoadedRun> load_run(const RunConfig& config, const std::string& device_folder,
                                  const ProgressText& progress, std::size_t threads) {
  BUBBLESIM_ASSIGN_OR_RETURN(LoadedTraining training,
                             load_training(config, device_folder, progress, threads));
  BUBBLESIM_ASSIGN_OR_RETURN(
      LoadedRun loaded,
      assemble_run(config, std::make_shared<const LoadedTraining>(std::move(training)),
                   device_folder));
  for (const FillerConfig& filler : config.fillers) {
    BUBBLESIM_ASSIGN_OR_RETURN(LoadedFiller inputs,
                               load_filler(filler, loaded.device, device_folder, progress));
    add_filler(loaded, std::move(inputs));
  }
  return loaded;
}

}  // namespace bubblesim::run
