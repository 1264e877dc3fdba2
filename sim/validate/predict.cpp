#include "sim/validate/predict.hpp"

#include <optional>
#include <utility>

#include "sim/base/time.hpp"
#include "sim/hardware/cluster_spec_file.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency_file.hpp"
#include "sim/synth/lone_iteration.hpp"
#include "sim/synth/plan_check.hpp"
#include "sim/synth/software_file.hpp"
#include "sim/synth/synthesise.hpp"

namespace bubblesim::validate {
namespace {

constexpr std::uint32_t kLargestMicroBatch = 16;

synth::JobRequest request_of(const TrainingRow& row, const Machine& machine) {
  synth::JobRequest out;
  out.model = model::gpt(row.hidden, row.layers, row.heads, row.vocabulary, row.sequence);
  out.plan = row.plan;
  const std::uint32_t size = machine.cluster.gpus_per_node;
  out.cluster = hardware::with_nodes(machine.cluster, (row.gpus + size - 1) / size);
  out.gpu = machine.gpu;
  out.efficiency = machine.efficiency;
  out.software = machine.software;
  return out;
}

Result<double> seconds_of(const synth::JobPlan& plan) {
  const synth::SynthesisedJob job = synth::synthesise(plan);
  BUBBLESIM_ASSIGN_OR_RETURN(const synth::LoneIteration alone,
                             synth::time_alone(job.program, plan.request.gpu));
  return to_seconds(alone.time);
}

Error first_of(Errors errors) { return std::move(errors.front()); }

// Where a source is silent on the micro-batch, its authors will have used the fastest that fits.
Result<Prediction> predict_best(const TrainingRow& row, const Machine& machine) {
  std::optional<Prediction> best;
  Error last;
  for (std::uint32_t size = 1; size <= kLargestMicroBatch; size *= 2) {
    synth::JobRequest request = request_of(row, machine);
    request.plan.micro_batch = size;
    auto plan = synth::plan_job(std::move(request));
    if (!plan) {
      last = first_of(std::move(plan).error());
      continue;
    }
    BUBBLESIM_ASSIGN_OR_RETURN(const double seconds, seconds_of(*plan));
    if (!best || seconds < best->seconds) best = Prediction{seconds, 0, size};
  }
  if (!best) return tl::make_unexpected(std::move(last));
  return *best;
}

}  // namespace

CheckedResult<Machine> find_machine(const std::string& configs, const std::string& cluster,
                                    const std::string& software) {
  Machine out;
  BUBBLESIM_ASSIGN_OR_RETURN(out.cluster,
                             hardware::find_cluster_spec(cluster, configs + "/clusters"));
  BUBBLESIM_ASSIGN_OR_RETURN(
      out.gpu, hardware::find_gpu_spec(out.cluster.device, configs + "/devices"));
  BUBBLESIM_ASSIGN_OR_RETURN(
      out.efficiency, model::find_efficiency(out.cluster.device, configs + "/efficiency"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.software,
                             synth::find_software(software, configs + "/software"));
  return out;
}

Result<Prediction> predict(const TrainingRow& row, const Machine& machine) {
  Prediction out;
  if (row.plan.micro_batch == 0) {
    BUBBLESIM_ASSIGN_OR_RETURN(out, predict_best(row, machine));
  } else {
    auto plan = synth::plan_without_memory(request_of(row, machine));
    if (!plan) return tl::make_unexpected(first_of(std::move(plan).error()));
    BUBBLESIM_ASSIGN_OR_RETURN(out.seconds, seconds_of(*plan));
    out.micro_batch = row.plan.micro_batch;
  }
  out.tflops_per_gpu = counted_flops(row) / out.seconds / row.gpus * 1e-12;
  return out;
}

}  // namespace bubblesim::validate
