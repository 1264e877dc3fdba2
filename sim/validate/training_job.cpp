#include "sim/validate/training_job.hpp"

#include <algorithm>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/synth/job_plan.hpp"
#include "sim/synth/plan_file.hpp"
#include "sim/synth/synthesise.hpp"

namespace bubblesim::validate {
namespace {

bool equals(const pipeline::Execution& run, const pipeline::ClosedForm& form) {
  const bool bubble =
      form.measure == pipeline::BubbleMeasure::kSpan
          ? run.span_bubble() == form.bubble
          : std::all_of(run.idle.begin(), run.idle.end(),
                        [&](std::int64_t idle) { return idle == form.bubble; });
  return bubble && run.peak_activations == form.peaks;
}

}  // namespace

CheckedResult<Testbed> find_testbed(const std::string& configs, const std::string& cluster,
                                    const std::string& software) {
  Testbed out;
  BUBBLESIM_ASSIGN_OR_RETURN(out.cluster,
                             hardware::find_cluster_spec(cluster, configs + "/clusters"));
  BUBBLESIM_ASSIGN_OR_RETURN(
      out.gpu, hardware::find_gpu_spec(out.cluster.device, configs + "/devices"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.efficiency, model::device_efficiency(out.gpu, configs));
  BUBBLESIM_ASSIGN_OR_RETURN(out.software,
                             synth::find_software(software, configs + "/software"));
  return out;
}

CheckedResult<synth::PlanSpec> plan_of(const std::string& text, const std::string& label,
                                       const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(text, label));
  return read_whole(document, [&](ObjectReader& root) {
    synth::PlanSpec plan = synth::read_plan(root, folder);
    root.finish();
    plan.name = label;
    return plan;
  });
}

CheckedResult<double> iteration_seconds(const Testbed& machine, const model::ModelSpec& model,
                                        const synth::PlanSpec& plan, std::uint32_t gpus,
                                        MemoryCheck check) {
  synth::JobRequest request;
  request.model = model;
  request.plan = plan;
  request.cluster = machine.cluster;
  const std::uint32_t size = machine.cluster.gpus_per_node;
  if (gpus > 0) request.cluster = hardware::with_nodes(machine.cluster, (gpus + size - 1) / size);
  request.gpu = machine.gpu;
  request.efficiency = machine.efficiency;
  request.software = machine.software;
  BUBBLESIM_ASSIGN_OR_RETURN(
      const synth::ParallelPlan job,
      check == MemoryCheck::kMade ? synth::plan_job(request) : synth::plan_without_memory(request));
  const synth::SynthesisedJob made = synth::synthesise(job);
  BUBBLESIM_ASSIGN_OR_RETURN(const synth::LoneIteration alone,
                             synth::time_alone(made.program, machine.gpu));
  return to_seconds(alone.time);
}

ClosedFormCases closed_form_cases(const std::string& schedule,
                                  const pipeline::ScheduleRequest& request,
                                  std::span<const pipeline::StageTimes> times) {
  ClosedFormCases out;
  const auto made = pipeline::make_schedule(schedule, request);
  if (!made) return out;
  for (const pipeline::StageTimes& stage : times) {
    pipeline::UnitTimes unit;
    unit.every_stage = stage;
    const auto form = pipeline::closed_form(schedule, request, unit);
    if (!form) continue;
    ++out.cases;
    if (equals(pipeline::execute(made->schedule, made->graph, unit), *form)) ++out.equal;
  }
  return out;
}

Result<std::int64_t> graph_makespan(
    std::uint32_t stages, std::uint32_t micro_batches,
    const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges) {
  std::vector<pipeline::StageEdge> joined;
  for (const auto& [producer, consumer] : edges) joined.push_back({producer, consumer});
  pipeline::ScheduleRequest request;
  request.ranks = stages;
  request.micro_batches = micro_batches;
  BUBBLESIM_ASSIGN_OR_RETURN(request.graph,
                             pipeline::make_stage_graph(stages, joined, {}, micro_batches));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto made, pipeline::make_schedule("graph", request));
  return pipeline::execute(made.schedule, made.graph, pipeline::UnitTimes{}).makespan;
}

}  // namespace bubblesim::validate
