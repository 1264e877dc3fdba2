// A parallel plan: the distribution of a training job over GPUs, and the order of its work.
// configs/plans/README.md documents the file form, key by key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/model/training_work.hpp"
#include "sim/synth/expert_routing.hpp"

namespace bubblesim::synth {

/// The data that replicas shard instead of copying (ZeRO stages 1 to 3; FSDP is 3).
enum class Sharding : std::uint8_t { kNone, kOptimizer, kGradients, kParameters };

/// When gradients are exchanged.
enum class GradientSync : std::uint8_t {
  kOverlapped,     ///< bucket by bucket, as the last micro-batch's backward pass fills them
  kAfterBackward,  ///< at once, after all backward passes
};

/// Defaults are PyTorch DDP's (reducer.hpp: kDefaultFirstBucketBytes, kDefaultBucketBytesCap).
struct GradientPlan {
  GradientSync sync = GradientSync::kOverlapped;
  Bytes first_bucket{Bytes{1ULL << 20U}};
  Bytes bucket{Bytes{25ULL << 20U}};
  double element_bytes = 2;       ///< bytes of an exchanged gradient's element (qgZ: 0.5)
  std::uint32_t prefetch = 1;     ///< kParameters: layers gathered ahead of their use
};

/// How sharded parameters are kept and gathered (ZeRO++, arXiv 2306.10209; levels inside a node:
/// arXiv 2501.04266).
struct ParameterPlan {
  /// This many neighbouring replicas together keep a first copy of the parameters; 0: all replicas
  /// keep one. Gradients and optimizer states are sharded over all replicas in either case, so that
  /// replicas at the same place of each copy gather the updates once an iteration.
  std::uint32_t primary = 0;
  /// hpZ: this many neighbouring replicas together keep a second copy, from a layer's forward pass
  /// on, and gather it for the backward pass; 0: backward passes, too, gather from the first copy.
  std::uint32_t secondary = 0;
  double element_bytes = 0;  ///< qwZ: bytes of an element gathered from the first copy; 0: the
                             ///< weights'
};

/// Exchanges among tensor ranks beside compute: a micro-batch has two parts, and each computes
/// during the other's exchange (TokenWeave, arXiv 2505.11329: prompts of inference; Domino, arXiv
/// 2409.15241: samples of training).
struct TensorOverlapPlan {
  std::uint32_t first = 0;   ///< samples of the first part; 0: half of the micro-batch
  std::uint32_t blocks = 0;  ///< of each exchange's kernel, one on an SM; 0: as NCCL
  bool fused_norm = false;   ///< the kernel of a forward exchange includes the residual's sum and
                             ///< the norm, for a part of the tokens on each rank
};

/// Data kept in host memory, or in NVMe and CXL memory behind it, and moved over the host's link
/// (sim/synth/transfers.hpp).
struct HostPlan {
  BytesPerSecond bandwidth{};    ///< of a GPU's link, one direction; 0: as in the device file
  double activations = 0;        ///< share of a layer's data for its backward pass
  std::uint32_t ahead = 1;       ///< layers fetched ahead of their backward pass
  double optimizer_per_s = 0;    ///< parameters that the host updates a second; 0: the GPU updates
                                 ///< them
  std::uint32_t checkpoint_every = 0;  ///< iterations between checkpoints; 0: none

  [[nodiscard]] bool moves() const {
    return activations > 0 || optimizer_per_s > 0 || checkpoint_every > 0;
  }
};

/// Responses generated before each training step (sim/synth/rollout.hpp), by a server's engine: as
/// many as the step trains on, of lengths drawn from a lognormal distribution.
struct RolloutPlan {
  std::uint32_t prompt_tokens = 1;
  double mean_tokens = 1;          ///< of a response, before the cut to most_tokens
  double cv = 1;                   ///< coefficient of variation
  std::uint32_t most_tokens = 1;
  double spare = 1;                ///< responses begun / responses kept, the first to end; >= 1
  std::uint32_t rounds = 1;        ///< iterations with different lengths; then they repeat
  std::uint64_t seed = 1;
  std::uint32_t max_num_seqs = 0;  ///< on one GPU at once; 0: all that it begins
  std::uint32_t max_num_batched_tokens = 2048;  ///< of a step of its engine
  Bytes kv_cache{};                ///< of a GPU; 0: enough for all responses at their longest
  /// Number of GPUs that generate and do not train, whose ranks come after the others; 0: each
  /// replica generates its own responses. The fields below need at least one.
  std::uint32_t generators = 0;
  std::uint32_t staleness = 0;     ///< further training steps that a rollout does not wait for
  std::uint32_t jobs = 1;          ///< equal jobs, whose iterations alternate on all GPUs
  Duration switch_time{};          ///< from one job's training step to another's, > 1 job

  /// A rollout waits for the weights of the iteration this many before it. Iterations in between
  /// are another job's, or not waited for.
  [[nodiscard]] std::uint32_t distance() const { return jobs * (1 + staleness); }
};

/// The exchange of regions over wide-area links (Cloudless-Training: arXiv 2303.05330).
enum class WideAreaMode : std::uint8_t {
  kEveryIteration,  ///< the same synchronous exchange as within a region
  kAsynchronous,    ///< accumulated gradients, sent every k iterations, not waited for
  kAveraging,       ///< parameters, averaged every k iterations, waited for
};

struct WideAreaPlan {
  WideAreaMode mode = WideAreaMode::kEveryIteration;
  std::uint32_t interval = 1;  ///< iterations, >= 1
};

/// Which replicas are simulated separately. Folded ones behave equally; one represents all, and its
/// collectives have their full size.
enum class Folding : std::uint8_t {
  kAll,      ///< one rank for each pipeline stage
  kData,     ///< separate tensor and context ranks, folded data replicas
  kNothing,  ///< every rank
};

/// A stage of a graph pipeline (GraphPipe, arXiv 2406.17145), on a rank of its own.
struct GraphStageSpec {
  std::uint32_t first = 0;            ///< layers [first, last) of ModelWork::layers; or branches
  std::uint32_t last = 0;
  std::vector<std::string> branches;  ///< by name, in order: "dense" (all its copies), "dense/2"
                                      ///< (one copy), "join" (the layers behind the branches)
  std::vector<std::uint32_t> after;   ///< stages whose output it reads or forwards
  std::uint32_t micro_batch = 1;      ///< in micro-batches of the plan
};

/// When the receive of a pipeline stage starts on the GPU.
enum class Receives : std::uint8_t {
  kInTurn,  ///< after the compute launched before it, as PyTorch's NCCL streams wait
  kAhead,   ///< once the host has launched it: it holds SMs beside compute until its peer starts
};

struct PlanSpec {
  std::string name;
  std::uint32_t data = 1;
  std::uint32_t tensor = 1;
  std::uint32_t context = 1;
  std::uint32_t expert = 1;       ///< inside the data and context ranks
  std::uint32_t pipeline = 1;
  bool sequence_parallel = false;
  std::optional<TensorOverlapPlan> tensor_overlap;
  double expert_load = 1;         ///< tokens of the busiest expert rank over the mean, >= 1
  std::optional<ExpertRouting> routing;        ///< replaces expert_load, which follows from it

  std::string schedule = "1f1b";  ///< a generator of sim/pipeline
  Receives receives = Receives::kInTurn;
  std::uint32_t chunks = 0;       ///< stages of each rank; 0: the schedule's own default
  std::optional<std::string> schedule_csv;     ///< instead of a generator
  std::vector<std::uint32_t> layers_per_stage; ///< empty: even
  std::vector<GraphStageSpec> stages;          ///< schedule "graph"; empty: a chain

  std::uint64_t global_batch = 1; ///< samples of an iteration, over the whole job
  std::uint32_t micro_batch = 1;  ///< samples
  std::optional<std::uint64_t> sequence;       ///< tokens; nothing: the model's
  model::Precision precision = model::Precision::kBf16;
  model::Recompute recompute = model::Recompute::kNone;
  model::AttentionKernels attention = model::AttentionKernels::kFlash;
  model::OptimizerSpec optimizer;
  std::uint32_t sm_carveout = 0;  ///< SMs that products leave free for kernels of exchanges

  Sharding sharding = Sharding::kNone;
  GradientPlan gradients;
  ParameterPlan parameters;
  HostPlan host;
  std::optional<RolloutPlan> rollout;
  WideAreaPlan wide_area;
  std::string software = "pytorch";            ///< a file of configs/software
  Folding folding = Folding::kAll;

  /// GPUs that train.
  [[nodiscard]] std::uint32_t trainers() const { return data * tensor * context * pipeline; }
  [[nodiscard]] std::uint32_t world_size() const {
    return trainers() + (rollout ? rollout->generators : 0);
  }
  /// Precondition: the batch is divisible.
  [[nodiscard]] std::uint32_t micro_batches() const {
    return static_cast<std::uint32_t>(global_batch / data / micro_batch);
  }
};

/// Another value for a key of a plan file: {"/data", "8"}, {"/schedule", "gpipe"}.
struct PlanChange {
  std::string pointer;  ///< JSON pointer
  std::string value;    ///< JSON, or a text
};

/// Each name is a path (it has a "/" or ends in ".json"), else the id of a file of its folder.
struct JobNames {
  std::string model;
  std::variant<std::string, PlanSpec> plan;
  std::vector<PlanChange> changes;      ///< by the plan's keys
  std::string cluster;
  std::optional<std::uint32_t> nodes;   ///< >= 1; nothing: the cluster's
  /// Seed of the hash that places flows on up-links; nothing: the cluster's.
  std::optional<std::uint64_t> hash_seed = std::nullopt;
  std::optional<std::variant<std::string, hardware::GpuSpec>> device;  ///< nothing: the cluster's
  std::optional<std::string> software;  ///< nothing: the plan's
  std::optional<Folding> folding;       ///< nothing: the plan's
};

}  // namespace bubblesim::synth
