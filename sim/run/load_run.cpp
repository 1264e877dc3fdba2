// Loads what a run config names.
#include <algorithm>
#include <variant>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/run/load_training.hpp"
#include "sim/run/model_filler.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/workload/kernel_table.hpp"
#include "sim/workload/program_builder.hpp"

namespace bubblesim::run {
namespace {

tl::unexpected<Errors> one(Error fault) { return tl::unexpected<Errors>(Errors{std::move(fault)}); }

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

CheckedResult<ModelFiller> load_filler(FillerConfig& filler, const hardware::GpuSpec& device,
                                       const std::string& device_folder,
                                       const ProgressText& progress) {
  if (std::holds_alternative<synth::InferenceNames>(filler.program)) {
    return load_model_filler(filler, device, device_folder);
  }
  if (std::holds_alternative<TrainProgram>(filler.program)) {
    return load_train_filler(filler, device, device_folder);
  }
  auto program = load_program(filler.program, device, device_folder, progress);
  if (!program) return one(program.error());
  return ModelFiller{*std::move(program), {}};
}

}  // namespace

CheckedResult<LoadedRun> load_run(const RunConfig& config, const std::string& device_folder,
                                  const ProgressText& progress) {
  LoadedRun loaded;
  loaded.config = config;
  auto training = load_training(loaded, device_folder, progress);
  if (!training) return tl::unexpected<Errors>(training.error());
  for (FillerConfig& filler : loaded.config.fillers) {
    auto made = load_filler(filler, loaded.device, device_folder, progress);
    if (!made) return tl::unexpected<Errors>(made.error());
    if (!filler.memory) loaded.counters.add(kMemoryUnknown);
    loaded.counters.merge(made->program.counters);
    loaded.fillers.push_back(std::move(made->program));
    loaded.tables.push_back(std::move(made->table));
  }
  return loaded;
}

}  // namespace bubblesim::run
