#include "sim/validate/pipeline_case.hpp"

#include <algorithm>

#include "sim/model/model_file.hpp"
#include "sim/pipeline/closed_form.hpp"
#include "sim/synth/plan_file.hpp"
#include "sim/validate/predict.hpp"

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

CheckedResult<double> iteration_seconds(const std::string& model, const std::string& cluster,
                                        const std::string& plan, const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(const synth::PlanSpec spec, synth::parse_plan(plan, "plan"));
  BUBBLESIM_ASSIGN_OR_RETURN(const Testbed machine, find_machine(configs, cluster, spec.software));
  synth::JobRequest request = request_on(machine);
  BUBBLESIM_ASSIGN_OR_RETURN(request.model, model::find_model(model, configs + "/models"));
  request.plan = spec;
  BUBBLESIM_ASSIGN_OR_RETURN(const synth::ParallelPlan job, synth::plan_job(request));
  BUBBLESIM_ASSIGN_OR_RETURN(const double seconds, seconds_of(job));
  return seconds;
}

}  // namespace bubblesim::validate
