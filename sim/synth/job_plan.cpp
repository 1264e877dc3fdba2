#include "sim/synth/job_plan.hpp"

#include <algorithm>
#include <utility>

#include "sim/model/training_work.hpp"
#include "sim/pipeline/registry.hpp"
#include "sim/synth/plan_check.hpp"

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

tl::unexpected<Errors> faults(Error error) { return tl::make_unexpected(Errors{std::move(error)}); }

}  // namespace

CheckedResult<JobPlan> plan_without_memory(JobRequest request) {
  if (Errors errors = check_plan(request); !errors.empty()) {
    return tl::make_unexpected(std::move(errors));
  }
  const PlanSpec& plan = request.plan;
  auto made = schedule_of(plan);
  if (!made) return faults(std::move(made).error());
  auto work = model::training_work(request.model, split_of(plan), shape_of(request));
  if (!work) return faults(std::move(work).error());
  const KernelTimer timer(request.gpu, request.efficiency, request.software.slowdown);
  TimedModel timed = time_model(std::move(*work), timer, request.software.backward_exchanges);
  const std::uint32_t depth = model_stages(*made);
  auto layers = split_layers(timed, depth, plan.layers_per_stage);
  if (!layers) return faults(std::move(layers).error());

  std::vector<Stage> stages;
  for (std::uint32_t s = 0; s < made->schedule.stages; ++s) {
    stages.push_back({(*layers)[s % depth], made->schedule.rank_of_stage[s]});
  }
  RankGrid grid(plan, request.cluster);
  const std::uint32_t copies = made->schedule.stages / depth;
  return JobPlan{std::move(request), grid, std::move(made->schedule), std::move(made->graph),
                 std::move(timed), std::move(stages), copies};
}

CheckedResult<JobPlan> plan_job(JobRequest request) {
  BUBBLESIM_ASSIGN_OR_RETURN(JobPlan out, plan_without_memory(std::move(request)));
  if (Errors errors = check_memory(out); !errors.empty()) {
    return tl::make_unexpected(std::move(errors));
  }
  return out;
}

}  // namespace bubblesim::synth
