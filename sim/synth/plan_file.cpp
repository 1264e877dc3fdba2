#include "sim/synth/plan_file.hpp"

#include <filesystem>
#include <utility>

#include "sim/base/input_file.hpp"
#include "sim/model/efficiency.hpp"

namespace bubblesim::synth {
namespace {

constexpr std::array<Choice<model::Recompute>, 3> kRecompute{{
    {"none", model::Recompute::kNone}, {"selective", model::Recompute::kSelective},
    {"full", model::Recompute::kFull}}};
constexpr std::array<Choice<model::AttentionKernels>, 2> kAttention{{
    {"flash", model::AttentionKernels::kFlash}, {"unfused", model::AttentionKernels::kUnfused}}};
constexpr std::array<Choice<Sharding>, 4> kShardings{{
    {"none", Sharding::kNone}, {"optimizer", Sharding::kOptimizer},
    {"gradients", Sharding::kGradients}, {"parameters", Sharding::kParameters}}};
constexpr std::array<Choice<model::GradientStore>, 2> kStores{{
    {"write", model::GradientStore::kWrite},
    {"accumulate_fp32", model::GradientStore::kAccumulateFp32}}};
constexpr std::array<Choice<GradientSync>, 2> kSyncs{{
    {"overlapped", GradientSync::kOverlapped},
    {"after_backward", GradientSync::kAfterBackward}}};
constexpr std::array<Choice<Receives>, 2> kReceives{{
    {"in_turn", Receives::kInTurn}, {"ahead", Receives::kAhead}}};
constexpr std::array<Choice<WideAreaMode>, 3> kWideArea{{
    {"every_iteration", WideAreaMode::kEveryIteration},
    {"asynchronous", WideAreaMode::kAsynchronous}, {"averaging", WideAreaMode::kAveraging}}};
constexpr std::array<Choice<model::Optimizer>, 2> kOptimizers{{
    {"adam", model::Optimizer::kAdam}, {"sgd_momentum", model::Optimizer::kSgdMomentum}}};

constexpr std::array<Choice<ExpertPlacement>, 2> kPlacements{{
    {"contiguous", ExpertPlacement::kContiguous}, {"balanced", ExpertPlacement::kBalanced}}};

// A list, or the path of a table beside the plan.
void read_routing_shares(ObjectReader& reader, const std::string& folder, ExpertRouting& routing) {
  if (!reader.has("shares")) return;
  if (reader.kind("shares") == JsonKind::kText) {
    routing.shares_csv = (std::filesystem::path(folder) / reader.text("shares")).string();
    return;
  }
  routing.shares = reader.numbers("shares", {0, kMostShare});
  if (routing.shares.empty()) {
    reader.fault("shares", "found no share; expected one for each expert, or a CSV file's path");
  }
}

void read_routing(ObjectReader& object, const std::string& folder, PlanSpec& plan) {
  ObjectReader reader = object.child("routing", Presence::kOptional);
  if (!reader.present()) return;
  ExpertRouting routing;
  reader.one_of({"zipf", "shares"});
  if (reader.has("zipf")) routing.zipf = reader.number("zipf", {0, 10});
  read_routing_shares(reader, folder, routing);
  routing.placement = reader.choice("placement", kPlacements, ExpertPlacement::kContiguous);
  routing.ranks =
      reader.integers<std::uint32_t>("ranks", {0, kMostRanks}, Presence::kOptional);
  if (!routing.ranks.empty() && reader.has("placement")) {
    reader.fault("placement",
                 "found beside \"ranks\", which place the experts; expected one of them");
  }
  plan.routing = std::move(routing);
}

void read_tensor_overlap(ObjectReader& object, PlanSpec& plan) {
  ObjectReader reader = object.child("tensor_overlap", Presence::kOptional);
  if (!reader.present()) return;
  TensorOverlapPlan overlap;
  overlap.first = reader.integer<std::uint32_t>("first", {0, 1U << 20U}, 0);
  overlap.blocks = reader.integer<std::uint32_t>("sms", {0, 1024}, 0);
  overlap.fused_norm = reader.flag("fused_norm", false);
  plan.tensor_overlap = overlap;
}

void read_split(ObjectReader& object, const std::string& folder, PlanSpec& plan) {
  const Range<std::uint32_t> ranks{1, kMostRanks};
  plan.data = object.integer<std::uint32_t>("data", ranks, 1);
  plan.tensor = object.integer<std::uint32_t>("tensor", ranks, 1);
  plan.context = object.integer<std::uint32_t>("context", ranks, 1);
  plan.expert = object.integer<std::uint32_t>("expert", ranks, 1);
  plan.pipeline = object.integer<std::uint32_t>("pipeline", ranks, 1);
  plan.sequence_parallel = object.flag("sequence_parallel", false);
  read_tensor_overlap(object, plan);
  plan.expert_load = object.number("expert_load", {1, 1e6}, 1);
  read_routing(object, folder, plan);
  if (plan.routing && object.has("expert_load")) {
    object.fault("expert_load",
                 "found beside \"routing\", of which it comes; expected one of them");
  }
  const std::uint64_t world = std::uint64_t{plan.data} * plan.tensor * plan.context;
  if (world > kMostRanks || world * plan.pipeline > kMostRanks) {
    object.fault("", "data x tensor x context x pipeline is more than " +
                         std::to_string(kMostRanks) + " ranks");
    plan.data = plan.tensor = plan.context = plan.pipeline = 1;
  }
}

void read_schedule(ObjectReader& object, const std::string& folder, PlanSpec& plan) {
  plan.schedule = object.text("schedule", "1f1b");
  plan.receives = object.choice("receives", kReceives, Receives::kInTurn);
  plan.chunks = object.integer<std::uint32_t>("chunks", {0, kMostChunks}, 0);
  if (object.has("schedule_csv")) {
    plan.schedule_csv = (std::filesystem::path(folder) / object.text("schedule_csv")).string();
  }
  plan.layers_per_stage = object.integers<std::uint32_t>("layers_per_stage", {1, 1U << 20U},
                                                         Presence::kOptional);
}

GraphStageSpec read_stage(ObjectReader object) {
  constexpr Range<std::uint32_t> kNumbers{0, 1U << 20U};
  GraphStageSpec stage;
  stage.branches = object.texts("branches", Presence::kOptional);
  const auto layers = object.integers<std::uint32_t>("layers", kNumbers, Presence::kOptional);
  if (stage.branches.empty() == layers.empty()) {
    object.fault("", "expected either \"layers\": [first, last) or \"branches\"");
  } else if (!layers.empty() && (layers.size() != 2 || layers[0] >= layers[1])) {
    object.fault("layers", "expected [first, last), at least one layer");
  } else if (!layers.empty()) {
    stage.first = layers[0];
    stage.last = layers[1];
  }
  stage.after = object.integers<std::uint32_t>("after", kNumbers, Presence::kOptional);
  stage.micro_batch = object.integer<std::uint32_t>("micro_batch", {1, kMostMicroBatch}, 1);
  return stage;
}

void read_stages(ObjectReader& object, PlanSpec& plan) {
  if (!object.has("stages")) return;
  for (ObjectReader& stage : object.children("stages")) plan.stages.push_back(read_stage(stage));
}

void read_gradients(ObjectReader& object, PlanSpec& plan) {
  GradientPlan& out = plan.gradients;
  plan.optimizer.gradients = model::GradientStore::kWrite;
  const double stored = model::optimizer_memory(plan.optimizer).weights;
  out.element_bytes = stored;
  ObjectReader reader = object.child("gradients", Presence::kOptional);
  if (!reader.present()) return;
  plan.optimizer.gradients = reader.choice("store", kStores, model::GradientStore::kWrite);
  out.sync = reader.choice("sync", kSyncs, out.sync);
  out.first_bucket = reader.bytes("first_bucket", {Bytes{1}}, out.first_bucket);
  out.bucket = reader.bytes("bucket", {Bytes{1}}, out.bucket);
  out.element_bytes = reader.number("element_bytes", {0.25, 8}, stored);
  out.prefetch = reader.integer<std::uint32_t>("prefetch", {0, 1024}, out.prefetch);
}

void read_parameters(ObjectReader& object, PlanSpec& plan) {
  ObjectReader reader = object.child("parameters", Presence::kOptional);
  if (!reader.present()) return;
  const double stored = model::optimizer_memory(plan.optimizer).weights;
  plan.parameters.primary = reader.integer<std::uint32_t>("primary", {0, kMostRanks}, 0);
  plan.parameters.secondary = reader.integer<std::uint32_t>("secondary", {0, kMostRanks}, 0);
  plan.parameters.element_bytes = reader.number("element_bytes", {0.25, 8}, stored);
}

void read_host(ObjectReader& object, HostPlan& out) {
  ObjectReader reader = object.child("host", Presence::kOptional);
  if (!reader.present()) return;
  if (reader.has("bandwidth_gb_per_s")) {
    out.bandwidth = BytesPerSecond{1e9 * reader.number("bandwidth_gb_per_s", {0.001, 1e6})};
  }
  out.activations = reader.number("activations", {0, 1}, 0);
  out.ahead = reader.integer<std::uint32_t>("ahead", {0, 1024}, 1);
  if (reader.has("optimizer_per_s")) {
    // An update is a pause, of as many steps of the program as it has times 4.29 s.
    out.optimizer_per_s = reader.number("optimizer_per_s", {1e5, 1e15});
  }
  out.checkpoint_every = reader.integer<std::uint32_t>("checkpoint_every", {0, 10'000}, 0);
}

void read_rollout(ObjectReader& object, PlanSpec& plan) {
  ObjectReader reader = object.child("rollout", Presence::kOptional);
  if (!reader.present()) return;
  constexpr std::uint32_t kMostTokens = 1U << 20U;
  constexpr std::uint32_t kMostSequences = 1U << 16U;
  RolloutPlan rollout;
  rollout.prompt_tokens = reader.integer<std::uint32_t>("prompt_tokens", {1, kMostTokens});
  rollout.mean_tokens = reader.number("mean_tokens", {1, static_cast<double>(kMostTokens)});
  rollout.cv = reader.number("cv", {0.01, 100});
  rollout.most_tokens = reader.integer<std::uint32_t>("most_tokens", {1, kMostTokens});
  rollout.spare = reader.number("spare", {1, 16}, 1);
  rollout.rounds = reader.integer<std::uint32_t>("rounds", {1, 1000}, 1);
  rollout.seed = reader.integer<std::uint64_t>("seed", {0, 1ULL << 53U}, 1);
  rollout.max_num_seqs = reader.integer<std::uint32_t>("max_num_seqs", {1, kMostSequences}, 0);
  rollout.max_num_batched_tokens = reader.integer<std::uint32_t>(
      "max_num_batched_tokens", {1, kMostTokens}, rollout.max_num_batched_tokens);
  rollout.kv_cache = reader.bytes("kv_cache", {Bytes{1}}, Bytes{0});
  rollout.generators = reader.integer<std::uint32_t>("generators", {0, 1U << 16U}, 0);
  rollout.staleness = reader.integer<std::uint32_t>("staleness", {0, 1000}, 0);
  rollout.jobs = reader.integer<std::uint32_t>("jobs", {1, 1000}, 1);
  rollout.switch_time =
      reader.duration("switch", {Duration::zero(), std::chrono::hours{1}}, Duration::zero());
  if (rollout.jobs > 1 && !reader.has("switch")) {
    reader.fault("switch", "missing beside \"jobs\"; expected the time in which a GPU changes "
                           "jobs, as \"3s\" (\"0ns\": at once)");
  }
  plan.rollout = rollout;
}

void read_wide_area(ObjectReader& object, WideAreaPlan& out) {
  ObjectReader reader = object.child("wide_area", Presence::kOptional);
  if (!reader.present()) return;
  out.mode = reader.choice("mode", kWideArea);
  out.interval = reader.integer<std::uint32_t>("every", {1, 10'000}, 1);
}

void read_work(ObjectReader& object, PlanSpec& plan) {
  plan.global_batch = object.integer<std::uint64_t>("global_batch", {1, kMostSamples});
  plan.micro_batch = object.integer<std::uint32_t>("micro_batch", {1, 1U << 20U}, 1);
  if (object.has("sequence")) {
    plan.sequence = object.integer<std::uint64_t>("sequence", {1, 1ULL << 24U});
  }
  plan.precision = object.choice("precision", model::kPrecisionNames, model::Precision::kBf16);
  plan.recompute = object.choice("recompute", kRecompute, model::Recompute::kNone);
  plan.attention = object.choice("attention", kAttention, model::AttentionKernels::kFlash);
  plan.sm_carveout = object.integer<std::uint32_t>("sm_carveout", {0, 1024}, 0);
  plan.optimizer.weights = plan.precision;
  plan.optimizer.kind = object.choice("optimizer", kOptimizers, model::Optimizer::kAdam);
  plan.sharding = object.choice("sharding", kShardings, Sharding::kNone);
  plan.software = object.text("software", "pytorch");
  plan.folding = object.choice("folding", kFoldingNames, Folding::kAll);
}

CheckedResult<PlanSpec> read_document(const JsonDocument& document, const std::string& folder) {
  return read_whole(document, [&](ObjectReader& root) {
    PlanSpec plan = read_plan(root, folder);
    root.finish();
    plan.name = document.file();
    return plan;
  });
}

}  // namespace

PlanSpec read_plan(ObjectReader& object, const std::string& folder) {
  PlanSpec plan;
  (void)object.text("note", "");
  read_split(object, folder, plan);
  read_schedule(object, folder, plan);
  read_stages(object, plan);
  read_work(object, plan);
  read_gradients(object, plan);
  read_parameters(object, plan);
  read_host(object, plan.host);
  read_rollout(object, plan);
  read_wide_area(object, plan.wide_area);
  return plan;
}

CheckedResult<PlanSpec> read_plan_file(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load_file(path));
  return read_document(document, std::filesystem::path(path).parent_path().string());
}

CheckedResult<PlanSpec> parse_plan(std::string_view text, std::string label) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document,
                             JsonDocument::parse(text, std::move(label)));
  return read_document(document, "");
}

}  // namespace bubblesim::synth
