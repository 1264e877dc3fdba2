#include "sim/synth/job_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "sim/model/layer_work.hpp"
#include "sim/model/training_work.hpp"
#include "sim/pipeline/registry.hpp"
#include "sim/synth/expert_routing.hpp"
#include "sim/synth/plan_check.hpp"

namespace bubblesim::synth {
namespace {

// Norms as part of the exchange before them, as TokenWeave's kernel does both (arXiv 2505.11329,
// section 4: reduce-scatter, the residual's sum and RMSNorm of a rank's own tokens, all-gather).

using model::Communication;
using model::KernelWork;
using model::WorkItem;

bool is_transformer_block(const model::LayerWork& layer) {
  return layer.kind == "block" || layer.kind == "expert block";
}

bool is_tensor_reduction(const WorkItem& item) {
  const auto* exchange = std::get_if<Communication>(&item);
  return exchange != nullptr && exchange->axis == model::ParallelAxis::kTensor &&
         exchange->exchange == model::Exchange::kAllReduce;
}

// The work of a kernel that can be part of the exchange before it; null: it cannot.
const KernelWork* fusible(const WorkItem& item) {
  const auto* kernel = std::get_if<KernelWork>(&item);
  if (kernel == nullptr) return nullptr;
  const bool streams = kernel->kind == model::KernelKind::kElementwise ||
                       kernel->kind == model::KernelKind::kNormalisation;
  return streams ? kernel : nullptr;
}

void fuse(std::vector<WorkItem>& items, double next_norm) {
  std::vector<WorkItem> out;
  for (WorkItem& item : items) {
    const KernelWork* kernel = fusible(item);
    if (kernel != nullptr && !out.empty() && is_tensor_reduction(out.back())) {
      std::get<Communication>(out.back()).fused_bytes += kernel->bytes;
    } else {
      out.push_back(std::move(item));
    }
  }
  if (!out.empty() && is_tensor_reduction(out.back())) {
    std::get<Communication>(out.back()).fused_bytes += next_norm;
  }
  items = std::move(out);
}

// Takes the residual's sum and the norm that follow an all-reduce of a block's forward pass out of
// the layer and adds their bytes to Communication::fused_bytes. The last exchange of a block has
// the norm fused into it with which the next layer begins; that layer keeps the norm in its list,
// as the first one of a stage needs it. Backward passes stay as they are.
void fuse_norms(model::ModelWork& work) {
  for (model::LayerWork& layer : work.kinds) {
    if (!is_transformer_block(layer)) continue;
    const double norm =
        begins_with_norm(layer) ? std::get<KernelWork>(layer.forward.front()).bytes : 0;
    fuse(layer.forward, norm);
    fuse(layer.recompute, 0);
  }
}

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
  return {.micro_batch = plan.micro_batch,
          .sequence = plan.sequence.value_or(0),
          .precision = plan.precision,
          .recompute = plan.recompute,
          .attention = plan.attention,
          .gradients = plan.optimizer.gradients,
          .logits = request.software.logits,
          .fused_softmax = request.software.fused_softmax};
}

// DualPipe's and Chimera's second direction holds the same layers as the first.
std::uint32_t model_stages(const pipeline::PlannedSchedule& made) {
  const std::uint32_t stages = made.schedule.stages;
  const bool two_way = stages % 2 == 0 && made.schedule.micro_batches % 2 == 0 &&
                       made.graph == pipeline::two_way_graph(stages / 2,
                                                             made.schedule.micro_batches);
  return two_way ? stages / 2 : stages;
}

// Loads of the ranks that share out the experts; the busiest one's becomes the plan's. Faults of a
// split that does not divide the experts are training_work()'s.
Result<std::vector<double>> route(JobRequest& request) {
  PlanSpec& plan = request.plan;
  if (!plan.routing) return loads_beside(plan.expert_load, plan.expert);
  const auto* transformer = std::get_if<model::TransformerSpec>(&request.model.network);
  if (transformer == nullptr || !transformer->mixture) {
    return fail({}, "/routing", request.model.name + " has no experts");
  }
  if (plan.routing->shares_csv) {
    BUBBLESIM_ASSIGN_OR_RETURN(plan.routing->shares, read_shares(*plan.routing->shares_csv));
  }
  const std::uint32_t experts = transformer->mixture->experts;
  if (experts % plan.expert != 0) return loads_beside(1, plan.expert);
  BUBBLESIM_ASSIGN_OR_RETURN(std::vector<double> loads,
                             rank_loads(*plan.routing, experts, plan.expert));
  plan.expert_load = busiest_load(loads);
  return loads;
}

// Faults of other rooms know neither the plan's name nor, mostly, the place.
tl::unexpected<Errors> faults(const PlanSpec& plan, Error error, std::string_view place = {}) {
  if (error.file.empty()) error.file = plan.name;
  if (error.place.empty()) error.place = place;
  return tl::make_unexpected(Errors{std::move(error)});
}

enum class Norms : std::uint8_t { kApart, kFused };

// Appends kinds of layers to a model that has those of the plan's micro-batch, and remembers what
// they are of, so that all of them can be had again for another load of experts.
class KindMaker {
 public:
  KindMaker(const JobRequest& request, const KernelTimer& timer, TimedModel& model)
      : request_(request), timer_(timer), model_(model), made_{{request.plan.micro_batch}} {}

  /// Returns the number of the first kind for micro-batches of `samples`.
  Result<std::uint32_t> append(std::uint32_t samples, Norms norms = Norms::kApart) {
    made_.push_back({samples, norms});
    return append(made_.back(), std::nullopt);
  }

  /// Appends all kinds so far as a rank with such a load of experts has them; returns the number
  /// of the first.
  Result<std::uint32_t> append_for_load(double own_load) {
    const auto first = static_cast<std::uint32_t>(model_.layers.size());
    for (const Made& made : made_) BUBBLESIM_RETURN_IF_ERROR(append(made, own_load));
    return first;
  }

 private:
  struct Made {
    std::uint32_t samples = 1;
    Norms norms = Norms::kApart;
  };

  Result<std::uint32_t> append(const Made& made, std::optional<double> own_load) {
    model::TrainingShape shape = shape_of(request_);
    shape.micro_batch = made.samples;
    model::Split split = split_of(request_.plan);
    split.own_expert_load = own_load;
    BUBBLESIM_ASSIGN_OR_RETURN(model::ModelWork work,
                               model::training_work(request_.model, split, shape));
    if (made.norms == Norms::kFused) fuse_norms(work);
    return append_kinds(model_, std::move(work), timer_, request_.software.backward_exchanges);
  }

  const JobRequest& request_;
  const KernelTimer& timer_;
  TimedModel& model_;
  std::vector<Made> made_;
};

// Stages with larger micro-batches have kinds of layers of their own.
Result<void> enlarge(const PlanSpec& plan, const std::vector<StageLayers>& layers,
                     KindMaker& kinds, TimedModel& model) {
  std::map<std::uint32_t, std::uint32_t> first_kind{{1, 0}};
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const std::uint32_t factor = plan.stages[s].micro_batch;
    if (!first_kind.contains(factor)) {
      BUBBLESIM_ASSIGN_OR_RETURN(first_kind[factor], kinds.append(plan.micro_batch * factor));
    }
    for (std::uint32_t i = layers[s].first; i < layers[s].last; ++i) {
      model.work.layers[i] += first_kind[factor];
    }
  }
  return {};
}

// Both parts of a micro-batch whose exchanges run beside compute have kinds of layers of their own.
Result<std::vector<std::uint32_t>> part_layers(const PlanSpec& plan, KindMaker& kinds) {
  std::vector<std::uint32_t> first_kinds;
  const auto& overlap = plan.tensor_overlap;
  if (!overlap) return first_kinds;
  const std::uint32_t first = overlap->first > 0 ? overlap->first : plan.micro_batch / 2;
  for (const std::uint32_t samples : {first, plan.micro_batch - first}) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        const std::uint32_t kind,
        kinds.append(samples, overlap->fused_norm ? Norms::kFused : Norms::kApart));
    first_kinds.push_back(kind);
  }
  return first_kinds;
}

// Kinds of layers of ranks whose experts have other loads than the busiest one's, and of the mean:
// ParallelPlan::expert_kinds and mean_kinds.
struct LoadedKinds {
  std::vector<std::uint32_t> by_rank;
  std::uint32_t mean = 0;
};

Result<LoadedKinds> loaded_kinds(const std::vector<double>& loads, const RankGrid& grid,
                                 KindMaker& kinds) {
  LoadedKinds out;
  std::map<double, std::uint32_t> first_kind{{busiest_load(loads), 0}};
  const auto kinds_with = [&](double load) -> Result<std::uint32_t> {
    if (!first_kind.contains(load)) {
      BUBBLESIM_ASSIGN_OR_RETURN(first_kind[load], kinds.append_for_load(load));
    }
    return first_kind[load];
  };
  BUBBLESIM_ASSIGN_OR_RETURN(out.mean, kinds_with(1));
  if (!grid.experts_apart()) return out;
  for (const double load : loads) {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::uint32_t first, kinds_with(load));
    out.by_rank.push_back(first);
  }
  return out;
}

// Nothing is fetched from before a stage's pass. A larger number would only ask for room.
Result<void> check_ahead(const PlanSpec& plan, const std::vector<StageLayers>& by_stage) {
  std::uint32_t most = 0;
  for (const StageLayers& layers : by_stage) most = std::max(most, layers.last - layers.first);
  if (plan.host.activations == 0 || plan.host.ahead <= most) return {};
  return fail({}, "/host/ahead", fmt::format("found {}; expected at most {}, the layers of the "
                                             "longest stage", plan.host.ahead, most));
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
  auto loads = route(request);
  if (!loads) return faults(plan, std::move(loads).error());
  auto made = schedule_of(plan);
  if (!made) return faults(plan, std::move(made).error(), "/schedule");
  auto work = model::training_work(request.model, split_of(plan), shape_of(request));
  if (!work) return faults(plan, std::move(work).error());
  const KernelTimer timer = timer_of(request);
  TimedModel timed = time_model(std::move(*work), timer, request.software.backward_exchanges);
  KindMaker kinds(request, timer, timed);
  const std::uint32_t depth = model_stages(*made);
  auto layers = layers_of(request, timed, depth);
  if (!layers) {
    return faults(plan, std::move(layers).error(), plan.stages.empty() ? "/pipeline" : "/stages");
  }
  if (auto done = enlarge(plan, *layers, kinds, timed); !done) {
    return faults(plan, std::move(done).error(), "/stages");
  }
  auto parts = part_layers(plan, kinds);
  if (!parts) return faults(plan, std::move(parts).error(), "/tensor_overlap");
  const RankGrid grid(plan, request.cluster);
  auto loaded = loaded_kinds(*loads, grid, kinds);
  if (!loaded) return faults(plan, std::move(loaded).error());
  std::vector<StageLayers> by_stage;
  for (std::uint32_t s = 0; s < made->schedule.stages; ++s) {
    by_stage.push_back((*layers)[s % depth]);
  }
  if (auto done = check_ahead(plan, by_stage); !done) {
    return faults(plan, std::move(done).error());
  }
  auto sent = sent_bytes(plan, made->graph, by_stage, timed.work);
  if (!sent) return faults(plan, std::move(sent).error());
  std::vector<Stage> stages;
  for (std::uint32_t s = 0; s < made->schedule.stages; ++s) {
    stages.push_back({by_stage[s], made->schedule.rank_of_stage[s], std::move((*sent)[s])});
  }
  const std::uint32_t copies = made->schedule.stages / depth;
  return ParallelPlan{std::move(request), grid, std::move(made->schedule), std::move(made->graph),
                 std::move(timed), std::move(stages), copies, std::move(*parts),
                 std::move(*loads), std::move(loaded->by_rank), loaded->mean};
}

CheckedResult<ParallelPlan> plan_job(JobRequest request) {
  BUBBLESIM_ASSIGN_OR_RETURN(ParallelPlan out, plan_without_memory(std::move(request)));
  if (Errors errors = check_memory(out); !errors.empty()) {
    return tl::make_unexpected(std::move(errors));
  }
  return out;
}

}  // namespace bubblesim::synth
