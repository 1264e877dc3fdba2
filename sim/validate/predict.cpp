#include "sim/validate/predict.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

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

/// What a source may be silent on.
struct Sizes {
  std::uint32_t micro_batch = 1;
  std::uint32_t chunks = 0;  ///< 0: as the plan says
};

// Where layers divide over the stages but for two: one fewer in the first and in the last stage.
std::vector<std::uint32_t> short_ends(std::uint32_t layers, std::uint32_t stages) {
  if (stages < 2 || layers % stages == 0 || (layers + 2) % stages != 0) return {};
  std::vector<std::uint32_t> out(stages, (layers + 2) / stages);
  --out.front();
  --out.back();
  return out;
}

synth::JobRequest request_of(const TrainingRow& row, const Testbed& machine, Sizes sizes) {
  synth::JobRequest out = request_on(machine);
  out.model = network_of(row);
  out.plan = row.plan;
  out.plan.micro_batch = sizes.micro_batch;
  if (sizes.chunks > 0) {
    out.plan.chunks = sizes.chunks;
    out.plan.schedule = sizes.chunks > 1 ? "interleaved" : "1f1b";
  }
  const std::uint32_t stages = row.plan.pipeline * std::max(out.plan.chunks, 1U);
  if (out.plan.layers_per_stage.empty()) out.plan.layers_per_stage = short_ends(row.layers, stages);
  const std::uint32_t size = machine.cluster.gpus_per_node;
  out.cluster = hardware::with_nodes(machine.cluster, (row.gpus + size - 1) / size);
  return out;
}

Error first_of(Errors errors) { return std::move(errors.front()); }

std::vector<std::uint32_t> chunk_counts(const TrainingRow& row) {
  if (!row.chunks_unknown) return {0};
  const std::uint32_t depth = row.plan.pipeline;
  const std::uint32_t layers = row.layers % depth == 0 ? row.layers : row.layers + 2;
  std::vector<std::uint32_t> out{1};
  for (std::uint32_t chunks = 2; layers % depth == 0 && chunks <= layers / depth; ++chunks) {
    if (layers / depth % chunks == 0) out.push_back(chunks);
  }
  return out;
}

std::vector<Sizes> candidates(const TrainingRow& row) {
  std::vector<Sizes> out;
  for (const std::uint32_t chunks : chunk_counts(row)) {
    if (row.plan.micro_batch > 0) {
      out.push_back({row.plan.micro_batch, chunks});
      continue;
    }
    for (std::uint32_t size = 1; size <= kLargestMicroBatch; size *= 2) {
      out.push_back({size, chunks});
    }
  }
  return out;
}

Result<Prediction> predict_as_given(const TrainingRow& row, const Testbed& machine) {
  auto plan = synth::plan_without_memory(request_of(row, machine, {row.plan.micro_batch, 0}));
  if (!plan) return tl::make_unexpected(first_of(std::move(plan).error()));
  BUBBLESIM_ASSIGN_OR_RETURN(const double seconds, seconds_of(*plan));
  return Prediction{seconds, 0, row.plan.micro_batch, std::max(row.plan.chunks, 1U)};
}

// Where a source is silent, its authors will have used the fastest that fits. Plans that cannot
// be made are no candidates; if none can, a micro-batch that is given did run, of one chunk.
Result<Prediction> predict_best(const TrainingRow& row, const Testbed& machine) {
  std::optional<Prediction> best;
  Error last;
  for (const Sizes sizes : candidates(row)) {
    auto plan = synth::plan_job(request_of(row, machine, sizes));
    if (!plan) {
      last = first_of(std::move(plan).error());
      continue;
    }
    BUBBLESIM_ASSIGN_OR_RETURN(const double seconds, seconds_of(*plan));
    if (best && best->seconds <= seconds) continue;
    best = Prediction{seconds, 0, sizes.micro_batch,
                      std::max({sizes.chunks, row.plan.chunks, 1U})};
  }
  if (best) return *best;
  if (row.plan.micro_batch > 0) return predict_as_given(row, machine);
  return tl::make_unexpected(std::move(last));
}

}  // namespace

CheckedResult<Testbed> find_machine(const std::string& configs, const std::string& cluster,
                                    const std::string& software) {
  Testbed out;
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

synth::JobRequest request_on(const Testbed& machine) {
  synth::JobRequest out;
  out.cluster = machine.cluster;
  out.gpu = machine.gpu;
  out.efficiency = machine.efficiency;
  out.software = machine.software;
  return out;
}

Result<double> seconds_of(const synth::ParallelPlan& plan) {
  const synth::SynthesisedJob job = synth::synthesise(plan);
  BUBBLESIM_ASSIGN_OR_RETURN(const synth::LoneIteration alone,
                             synth::time_alone(job.program, plan.request.gpu));
  return to_seconds(alone.time);
}

Result<Prediction> predict(const TrainingRow& row, const Testbed& machine) {
  const bool searched = row.plan.micro_batch == 0 || row.chunks_unknown;
  BUBBLESIM_ASSIGN_OR_RETURN(
      Prediction out, searched ? predict_best(row, machine) : predict_as_given(row, machine));
  out.tflops_per_gpu = counted_flops(row) / out.seconds / row.gpus * 1e-12;
  return out;
}

}  // namespace bubblesim::validate
