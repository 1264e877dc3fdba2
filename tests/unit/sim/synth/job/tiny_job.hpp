// A job small enough to be added up by hand: equal linear layers in a row, a GPU and a framework
// on which only kernels take time, links on which only bytes do.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "sim/pipeline/execute.hpp"
#include "sim/synth/synthesise.hpp"

namespace bubblesim::synth {

inline constexpr std::uint64_t kWidth = 4096;  // of a layer: 4096 x 4096 weights and 4096 biases

/// `layers` linear layers with ReLU; a join and an output layer of one column follow.
inline model::ModelSpec linear_layers(std::uint32_t layers, std::uint32_t branches = 1) {
  model::BranchSpec branch;
  branch.name = "dense";
  branch.repeat = branches;
  branch.layers = layers;
  branch.inputs = kWidth;
  branch.width = kWidth;
  model::GraphSpec spec;
  spec.branches = {branch};
  return {"linear layers", spec};
}

/// A transformer of Llama's form with heads of 128.
inline model::TransformerSpec llama_like(std::uint32_t layers, std::uint32_t hidden) {
  model::TransformerSpec spec;
  spec.layers = layers;
  spec.hidden = hidden;
  spec.heads = spec.kv_heads = hidden / 128;
  spec.head_size = 128;
  spec.ffn = 4 * hidden;
  spec.vocabulary = 32000;
  spec.positions = model::Positions::kRotary;
  spec.norm = model::Norm::kRms;
  spec.gated = true;
  spec.biases = false;
  spec.dropout = false;
  return spec;
}

inline hardware::GpuSpec plain_gpu() {
  hardware::GpuSpec gpu;
  gpu.name = "plain";
  gpu.sm_count = 20000;  // a send never queues behind a kernel that fills the GPU
  gpu.sm.shared_memory_bytes = 164 << 10;
  gpu.memory = Bytes{80'000'000'000};
  gpu.dram_bandwidth = BytesPerSecond{2e12};
  return gpu;
}

/// 4 nodes of 4 GPUs. `rate`: of a GPU's port and of a NIC.
inline hardware::ClusterSpec plain_cluster(double rate = 1e16) {
  hardware::ClusterSpec cluster;
  cluster.name = "plain";
  cluster.gpus_per_node = 4;
  cluster.nodes = 4;
  cluster.node.bandwidth = BytesPerSecond{rate};
  cluster.nics = {4, BytesPerSecond{rate}, {}};
  cluster.tree.nodes_per_leaf = 4;
  return cluster;
}

inline JobRequest tiny_job(std::uint32_t layers = 8) {
  JobRequest request;
  request.model = linear_layers(layers);
  request.plan.name = "tiny";
  request.plan.optimizer.weights = model::Precision::kBf16;
  request.plan.optimizer.gradients = model::GradientStore::kWrite;
  request.plan.micro_batch = 1024;
  request.plan.global_batch = 1024;
  request.cluster = plain_cluster();
  request.gpu = plain_gpu();
  request.efficiency.peak_flops.fill(1e14);
  request.software.gradient_norm = GradientNorm::kNone;
  return request;
}

/// Sets the global batch so that each replica has `count` micro-batches.
inline void set_micro_batches(JobRequest& request, std::uint32_t count) {
  request.plan.global_batch = std::uint64_t{request.plan.data} * request.plan.micro_batch * count;
}

/// Parameters of tiny_job(): 8 linear layers and an output layer of one column.
inline constexpr double kElements = 8 * (4096.0 * 4096 + 4096) + 4096 + 1;

inline JobRequest replicated(std::uint32_t data, std::uint32_t micro_batches = 1,
                             Sharding sharding = Sharding::kNone) {
  JobRequest request = tiny_job();
  request.plan.data = data;
  request.plan.sharding = sharding;
  set_micro_batches(request, micro_batches);
  return request;
}

inline JobRequest pipelined(std::uint32_t stages, const std::string& schedule,
                            std::uint32_t micro_batches, std::uint32_t layers = 8) {
  JobRequest request = tiny_job(layers);
  request.plan.pipeline = stages;
  request.plan.schedule = schedule;
  set_micro_batches(request, micro_batches);
  return request;
}

inline ParallelPlan plan_of(JobRequest request) {
  auto plan = plan_job(std::move(request));
  if (!plan) throw std::runtime_error(plan.error().front().text());
  return std::move(*plan);
}

/// The first of the plan's faults; "none".
inline std::string fault_of(JobRequest request) {
  const auto plan = plan_job(std::move(request));
  return plan ? "none" : plan.error().front().text();
}

inline double seconds(const ParallelPlan& plan, const SynthesisedJob& job) {
  const auto lone = time_alone(job.program, plan.request.gpu);
  if (!lone) throw std::runtime_error(lone.error().text());
  return to_seconds(lone->time);
}

inline double seconds(JobRequest request) {
  const ParallelPlan plan = plan_of(std::move(request));
  return seconds(plan, synthesise(plan));
}

/// Time of a rank's kernels whose name contains `part`.
inline Duration kernel_time(const program::Program& program, std::string_view part) {
  Duration sum{};
  for (const program::Op& op : program.ops) {
    if (program.names[op.name].find(part) != std::string_view::npos) sum += op.duration;
  }
  return sum;
}

/// Time of the optimiser's kernels on a rank.
inline double optimizer_seconds(const program::Program& program) {
  Duration sum{};
  for (const char* name : {"adam", "weight copy", "gradient zero", "gradient norm",
                           "gradient clip", "gradient unscale"}) {
    sum += kernel_time(program, name);
  }
  return to_seconds(sum);
}

/// The time of the plan's schedule if only kernels take time, computed from sums of kernels.
inline double table_seconds(const ParallelPlan& plan) {
  pipeline::UnitTimes times;
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    pipeline::StageTimes stage_times{0, 0, 0};
    const StageLayers& run = plan.stages[s].layers;
    for (std::uint32_t i = run.first; i < run.last; ++i) {
      const TimedLayer& layer = plan.model.layers[plan.kind_of(i)];
      for (const auto& [items, sum] : {std::pair{&layer.forward, &stage_times.forward},
                                       std::pair{&layer.input_grad, &stage_times.input_grad},
                                       std::pair{&layer.weight_grad, &stage_times.weight_grad}}) {
        for (const TimedItem& item : *items) {
          *sum += to_ns(plan.model.kernels[std::get<std::uint32_t>(item)].duration);
        }
      }
    }
    times.by_stage.push_back(stage_times);
  }
  return static_cast<double>(pipeline::execute(plan.schedule, plan.graph, times).makespan) * 1e-9;
}

/// Bytes of the whole arrays of the job's collectives of one kind, an iteration.
inline double bytes_of_kind(const SynthesisedJob& job, traces::CollectiveKind kind) {
  double sum = 0;
  for (const workload::JoinedCollective& stage_times : job.program.collectives) {
    if (stage_times.kind == kind) sum += static_cast<double>(stage_times.bytes);
  }
  return sum;
}

}  // namespace bubblesim::synth
