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

// Each stage next to another has two streams to it, and a kernel waits for 255 streams at most.
constexpr std::uint32_t kMostNeighbours = 120;

class PlanChecker {
 public:
  explicit PlanChecker(const JobRequest& request)
      : request_(request), plan_(request.plan), gpu_(request.gpu), cluster_(request.cluster) {}

  Errors run() {
    check_sizes();
    if (!errors_.empty()) return std::move(errors_);
    if (const auto wrong = precision_fault(request_.efficiency, plan_.precision, gpu_.name)) {
      add("/precision", "{}", *wrong);
    }
    check_cluster();
    check_channels();
    const auto sequence = model::check_sequence(request_.model, plan_.sequence.value_or(0));
    if (!sequence) add("/sequence", "{}", sequence.error().message);
    check_stages();
    check_batch();
    check_experts();
    check_parameters();
    check_tensor_overlap();
    check_carveout();
    check_host();
    check_rollout();
    check_regions();
    return std::move(errors_);
  }

 private:
  template <class... Args>
  void add(std::string place, fmt::format_string<Args...> message, Args&&... args) {
    errors_.push_back({plan_.name, std::move(place),
                       fmt::format(message, std::forward<Args>(args)...)});
  }

  // Sizes of 0, which a reader refuses and a caller may give.
  void check_sizes() {
    const std::array<std::pair<const char*, std::uint64_t>, 7> sizes{
        {{"/data", plan_.data}, {"/tensor", plan_.tensor}, {"/context", plan_.context},
         {"/expert", plan_.expert}, {"/pipeline", plan_.pipeline},
         {"/global_batch", plan_.global_batch}, {"/micro_batch", plan_.micro_batch}}};
    for (const auto& [place, size] : sizes) {
      if (size == 0) add(place, "found 0; expected at least 1");
    }
  }

  void check_cluster() {
    if (cluster_.nics.count == 0 && cluster_.nodes > 1) {
      return add("", "cluster {} has no network between nodes; found {} nodes, expected 1",
                 cluster_.name, cluster_.nodes);
    }
    const std::uint64_t generators = plan_.rollout ? plan_.rollout->generators : 0;
    const std::uint64_t world =
        std::uint64_t{plan_.data} * plan_.tensor * plan_.context * plan_.pipeline + generators;
    if (world <= cluster_.gpus()) return;
    const std::uint64_t nodes = (world + cluster_.gpus_per_node - 1) / cluster_.gpus_per_node;
    const std::string advice =
        cluster_.nics.count == 0
            ? fmt::format("it has no network between nodes: at most {} GPUs", cluster_.gpus())
            : fmt::format("{} nodes would do", nodes);
    add("", "data {} x tensor {} x context {} x pipeline {}{} is {} GPUs; cluster {} has {} ({} "
            "nodes of {}); {}",
        plan_.data, plan_.tensor, plan_.context, plan_.pipeline,
        generators > 0 ? fmt::format(" + {} generators", generators) : "", world, cluster_.name,
        cluster_.gpus(), cluster_.nodes, cluster_.gpus_per_node, advice);
  }

  // All blocks of a collective's kernel have to be resident at once.
  void check_channels() {
    const hardware::CollectiveSpec& costs = cluster_.collectives;
    const std::array<std::pair<const char*, std::uint32_t>, 3> channels{
        {{"node_channels", costs.node_channels}, {"net_channels", costs.net_channels},
         {"p2p_channels", costs.p2p_channels}}};
    for (const auto& [key, count] : channels) {
      if (count <= gpu_.sm_count) continue;
      errors_.push_back({cluster_.name, std::string("/collectives/") + key,
                         fmt::format("found {} blocks; expected at most {}, the SMs of {}", count,
                                     gpu_.sm_count, gpu_.name)});
    }
  }

  void check_neighbours() {
    std::vector<std::uint32_t> neighbours(plan_.stages.size());
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      for (const std::uint32_t before : plan_.stages[s].after) {
        if (before >= neighbours.size()) continue;  // told elsewhere
        ++neighbours[s];
        ++neighbours[before];
      }
    }
    for (std::size_t s = 0; s < neighbours.size(); ++s) {
      if (neighbours[s] <= kMostNeighbours) continue;
      add(fmt::format("/stages/{}/after", s),
          "the stage exchanges with {} others; expected at most {}", neighbours[s],
          kMostNeighbours);
    }
  }

  // Stages of a graph: one a rank, under the one schedule that runs them.
  void check_stages() {
    if (plan_.stages.empty()) return;
    if (plan_.schedule != "graph" || plan_.schedule_csv) {
      add("/schedule", "\"stages\" need the schedule \"graph\"; found \"{}\"",
          plan_.schedule_csv.value_or(plan_.schedule));
    }
    if (plan_.stages.size() != plan_.pipeline) {
      add("/pipeline", "found {}; expected one rank for each of the {} stages", plan_.pipeline,
          plan_.stages.size());
    }
    check_neighbours();
    const std::uint64_t most = UINT32_MAX / std::max(plan_.micro_batch, 1U);
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      if (plan_.stages[s].micro_batch >= 1 && plan_.stages[s].micro_batch <= most) continue;
      add(fmt::format("/stages/{}/micro_batch", s), "found {}; expected 1 to {}",
          plan_.stages[s].micro_batch, most);
    }
  }

  void check_batch() {
    const std::uint64_t unit = std::uint64_t{plan_.data} * plan_.micro_batch;
    if (plan_.global_batch % unit == 0) return;
    const std::uint64_t below = plan_.global_batch / unit * unit;
    add("/global_batch",
        "found {}; expected a multiple of data {} x micro-batch {} = {}; nearest: {}{}",
        plan_.global_batch, plan_.data, plan_.micro_batch, unit,
        below == 0 ? "" : fmt::format("{} or ", below), below + unit);
  }

  void check_experts() {
    if (plan_.expert_load > plan_.expert) {
      add("/expert_load",
          "found {}; expected at most \"expert\", {}: the busiest rank has no more than all tokens",
          plan_.expert_load, plan_.expert);
    }
    const std::uint32_t replicas = plan_.data * plan_.context;
    if (replicas % plan_.expert == 0) return;
    std::uint32_t nearest = plan_.expert;
    while (replicas % nearest != 0) --nearest;
    add("/expert", "found {}; expected a divisor of data x context = {}; nearest below: {}",
        plan_.expert, replicas, nearest);
  }

  // Whether each run of `count` neighbouring replicas lies inside a node or on whole nodes.
  [[nodiscard]] bool fill_nodes(std::uint32_t count) const {
    const std::uint64_t ranks = std::uint64_t{count} * plan_.tensor;
    const std::uint32_t node = cluster_.gpus_per_node;
    if (ranks > node) return ranks % node == 0;
    for (std::uint64_t first = 0; first < plan_.trainers(); first += ranks) {
      if (first / node != (first + ranks - 1) / node) return false;
    }
    return true;
  }

  // Those who keep a copy between them, `count` neighbours (0: there is no such copy), divide those
  // who keep the copy before it, and lie where links are alike.
  void check_holders(const char* key, std::uint32_t count, std::uint32_t before,
                     const char* before_is) {
    if (count == 0) return;
    if (before % count != 0) {
      add(key, "found {}; expected a divisor of {} = {}", count, before_is, before);
    } else if (!fill_nodes(count)) {
      add(key,
          "found {} with tensor {} on nodes of {} GPUs; expected neighbours that lie inside a node "
          "or on whole nodes",
          count, plan_.tensor, cluster_.gpus_per_node);
    }
    if (plan_.expert > 1 || plan_.wide_area.mode != WideAreaMode::kEveryIteration) {
      add(key, "expected expert 1 and regions that exchange in every iteration: a copy of "
               "neighbours is one of parameters that all replicas share");
    }
  }

  // Copies are of sharded parameters: the first may be one of each run of neighbours, the second
  // one of parts of them.
  void check_parameters() {
    const ParameterPlan& own = plan_.parameters;
    if (own.primary == 0 && own.secondary == 0 && own.element_bytes == 0) return;
    if (plan_.sharding != Sharding::kParameters) {
      add("/parameters", "says how sharded parameters are gathered; expected \"sharding\": "
                         "\"parameters\"");
    }
    const std::uint32_t replicas = plan_.data * plan_.context;
    check_holders("/parameters/primary", own.primary, replicas, "data x context");
    const bool apart = own.primary > 0;
    check_holders("/parameters/secondary", own.secondary, apart ? own.primary : replicas,
                  apart ? "parameters/primary" : "data x context");
  }

  // Two parts need exchanges among tensor ranks and a sample each; kernels of another form need to
  // know what one of their blocks moves.
  void check_tensor_overlap() {
    if (!plan_.tensor_overlap) return;
    const TensorOverlapPlan& overlap = *plan_.tensor_overlap;
    const std::string place = "/tensor_overlap";
    if (plan_.tensor == 1) {
      add(place, "says how tensor ranks exchange; expected \"tensor\" of at least 2");
    }
    if (!plan_.stages.empty()) add(place, "expected a chain of stages; found \"stages\"");
    if (plan_.micro_batch < 2) {
      add(place, "a micro-batch of 1 sample has no two parts; expected \"micro_batch\" of 2 or "
                 "more");
    } else if (overlap.first >= plan_.micro_batch) {
      add(place + "/first", "found {} samples of {}; expected 1 to {}", overlap.first,
          plan_.micro_batch, plan_.micro_batch - 1);
    }
    if (overlap.fused_norm && plan_.sequence_parallel) {
      add(place + "/fused_norm",
          "expected \"sequence_parallel\": false; with it norms are split already");
    }
    if (overlap.blocks > gpu_.sm_count) {
      add(place + "/sms", "found {}; expected at most {}, the SMs of {}", overlap.blocks,
          gpu_.sm_count, gpu_.name);
    }
    const bool other_kernel = overlap.blocks > 0 || overlap.fused_norm;
    if (other_kernel && cluster_.collectives.block_bandwidth.value <= 0) {
      add(place + (overlap.blocks > 0 ? "/sms" : "/fused_norm"),
          "cluster {} does not say what a block of a collective moves; expected one that does "
          "(collectives/block_bandwidth), as h100-dgx",
          cluster_.name);
    }
  }

  // Only products whose blocks stay on their SMs can leave some of them free.
  void check_carveout() {
    const std::uint32_t carveout = plan_.sm_carveout;
    if (carveout == 0) return;
    if (gpu_.compute_major < 9) {
      add("/sm_carveout",
          "found {}; products have a block a tile on {}, of compute capability {}.{}, and leave no "
          "SMs free; expected 0, or a device of 9.0 or later",
          carveout, gpu_.name, gpu_.compute_major, gpu_.compute_minor);
    } else if (carveout >= gpu_.sm_count) {
      add("/sm_carveout", "found {}; expected less than {}, the SMs of {}", carveout,
          gpu_.sm_count, gpu_.name);
    }
  }

  void check_host() {
    if (!plan_.host.moves()) return;
    if (plan_.host.bandwidth.value <= 0 && gpu_.host_bandwidth.value <= 0) {
      add("/host", "{} does not say its host's bandwidth; expected \"bandwidth_gb_per_s\"",
          gpu_.name);
    }
    const std::string place = "/host/checkpoint_every";
    if (plan_.host.checkpoint_every == 0) return;
    if (updates_on_host(plan_)) {
      add(place, "the host has the optimiser's states already; expected either");
    }
    if (plan_.wide_area.mode != WideAreaMode::kEveryIteration) {
      add(place, "expected regions that exchange in every iteration");
    }
  }

  // GPUs of their own for rollouts, and what needs them.
  void check_generators(const RolloutPlan& rollout) {
    if (rollout.generators > 0 && plan_.global_batch % rollout.generators != 0) {
      add("/rollout/generators", "found {} for a batch of {}; expected a divisor of it",
          rollout.generators, plan_.global_batch);
    }
    if (rollout.generators == 0 && rollout.distance() > 1) {
      add("/rollout", "found \"staleness\" or \"jobs\" where GPUs generate and train in turn; "
                      "expected \"generators\"");
    }
    if (rollout.switch_time > Duration::zero() && rollout.jobs == 1) {
      add("/rollout/switch", "found it with one job; expected \"jobs\"");
    }
  }

  // A replica is one GPU with all parameters, and is simulated: others end apart from it.
  void check_rollout() {
    if (!plan_.rollout) return;
    if (plan_.tensor * plan_.context * plan_.pipeline > 1 ||
        plan_.sharding == Sharding::kParameters) {
      add("/rollout", "expected replicas of one GPU that hold all parameters: tensor, context and "
                      "pipeline 1, \"sharding\" not \"parameters\"");
    }
    if (plan_.world_size() > 1 && plan_.folding != Folding::kNothing) {
      add("/folding", "replicas end their rollouts apart; expected \"nothing\"");
    }
    if (plan_.wide_area.mode != WideAreaMode::kEveryIteration || plan_.host.checkpoint_every > 1) {
      add("/rollout", "expected iterations that are alike but for it: no wide_area, and "
                      "checkpoints in every one or in none");
    }
    const RolloutPlan& rollout = *plan_.rollout;
    if (rollout.most_tokens < rollout.mean_tokens) {
      add("/rollout/most_tokens",
          "found {}; expected at least \"mean_tokens\", {}: responses are cut off there after they "
          "are drawn",
          rollout.most_tokens, rollout.mean_tokens);
    }
    const auto last =
        model::decode_work(request_.model, {}, plan_.precision, 1,
                           std::uint64_t{rollout.prompt_tokens} + rollout.most_tokens);
    if (!last) return add("/rollout", "{}", last.error().message);
    check_generators(rollout);
    if (!errors_.empty()) return;
    if (const auto scheduler = rollout_scheduler(request_); !scheduler) {
      add("/rollout/kv_cache", "{}", scheduler.error().message);
    }
  }

  void check_regions() {
    if (plan_.wide_area.mode == WideAreaMode::kEveryIteration) return;
    if (!cluster_.regions) {
      return add("/wide_area", "cluster {} has no regions; expected one that has, as two-regions",
                 cluster_.name);
    }
    const std::uint32_t region = cluster_.regions->nodes_per_region * cluster_.gpus_per_node;
    if (plan_.pipeline > 1 || plan_.expert > 1 || plan_.world_size() % region != 0) {
      return add("/wide_area",
                 "regions exchange whole replicas: expected pipeline 1, expert 1 and a multiple of "
                 "{} GPUs (a region's); found {}, {} and {}",
                 region, plan_.pipeline, plan_.expert, plan_.world_size());
    }
    const std::uint32_t regions = plan_.world_size() / region;
    if (plan_.data % regions != 0) {
      add("/data", "found {} replicas in {} regions; expected a multiple of {}", plan_.data,
          regions, regions);
    }
  }

  const JobRequest& request_;
  const PlanSpec& plan_;
  const hardware::GpuSpec& gpu_;
  const hardware::ClusterSpec& cluster_;
  Errors errors_;
};

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

Errors check_plan(const JobRequest& request) { return PlanChecker(request).run(); }

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
      return {{plan.plan().name, "/rollout/kv_cache",
                    fmt::format("a GPU that generates needs {:.1f} GB of weights, twice, and "
                                "cache; {} has {:.1f} GB", generator / 1e9,
                                plan.request.gpu.name, available / 1e9)}};
    }
  }
  if (need.total() <= available) return {};
  const auto remedy = remedy_for(plan.request);
  constexpr double kGiga = 1e9;
  return {{plan.plan().name, "",
                fmt::format("pipeline rank {} needs {:.1f} GB ({:.1f} parameters, {:.1f} "
                            "gradients, {:.1f} optimiser, {:.1f} activations, {:.1f} working); "
                            "{} has {:.1f} GB; {}", worst, need.total() / kGiga,
                            need.fixed.parameters / kGiga, need.fixed.gradients / kGiga,
                            need.fixed.optimizer / kGiga, need.activations / kGiga,
                            need.working / kGiga, plan.request.gpu.name, available / kGiga,
                            remedy ? "nearest that fits: " + *remedy
                                   : "no plan like it on this cluster fits")}};
}

}  // namespace bubblesim::synth
