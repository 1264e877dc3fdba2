#include "sim/synth/plan_check.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/input_file.hpp"
#include "sim/pipeline/check.hpp"
#include "sim/pipeline/csv.hpp"
#include "sim/synth/find_job.hpp"
#include "sim/synth/rank_memory.hpp"
#include "sim/synth/rollout.hpp"
#include "sim/synth/stage_layers.hpp"
#include "sim/synth/transfers.hpp"

namespace bubblesim::synth {
namespace {

Error fault(const PlanSpec& plan, std::string place, std::string message) {
  return {plan.name, std::move(place), std::move(message)};
}

// Sizes of 0, which a reader refuses and a caller may give.
void check_sizes(const PlanSpec& plan, Errors& errors) {
  const std::array<std::pair<const char*, std::uint64_t>, 7> sizes{
      {{"/data", plan.data}, {"/tensor", plan.tensor}, {"/context", plan.context},
       {"/expert", plan.expert}, {"/pipeline", plan.pipeline},
       {"/global_batch", plan.global_batch}, {"/micro_batch", plan.micro_batch}}};
  for (const auto& [place, size] : sizes) {
    if (size == 0) errors.push_back(fault(plan, place, "found 0; expected at least 1"));
  }
}

void check_cluster(const JobRequest& request, Errors& errors) {
  const PlanSpec& plan = request.plan;
  const hardware::ClusterSpec& cluster = request.cluster;
  if (cluster.nics.count == 0 && cluster.nodes > 1) {
    errors.push_back(fault(plan, "", fmt::format("cluster {} has no network between nodes; found "
                                                 "{} nodes, expected 1", cluster.name,
                                                 cluster.nodes)));
    return;
  }
  const std::uint64_t generators = plan.rollout ? plan.rollout->generators : 0;
  const std::uint64_t world =
      std::uint64_t{plan.data} * plan.tensor * plan.context * plan.pipeline + generators;
  if (world <= cluster.gpus()) return;
  const std::uint64_t nodes = (world + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  const std::string advice =
      cluster.nics.count == 0
          ? fmt::format("it has no network between nodes: at most {} GPUs", cluster.gpus())
          : fmt::format("{} nodes would do", nodes);
  errors.push_back(fault(
      plan, "", fmt::format("data {} x tensor {} x context {} x pipeline {}{} is {} GPUs; cluster "
                            "{} has {} ({} nodes of {}); {}", plan.data, plan.tensor,
                            plan.context, plan.pipeline,
                            generators > 0 ? fmt::format(" + {} generators", generators) : "",
                            world, cluster.name, cluster.gpus(),
                            cluster.nodes, cluster.gpus_per_node, advice)));
}

void check_sequence(const JobRequest& request, Errors& errors) {
  const auto checked = model::check_sequence(request.model, request.plan.sequence.value_or(0));
  if (!checked) errors.push_back(fault(request.plan, "/sequence", checked.error().message));
}

// All blocks of a collective's kernel have to be resident at once.
void check_channels(const JobRequest& request, Errors& errors) {
  const hardware::CollectiveSpec& costs = request.cluster.collectives;
  const std::array<std::pair<const char*, std::uint32_t>, 3> channels{
      {{"node_channels", costs.node_channels}, {"net_channels", costs.net_channels},
       {"p2p_channels", costs.p2p_channels}}};
  for (const auto& [key, count] : channels) {
    if (count <= request.gpu.sm_count) continue;
    errors.push_back({request.cluster.name, std::string("/collectives/") + key,
                      fmt::format("found {} blocks; expected at most {}, the SMs of {}", count,
                                  request.gpu.sm_count, request.gpu.name)});
  }
}

// Each stage next to another has two streams to it, and a kernel waits for 255 streams at most.
constexpr std::uint32_t kMostNeighbours = 120;

void check_neighbours(const PlanSpec& plan, Errors& errors) {
  std::vector<std::uint32_t> neighbours(plan.stages.size());
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    for (const std::uint32_t before : plan.stages[s].after) {
      if (before >= neighbours.size()) continue;  // told elsewhere
      ++neighbours[s];
      ++neighbours[before];
    }
  }
  for (std::size_t s = 0; s < neighbours.size(); ++s) {
    if (neighbours[s] <= kMostNeighbours) continue;
    errors.push_back(fault(plan, fmt::format("/stages/{}/after", s),
                           fmt::format("the stage exchanges with {} others; expected at most {}",
                                       neighbours[s], kMostNeighbours)));
  }
}

// Stages of a graph: one a rank, under the one schedule that runs them.
void check_stages(const PlanSpec& plan, Errors& errors) {
  if (plan.stages.empty()) return;
  if (plan.schedule != "graph" || plan.schedule_csv) {
    errors.push_back(fault(plan, "/schedule",
                           "\"stages\" need the schedule \"graph\"; found \"" +
                               plan.schedule_csv.value_or(plan.schedule) + "\""));
  }
  if (plan.stages.size() != plan.pipeline) {
    errors.push_back(fault(plan, "/pipeline",
                           fmt::format("found {}; expected one rank for each of the {} stages",
                                       plan.pipeline, plan.stages.size())));
  }
  check_neighbours(plan, errors);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const std::uint64_t most = UINT32_MAX / std::max(plan.micro_batch, 1U);
    if (plan.stages[s].micro_batch >= 1 && plan.stages[s].micro_batch <= most) continue;
    errors.push_back(fault(plan, fmt::format("/stages/{}/micro_batch", s),
                           fmt::format("found {}; expected 1 to {}", plan.stages[s].micro_batch,
                                       most)));
  }
}

void check_batch(const PlanSpec& plan, Errors& errors) {
  const std::uint64_t unit = std::uint64_t{plan.data} * plan.micro_batch;
  if (plan.global_batch % unit == 0) return;
  const std::uint64_t below = plan.global_batch / unit * unit;
  errors.push_back(fault(
      plan, "/global_batch",
      fmt::format("found {}; expected a multiple of data {} x micro-batch {} = {}; nearest: {}",
                  plan.global_batch, plan.data, plan.micro_batch, unit,
                  below == 0 ? fmt::format("{}", unit)
                             : fmt::format("{} or {}", below, below + unit))));
}

void check_experts(const PlanSpec& plan, Errors& errors) {
  if (plan.expert_load > plan.expert) {
    errors.push_back(fault(plan, "/expert_load",
                           fmt::format("found {}; expected at most \"expert\", {}: the busiest "
                                       "rank has no more than all tokens", plan.expert_load,
                                       plan.expert)));
  }
  const std::uint32_t replicas = plan.data * plan.context;
  if (replicas % plan.expert == 0) return;
  std::uint32_t nearest = plan.expert;
  while (replicas % nearest != 0) --nearest;
  errors.push_back(fault(plan, "/expert",
                         fmt::format("found {}; expected a divisor of data x context = {}; "
                                     "nearest below: {}", plan.expert, replicas, nearest)));
}

// Whether each run of `count` neighbouring replicas lies inside a node or on whole nodes.
bool fill_nodes(const PlanSpec& plan, const hardware::ClusterSpec& cluster, std::uint32_t count) {
  const std::uint64_t ranks = std::uint64_t{count} * plan.tensor;
  const std::uint32_t node = cluster.gpus_per_node;
  if (ranks > node) return ranks % node == 0;
  for (std::uint64_t first = 0; first < plan.trainers(); first += ranks) {
    if (first / node != (first + ranks - 1) / node) return false;
  }
  return true;
}

// Those who keep a copy between them, `count` neighbours (0: there is no such copy), divide those
// who keep the copy before it, and lie where links are alike.
void check_holders(const JobRequest& request, const char* key, std::uint32_t count,
                   std::uint32_t before, const std::string& before_is, Errors& errors) {
  const PlanSpec& plan = request.plan;
  if (count == 0) return;
  if (before % count != 0) {
    errors.push_back(fault(plan, key, fmt::format("found {}; expected a divisor of {} = {}", count,
                                                  before_is, before)));
  } else if (!fill_nodes(plan, request.cluster, count)) {
    errors.push_back(fault(
        plan, key,
        fmt::format("found {} with tensor {} on nodes of {} GPUs; expected neighbours that lie "
                    "inside a node or on whole nodes", count, plan.tensor,
                    request.cluster.gpus_per_node)));
  }
  if (plan.expert > 1 || plan.wide_area.mode != WideAreaMode::kEveryIteration) {
    errors.push_back(fault(plan, key,
                           "expected expert 1 and regions that exchange in every iteration: a "
                           "copy of neighbours is one of parameters that all replicas share"));
  }
}

// Copies are of sharded parameters: the first may be one of each run of neighbours, the second one
// of parts of them.
void check_parameters(const JobRequest& request, Errors& errors) {
  const PlanSpec& plan = request.plan;
  const ParameterPlan& parameters = plan.parameters;
  if (parameters.primary == 0 && parameters.secondary == 0 && parameters.element_bytes == 0) return;
  if (plan.sharding != Sharding::kParameters) {
    errors.push_back(fault(plan, "/parameters",
                           "says how sharded parameters are gathered; expected \"sharding\": "
                           "\"parameters\""));
  }
  const std::uint32_t replicas = plan.data * plan.context;
  check_holders(request, "/parameters/primary", parameters.primary, replicas, "data x context",
                errors);
  const bool apart = parameters.primary > 0;
  check_holders(request, "/parameters/secondary", parameters.secondary,
                apart ? parameters.primary : replicas,
                apart ? "parameters/primary" : "data x context", errors);
}

// Two parts need exchanges among tensor ranks and a sample each; kernels of another form need to
// know what one of their blocks moves.
void check_tensor_overlap(const JobRequest& request, Errors& errors) {
  const PlanSpec& plan = request.plan;
  if (!plan.tensor_overlap) return;
  const TensorOverlapPlan& overlap = *plan.tensor_overlap;
  const auto refuse = [&](const char* key, std::string message) {
    errors.push_back(fault(plan, std::string("/tensor_overlap") + key, std::move(message)));
  };
  if (plan.tensor == 1) {
    refuse("", "says how tensor ranks exchange; expected \"tensor\" of at least 2");
  }
  if (!plan.stages.empty()) refuse("", "expected a chain of stages; found \"stages\"");
  if (plan.micro_batch < 2) {
    refuse("", "a micro-batch of 1 sample has no two parts; expected \"micro_batch\" of 2 or more");
  } else if (overlap.first >= plan.micro_batch) {
    refuse("/first", fmt::format("found {} samples of {}; expected 1 to {}", overlap.first,
                                 plan.micro_batch, plan.micro_batch - 1));
  }
  if (overlap.fused_norm && plan.sequence_parallel) {
    refuse("/fused_norm", "expected \"sequence_parallel\": false; with it norms are split already");
  }
  if (overlap.blocks > request.gpu.sm_count) {
    refuse("/sms", fmt::format("found {}; expected at most {}, the SMs of {}", overlap.blocks,
                               request.gpu.sm_count, request.gpu.name));
  }
  const bool other_kernel = overlap.blocks > 0 || overlap.fused_norm;
  if (other_kernel && request.cluster.collectives.block_bandwidth.value <= 0) {
    refuse(overlap.blocks > 0 ? "/sms" : "/fused_norm",
           "cluster " + request.cluster.name +
               " does not say what a block of a collective moves; expected one that does "
               "(collectives/block_bandwidth), as h100-dgx");
  }
}

// Only products whose blocks stay on their SMs can leave some of them free.
void check_carveout(const JobRequest& request, Errors& errors) {
  const std::uint32_t carveout = request.plan.sm_carveout;
  if (carveout == 0) return;
  const hardware::GpuSpec& gpu = request.gpu;
  if (gpu.compute_major < 9) {
    errors.push_back(fault(
        request.plan, "/sm_carveout",
        fmt::format("found {}; products have a block a tile on {}, of compute capability {}.{}, "
                    "and leave no SMs free; expected 0, or a device of 9.0 or later",
                    carveout, gpu.name, gpu.compute_major, gpu.compute_minor)));
  } else if (carveout >= gpu.sm_count) {
    errors.push_back(fault(request.plan, "/sm_carveout",
                           fmt::format("found {}; expected less than {}, the SMs of {}", carveout,
                                       gpu.sm_count, gpu.name)));
  }
}

void check_host(const JobRequest& request, Errors& errors) {
  const PlanSpec& plan = request.plan;
  if (!plan.host.moves()) return;
  if (plan.host.bandwidth.value <= 0 && request.gpu.host_bandwidth.value <= 0) {
    errors.push_back(fault(plan, "/host",
                           request.gpu.name + " does not say its host's bandwidth; expected "
                           "\"bandwidth_gb_per_s\""));
  }
  if (plan.host.checkpoint_every > 0 && updates_on_host(plan)) {
    errors.push_back(fault(plan, "/host/checkpoint_every",
                           "the host has the optimiser's states already; expected either"));
  }
  if (plan.host.checkpoint_every > 0 &&
      plan.wide_area.mode != WideAreaMode::kEveryIteration) {
    errors.push_back(fault(plan, "/host/checkpoint_every",
                           "expected regions that exchange in every iteration"));
  }
}

// GPUs of their own for rollouts, and what needs them.
void check_generators(const PlanSpec& plan, Errors& errors) {
  const RolloutPlan& rollout = *plan.rollout;
  if (rollout.generators > 0 && plan.global_batch % rollout.generators != 0) {
    errors.push_back(fault(plan, "/rollout/generators",
                           fmt::format("found {} for a batch of {}; expected a divisor of it",
                                       rollout.generators, plan.global_batch)));
  }
  if (rollout.generators == 0 && rollout.distance() > 1) {
    errors.push_back(fault(plan, "/rollout", "found \"staleness\" or \"jobs\" where GPUs generate "
                                             "and train in turn; expected \"generators\""));
  }
  if (rollout.switch_time > Duration::zero() && rollout.jobs == 1) {
    errors.push_back(fault(plan, "/rollout/switch", "found it with one job; expected \"jobs\""));
  }
}

// A replica is one GPU with all parameters, and is simulated: others end apart from it.
void check_rollout(const JobRequest& request, Errors& errors) {
  const PlanSpec& plan = request.plan;
  if (!plan.rollout) return;
  const auto refuse = [&](const char* place, std::string message) {
    errors.push_back(fault(plan, place, std::move(message)));
  };
  if (plan.tensor * plan.context * plan.pipeline > 1 || plan.sharding == Sharding::kParameters) {
    refuse("/rollout", "expected replicas of one GPU that hold all parameters: tensor, context and "
                       "pipeline 1, \"sharding\" not \"parameters\"");
  }
  if (plan.world_size() > 1 && plan.folding != Folding::kNothing) {
    refuse("/folding", "replicas end their rollouts apart; expected \"nothing\"");
  }
  if (plan.wide_area.mode != WideAreaMode::kEveryIteration || plan.host.checkpoint_every > 1) {
    refuse("/rollout", "expected iterations that are alike but for it: no wide_area, and "
                       "checkpoints in every one or in none");
  }
  const RolloutPlan& rollout = *plan.rollout;
  if (rollout.most_tokens < rollout.mean_tokens) {
    refuse("/rollout/most_tokens",
           fmt::format("found {}; expected at least \"mean_tokens\", {}: responses are cut off "
                       "there after they are drawn", rollout.most_tokens, rollout.mean_tokens));
  }
  const auto last = model::decode_work(request.model, {}, plan.precision, 1,
                                       std::uint64_t{rollout.prompt_tokens} + rollout.most_tokens);
  if (!last) return refuse("/rollout", last.error().message);
  check_generators(plan, errors);
  if (!errors.empty()) return;
  if (const auto scheduler = rollout_scheduler(request); !scheduler) {
    refuse("/rollout/kv_cache", scheduler.error().message);
  }
}

void check_regions(const JobRequest& request, Errors& errors) {
  const PlanSpec& plan = request.plan;
  if (plan.wide_area.mode == WideAreaMode::kEveryIteration) return;
  if (!request.cluster.regions) {
    errors.push_back(fault(plan, "/wide_area", "cluster " + request.cluster.name +
                           " has no regions; expected one that has, as two-regions"));
    return;
  }
  const std::uint32_t region =
      request.cluster.regions->nodes_per_region * request.cluster.gpus_per_node;
  if (plan.pipeline > 1 || plan.expert > 1 || plan.world_size() % region != 0) {
    errors.push_back(fault(
        plan, "/wide_area", fmt::format("regions exchange whole replicas: expected pipeline 1, "
                                        "expert 1 and a multiple of {} GPUs (a region's); found "
                                        "{}, {} and {}", region, plan.pipeline, plan.expert,
                                        plan.world_size())));
    return;
  }
  const std::uint32_t regions = plan.world_size() / region;
  if (plan.data % regions != 0) {
    errors.push_back(fault(plan, "/data",
                           fmt::format("found {} replicas in {} regions; expected a multiple of "
                                       "{}", plan.data, regions, regions)));
  }
}

Result<pipeline::PlannedSchedule> schedule_from_file(const PlanSpec& plan) {
  const std::string& path = *plan.schedule_csv;
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  auto csv = pipeline::parse_csv(text, path);
  if (!csv) return tl::make_unexpected(csv.error().front());
  pipeline::PlannedSchedule out{std::move(csv->schedule), {}};
  out.graph = pipeline::infer_graph(out.schedule);
  if (Errors errors = pipeline::check(out.schedule, out.graph); !errors.empty()) {
    Error first = errors.front();
    first.file = path;
    return tl::make_unexpected(std::move(first));
  }
  if (out.schedule.ranks != plan.pipeline || out.schedule.micro_batches != plan.micro_batches()) {
    return fail(path, "", fmt::format("a schedule of {} ranks and {} micro-batches; the plan has "
                                      "{} and {}", out.schedule.ranks,
                                      out.schedule.micro_batches, plan.pipeline,
                                      plan.micro_batches()));
  }
  return out;
}

// One change each, the least first.
struct Remedy {
  const char* text;
  bool (*apply)(PlanSpec& plan);  ///< false: it changes nothing
};

bool recompute(PlanSpec& plan, model::Recompute level) {
  return plan.recompute < level && (plan.recompute = level, true);
}
bool shard(PlanSpec& plan, Sharding level) {
  return plan.data * plan.context > 1 && plan.sharding < level && (plan.sharding = level, true);
}

constexpr std::array<Remedy, 5> kRemedies{{
    {"\"recompute\": \"selective\"",
     [](PlanSpec& plan) { return recompute(plan, model::Recompute::kSelective); }},
    {"\"recompute\": \"full\"",
     [](PlanSpec& plan) { return recompute(plan, model::Recompute::kFull); }},
    {"\"sharding\": \"optimizer\"",
     [](PlanSpec& plan) { return shard(plan, Sharding::kOptimizer); }},
    {"\"micro_batch\": 1",
     [](PlanSpec& plan) { return plan.micro_batch > 1 && (plan.micro_batch = 1, true); }},
    {"\"sharding\": \"parameters\"",
     [](PlanSpec& plan) { return shard(plan, Sharding::kParameters); }},
}};

// A stronger remedy of the same key stands in the place of the weaker one.
std::string with_remedy(std::string text, std::string_view remedy) {
  const std::string_view key = remedy.substr(0, remedy.find(':') + 1);
  if (const std::size_t weaker = text.find(key); weaker != std::string::npos) {
    const std::size_t end = std::min(text.find(',', weaker), text.size());
    return text.replace(weaker, end - weaker, remedy);
  }
  return text + (text.empty() ? "" : ", ") + std::string(remedy);
}

bool fits(const ParallelPlan& plan) {
  const bool generates = plan.plan().rollout && plan.plan().rollout->generators > 0;
  const auto gpu = static_cast<double>(plan.request.gpu.memory.value);
  if (generates && generator_memory(plan).total() > gpu) return false;
  for (std::uint32_t p = 0; p < plan.plan().pipeline; ++p) {
    if (memory_need(plan, p).total() > gpu) return false;
  }
  return true;
}

// Twice as many tensor ranks, then pipeline ranks too, as far as model and cluster go.
std::optional<std::string> wider(JobRequest request, const std::string& changes) {
  for (const auto axis : {&PlanSpec::tensor, &PlanSpec::pipeline}) {
    for (;;) {
      JobRequest more = request;
      more.plan.*axis *= 2;
      const auto plan = plan_without_memory(more);
      if (!plan) break;
      request = std::move(more);
      if (!fits(*plan)) continue;
      return changes + (changes.empty() ? "" : ", ") +
             fmt::format("\"tensor\": {}, \"pipeline\": {}", request.plan.tensor,
                         request.plan.pipeline);
    }
  }
  return std::nullopt;
}

std::optional<std::string> remedy_for(const JobRequest& request) {
  for (const Remedy& remedy : kRemedies) {
    JobRequest changed = request;
    if (!remedy.apply(changed.plan)) continue;
    const auto plan = plan_without_memory(std::move(changed));
    if (plan && fits(*plan)) return remedy.text;
  }
  JobRequest all = request;
  std::string text;
  for (const Remedy& remedy : kRemedies) {
    JobRequest more = all;
    if (!remedy.apply(more.plan)) continue;
    const auto plan = plan_without_memory(more);
    if (!plan) continue;  // the model or the schedule does not allow it
    all = std::move(more);
    text = with_remedy(text, remedy.text);
    if (fits(*plan)) return text;
  }
  return wider(std::move(all), text);
}

}  // namespace

Errors check_plan(const JobRequest& request) {
  Errors errors;
  check_sizes(request.plan, errors);
  if (!errors.empty()) return errors;
  if (auto wrong = precision_fault(request.efficiency, request.plan.precision, request.gpu.name)) {
    errors.push_back(fault(request.plan, "/precision", *std::move(wrong)));
  }
  check_cluster(request, errors);
  check_channels(request, errors);
  check_sequence(request, errors);
  check_stages(request.plan, errors);
  check_batch(request.plan, errors);
  check_experts(request.plan, errors);
  check_parameters(request, errors);
  check_tensor_overlap(request, errors);
  check_carveout(request, errors);
  check_host(request, errors);
  check_rollout(request, errors);
  check_regions(request, errors);
  return errors;
}

Result<pipeline::PlannedSchedule> schedule_of(const PlanSpec& plan) {
  if (plan.schedule_csv) return schedule_from_file(plan);
  pipeline::ScheduleRequest request;
  request.ranks = plan.pipeline;
  request.micro_batches = plan.micro_batches();
  request.chunks = plan.chunks;
  if (!plan.stages.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(request.graph, graph_of(plan));
  }
  return pipeline::make_schedule(plan.schedule, request);
}

Errors check_memory(const ParallelPlan& plan) {
  const double available = static_cast<double>(plan.request.gpu.memory.value);
  std::uint32_t worst = 0;
  MemoryNeed need = memory_need(plan, 0);
  for (std::uint32_t p = 1; p < plan.plan().pipeline; ++p) {
    const MemoryNeed other = memory_need(plan, p);
    if (other.total() <= need.total()) continue;
    worst = p;
    need = other;
  }
  if (plan.plan().rollout && plan.plan().rollout->generators > 0) {
    const double generator = generator_memory(plan).total();
    if (generator > available) {
      return {fault(plan.plan(), "/rollout/kv_cache",
                    fmt::format("a GPU that generates needs {:.1f} GB of weights, twice, and "
                                "cache; {} has {:.1f} GB", generator / 1e9,
                                plan.request.gpu.name, available / 1e9))};
    }
  }
  if (need.total() <= available) return {};
  const auto remedy = remedy_for(plan.request);
  constexpr double kGiga = 1e9;
  return {fault(plan.plan(), "",
                fmt::format("pipeline rank {} needs {:.1f} GB ({:.1f} parameters, {:.1f} "
                            "gradients, {:.1f} optimiser, {:.1f} activations, {:.1f} working); "
                            "{} has {:.1f} GB; {}", worst, need.total() / kGiga,
                            need.fixed.parameters / kGiga, need.fixed.gradients / kGiga,
                            need.fixed.optimizer / kGiga, need.activations / kGiga,
                            need.working / kGiga, plan.request.gpu.name, available / kGiga,
                            remedy ? "nearest that fits: " + *remedy
                                   : "no plan like it on this cluster fits"))};
}

}  // namespace bubblesim::synth
