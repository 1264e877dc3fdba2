#include "sim/synth/job_plan.hpp"

#include <map>
#include <string_view>
#include <utility>
#include <variant>

#include "sim/model/training_work.hpp"
#include "sim/pipeline/registry.hpp"
#include "sim/synth/graph_stages.hpp"
#include "sim/synth/plan_check.hpp"
#include "sim/synth/tensor_overlap.hpp"

namespace bubblesim::synth {
namespace {

model::Split split_of(const PlanSpec& plan) {
  model::Split split;
  split.tensor = plan.tensor;
  split.context = plan.context;
  split.expert = plan.expert;
  split.sequence_parallel = plan.sequence_parallel;
  split.expert_load = plan.expert_load;
  return split;
}

model::TrainingShape shape_of(const JobRequest& request) {
  const PlanSpec& plan = request.plan;
  model::TrainingShape shape;
  shape.micro_batch = plan.micro_batch;
  shape.sequence = plan.sequence.value_or(0);
  shape.precision = plan.precision;
  shape.recompute = plan.recompute;
  shape.attention = plan.attention;
  shape.logits = request.software.logits;
  shape.gradients = plan.optimizer.gradients;
  return shape;
}

// DualPipe's and Chimera's second direction holds the same layers as the first.
std::uint32_t model_stages(const pipeline::PlannedSchedule& made) {
  const std::uint32_t stages = made.schedule.stages;
  const bool two_way = stages % 2 == 0 && made.schedule.micro_batches % 2 == 0 &&
                       made.graph == pipeline::two_way_graph(stages / 2,
                                                             made.schedule.micro_batches);
  return two_way ? stages / 2 : stages;
}

// The load of the busiest expert rank, as the routing has it. Split faults are training_work()'s.
Result<void> route(JobRequest& request) {
  if (!request.plan.routing) return {};
  const auto* transformer = std::get_if<model::TransformerSpec>(&request.model.network);
  if (transformer == nullptr || !transformer->mixture) {
    return fail({}, "/routing", request.model.name + " has no experts");
  }
  const std::uint32_t experts = transformer->mixture->experts;
  if (request.plan.expert == 0 || experts % request.plan.expert != 0) return {};
  BUBBLESIM_ASSIGN_OR_RETURN(
      request.plan.expert_load,
      busiest_load(*request.plan.routing, experts, request.plan.expert));
  return {};
}

// Faults of other rooms know neither the plan's name nor, mostly, the place.
tl::unexpected<Errors> faults(const PlanSpec& plan, Error error, std::string_view place = {}) {
  if (error.file.empty()) error.file = plan.name;
  if (error.place.empty()) error.place = place;
  return tl::make_unexpected(Errors{std::move(error)});
}

// Stages with larger micro-batches have kinds of layers of their own.
Result<void> enlarge(const JobRequest& request, const std::vector<StageLayers>& layers,
                     const KernelTimer& timer, TimedModel& model) {
  std::map<std::uint32_t, std::uint32_t> first_kind{{1, 0}};
  for (std::size_t s = 0; s < request.plan.stages.size(); ++s) {
    const std::uint32_t factor = request.plan.stages[s].micro_batch;
    if (!first_kind.contains(factor)) {
      model::TrainingShape shape = shape_of(request);
      shape.micro_batch *= factor;
      BUBBLESIM_ASSIGN_OR_RETURN(
          model::ModelWork work,
          model::training_work(request.model, split_of(request.plan), shape));
      first_kind[factor] = append_kinds(model, std::move(work), timer,
                                        request.software.backward_exchanges);
    }
    for (std::uint32_t i = layers[s].first; i < layers[s].last; ++i) {
      model.work.layers[i] += first_kind[factor];
    }
  }
  return {};
}

// Both parts of a micro-batch whose exchanges run beside compute have kinds of layers of their own.
Result<std::vector<std::uint32_t>> part_layers(const JobRequest& request, const KernelTimer& timer,
                                          TimedModel& model) {
  std::vector<std::uint32_t> kinds;
  const auto& overlap = request.plan.tensor_overlap;
  if (!overlap) return kinds;
  const std::uint32_t whole = request.plan.micro_batch;
  const std::uint32_t first = overlap->first > 0 ? overlap->first : whole / 2;
  for (const std::uint32_t samples : {first, whole - first}) {
    model::TrainingShape shape = shape_of(request);
    shape.micro_batch = samples;
    BUBBLESIM_ASSIGN_OR_RETURN(
        model::ModelWork work,
        model::training_work(request.model, split_of(request.plan), shape));
    if (overlap->fused_norm) fuse_norms(work);
    kinds.push_back(append_kinds(model, std::move(work), timer,
                                 request.software.backward_exchanges));
  }
  return kinds;
}

Result<std::vector<StageLayers>> layers_of(const JobRequest& request, const TimedModel& model,
                                           std::uint32_t depth) {
  if (!request.plan.stages.empty()) {
    return graph_layers(request.plan, request.model, model.work);
  }
  return split_layers(model, depth, request.plan.layers_per_stage);
}

}  // namespace

CheckedResult<ParallelPlan> plan_without_memory(JobRequest request) {
  if (Errors errors = check_plan(request); !errors.empty()) {
    return tl::make_unexpected(std::move(errors));
  }
  const PlanSpec& plan = request.plan;
  if (auto done = route(request); !done) return faults(plan, std::move(done).error());
  auto made = schedule_of(plan);
  if (!made) return faults(plan, std::move(made).error(), "/schedule");
  auto work = model::training_work(request.model, split_of(plan), shape_of(request));
  if (!work) return faults(plan, std::move(work).error());
  const KernelTimer timer(request.gpu, request.efficiency, request.software.slowdown);
  TimedModel timed = time_model(std::move(*work), timer, request.software.backward_exchanges);
  const std::uint32_t depth = model_stages(*made);
  auto layers = layers_of(request, timed, depth);
  if (!layers) {
    return faults(plan, std::move(layers).error(), plan.stages.empty() ? "/pipeline" : "/stages");
  }
  if (auto done = enlarge(request, *layers, timer, timed); !done) {
    return faults(plan, std::move(done).error(), "/stages");
  }
  auto parts = part_layers(request, timer, timed);
  if (!parts) return faults(plan, std::move(parts).error(), "/tensor_overlap");
  std::vector<StageLayers> by_stage;
  for (std::uint32_t s = 0; s < made->schedule.stages; ++s) {
    by_stage.push_back((*layers)[s % depth]);
  }
  auto sent = sent_bytes(made->graph, by_stage, timed.work);
  if (!sent) return faults(plan, std::move(sent).error());
  std::vector<Stage> stages;
  for (std::uint32_t s = 0; s < made->schedule.stages; ++s) {
    stages.push_back({by_stage[s], made->schedule.rank_of_stage[s], std::move((*sent)[s])});
  }
  RankGrid grid(plan, request.cluster);
  const std::uint32_t copies = made->schedule.stages / depth;
  return ParallelPlan{std::move(request), grid, std::move(made->schedule), std::move(made->graph),
                 std::move(timed), std::move(stages), copies, std::move(*parts)};
}

CheckedResult<ParallelPlan> plan_job(JobRequest request) {
  BUBBLESIM_ASSIGN_OR_RETURN(ParallelPlan out, plan_without_memory(std::move(request)));
  if (Errors errors = check_memory(out); !errors.empty()) {
    return tl::make_unexpected(std::move(errors));
  }
  return out;
}

}  // namespace bubblesim::synth
