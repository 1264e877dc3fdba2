// What ranks launch: kernels in order, bytes of collectives.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "sim/model/training_work.hpp"
#include "sim/pipeline/registry.hpp"
#include "tests/unit/sim/synth/job/tiny_job.hpp"

namespace bubblesim::synth {
namespace {

using traces::CollectiveKind;

std::vector<std::string> names(const program::Program& program) {
  std::vector<std::string> out;
  for (const program::Op& op : program.ops) out.emplace_back(program.names[op.name]);
  return out;
}

TEST(Program, RunsForwardThenBackwardThenTheOptimiser) {
  JobRequest request = tiny_job(2);
  const SynthesisedJob job = synthesise(plan_of(request));
  const std::vector<std::string> expected{
      "linear gemm", "relu", "linear gemm", "relu", "concatenate", "linear gemm", "loss"};
  const auto all = names(job.program.ranks[0]);
  ASSERT_GT(all.size(), expected.size());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), all.begin()));
  // Backward: a relu, two products and a bias for each layer; optimiser last.
  EXPECT_EQ(std::count(all.begin(), all.end(), "linear gemm weight-grad"), 3);
  EXPECT_EQ(all.back(), "gradient zero");
}

TEST(Program, HasEachKernelOnceAMicroBatch) {
  JobRequest request = tiny_job(2);
  set_micro_batches(request, 5);
  const auto all = names(synthesise(plan_of(request)).program.ranks[0]);
  EXPECT_EQ(std::count(all.begin(), all.end(), "linear gemm"), 15);
}

TEST(Program, FusesTheSoftmaxAsItsSoftwareDoes) {
  JobRequest request = tiny_job();
  request.model = {"small decoder", llama_like(1, 1024)};  // 8 heads
  request.plan.micro_batch = 1;
  request.plan.global_batch = 1;
  request.plan.sequence = 64;
  request.plan.attention = model::AttentionKernels::kUnfused;
  const auto casts = [&] {
    const auto all = names(synthesise(plan_of(request)).program.ranks[0]);
    return std::count(all.begin(), all.end(), "softmax cast");
  };
  EXPECT_EQ(casts(), 0);
  request.software.fused_softmax = 64;
  EXPECT_EQ(casts(), 0);
  request.software.fused_softmax = 63;
  EXPECT_EQ(casts(), 1);
}

TEST(Program, IsTheSameEachTime) {
  JobRequest request = tiny_job();
  request.plan.data = 2;
  request.plan.pipeline = 2;
  request.plan.folding = Folding::kNothing;
  set_micro_batches(request, 4);
  const ParallelPlan plan = plan_of(request);
  const SynthesisedJob a = synthesise(plan);
  const SynthesisedJob b = synthesise(plan);
  ASSERT_EQ(a.program.ranks.size(), b.program.ranks.size());
  for (std::size_t r = 0; r < a.program.ranks.size(); ++r) {
    EXPECT_EQ(names(a.program.ranks[r]), names(b.program.ranks[r]));
  }
  EXPECT_EQ(time_alone(a.program, plan.request.gpu)->events,
            time_alone(b.program, plan.request.gpu)->events);
  EXPECT_EQ(seconds(plan, a), seconds(plan, b));
}

// Receives of the first stage's gradients, and how many of them wait for one of its kernels.
std::pair<std::size_t, std::size_t> receives_behind_kernels(Receives receives) {
  JobRequest request = pipelined(2, "1f1b", 4);
  request.plan.receives = receives;
  const SynthesisedJob job = synthesise(plan_of(request));
  const program::Program& rank = job.program.ranks[0];
  std::pair<std::size_t, std::size_t> out;
  for (const program::Op& op : rank.ops) {
    if (rank.names[op.name] != "receive gradients") continue;
    ++out.first;
    const auto edges = std::span(rank.edges).subspan(op.first_edge, op.edge_count);
    out.second += std::any_of(edges.begin(), edges.end(), [&](const program::OpEdge& edge) {
      return rank.ops[edge.before].kind == program::WorkKind::kKernel;
    }) ? 1 : 0;
  }
  return out;
}

TEST(Program, ReceivesComeInTurnUnlessTheyArePostedAhead) {
  EXPECT_EQ(receives_behind_kernels(Receives::kInTurn), std::pair(4UL, 4UL));
  EXPECT_EQ(receives_behind_kernels(Receives::kAhead), std::pair(4UL, 0UL));
}

double volume(const JobRequest& request, CollectiveKind kind) {
  return bytes_of_kind(synthesise(plan_of(request)), kind);
}

TEST(Volume, DataParallelReducesEachGradientOnce) {
  EXPECT_EQ(volume(replicated(8, 3), CollectiveKind::kAllReduce), 2 * kElements);
}

// A ring all-reduce moves an array twice, a gather or scatter once: 2 against 3.
TEST(Volume, ParametersInShardsCostHalfAsMuchAgain) {
  const JobRequest request = replicated(8, 1, Sharding::kParameters);
  EXPECT_EQ(volume(request, CollectiveKind::kAllGather), 2 * 2 * kElements);
  EXPECT_EQ(volume(request, CollectiveKind::kReduceScatter), 2 * kElements);
}

TEST(Volume, OptimiserShardsCostNoMoreThanCopies) {
  for (const Sharding sharding : {Sharding::kOptimizer, Sharding::kGradients}) {
    for (const GradientSync sync : {GradientSync::kOverlapped, GradientSync::kAfterBackward}) {
      JobRequest request = replicated(8, 1, sharding);
      request.plan.gradients.sync = sync;
      EXPECT_EQ(volume(request, CollectiveKind::kAllGather), 2 * kElements);
      EXPECT_EQ(volume(request, CollectiveKind::kReduceScatter), 2 * kElements);
    }
  }
}

TEST(Volume, GradientShardsScatterAfterEachMicroBatch) {
  EXPECT_EQ(volume(replicated(8, 3, Sharding::kGradients), CollectiveKind::kReduceScatter),
            3 * 2 * kElements);
}

// 1F1B has one run of backward passes a stage. Two chunks a rank take turns, a run of as many
// micro-batches as there are ranks: 4 of them are 2 runs.
TEST(Volume, GradientShardsOfAPipelineScatterAfterEachRunOfAStage) {
  for (const auto& [schedule, chunks, runs] :
       {std::tuple{"1f1b", 1U, 1}, std::tuple{"interleaved", 2U, 2}}) {
    JobRequest request = replicated(8, 4, Sharding::kGradients);
    request.plan.pipeline = 2;
    request.plan.schedule = schedule;
    request.plan.chunks = chunks;
    EXPECT_EQ(volume(request, CollectiveKind::kReduceScatter), runs * 2 * kElements) << schedule;
  }
}

// Two pairs of ranks; each exchanges its two stages, so each parameter once.
TEST(Volume, TwoCopiesOfTheModelAddUpTheirGradients) {
  for (const char* schedule : {"dualpipe", "chimera"}) {
    EXPECT_NEAR(volume(pipelined(4, schedule, 8), CollectiveKind::kAllReduce), 2 * kElements, 8)
        << schedule;
  }
}

JobRequest small_gpt() {
  JobRequest request = tiny_job();
  request.model = model::gpt(1024, 4, 16, 1024, 256);
  request.plan.micro_batch = 4;
  set_micro_batches(request, 1);
  return request;
}

// 4 all-reduces a layer (2 forward, 2 backward) of batch x sequence x hidden x 2 bytes.
TEST(Volume, TensorParallelReducesFourTimesALayer) {
  JobRequest request = small_gpt();
  request.plan.tensor = 2;
  const double of_four_layers = volume(request, CollectiveKind::kAllReduce);
  request.model = model::gpt(1024, 8, 16, 1024, 256);
  EXPECT_EQ(volume(request, CollectiveKind::kAllReduce) - of_four_layers,
            4 * 4 * (4.0 * 256 * 1024 * 2));
}

TEST(Volume, SplitSequencesReduceNormGradientsAmongTensorRanks) {
  JobRequest request = small_gpt();
  request.plan.tensor = 2;
  request.plan.sequence_parallel = true;
  const SynthesisedJob job = synthesise(plan_of(request));
  double found = 0;
  for (const workload::JoinedCollective& collective : job.program.collectives) {
    if (job.program.groups[collective.group] == "token split 0") found += double(collective.bytes);
  }
  // Two norms of two tensors and two biases a layer, and the last norm; 2 bytes each.
  EXPECT_EQ(found, (4 * 6 + 2) * 1024 * 2);
}

TEST(Volume, TiedEmbeddingsAreReducedAmongReplicasAndBetweenStages) {
  JobRequest request = small_gpt();
  request.plan.data = 2;
  request.plan.pipeline = 2;
  set_micro_batches(request, 2);
  const double table = 1024.0 * 1024;
  const double parameters = *model::parameter_count(request.model);
  EXPECT_EQ(volume(request, CollectiveKind::kAllReduce), 2 * (parameters + table + table));
}

TEST(Volume, StagesSendOneActivationAMicroBatchEachWay) {
  EXPECT_EQ(volume(pipelined(4, "1f1b", 6), CollectiveKind::kSend),
            3 * 2 * 6 * (1024.0 * 4096 * 2));
}

TEST(Volume, ExpertsInShardsAreGatheredAndScattered) {
  JobRequest request = small_gpt();
  auto& spec = std::get<model::TransformerSpec>(request.model.network);
  spec.mixture = model::MixtureSpec{4, 2, 4096, 0, 0, 1};
  request.plan.data = 4;
  set_micro_batches(request, 1);
  request.plan.expert = 2;
  request.plan.sharding = Sharding::kParameters;
  const ParallelPlan plan = plan_of(request);
  const Elements elements = elements_of(plan, 0);
  EXPECT_GT(elements.experts, 0);
  const SynthesisedJob job = synthesise(plan);
  EXPECT_EQ(bytes_of_kind(job, CollectiveKind::kReduceScatter),
            2 * (elements.shared + elements.experts));
}

// Every rank apart, so that any two that order their collectives differently would never end.
TEST(Schedules, WithAnyShardingRunToTheEnd) {
  for (const char* schedule : {"1f1b", "interleaved", "zb-v", "dualpipev", "dualpipe"}) {
    for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer, Sharding::kGradients,
                                    Sharding::kParameters}) {
      for (const bool experts : {false, true}) {
        JobRequest request = small_gpt();
        if (experts) {
          auto& spec = std::get<model::TransformerSpec>(request.model.network);
          spec.mixture = model::MixtureSpec{4, 2, 1024, 0, 0, 1};
          request.plan.expert = 2;
        }
        request.plan.data = request.plan.tensor = request.plan.pipeline = 2;
        request.plan.sequence_parallel = true;
        request.plan.schedule = schedule;
        request.plan.sharding = sharding;
        request.plan.folding = Folding::kNothing;
        request.software.gradient_norm = GradientNorm::kGlobal;
        set_micro_batches(request, 4);
        const auto plan = plan_job(request);
        ASSERT_TRUE(plan) << plan.error().front().text();
        const auto lone = time_alone(synthesise(*plan).program, request.gpu);
        EXPECT_TRUE(lone) << schedule << " " << static_cast<int>(sharding) << " " << experts;
      }
    }
  }
}

// How long synthesised iterations take, against sums by hand and against schedule tables.

TEST(IterationTime, OneGpuTakesTheSumOfItsKernels) {
  const ParallelPlan plan = plan_of(tiny_job());
  const SynthesisedJob job = synthesise(plan);
  EXPECT_NEAR(seconds(plan, job), to_seconds(kernel_time(job.program.ranks[0], "")), 1e-6);
}

TEST(IterationTime, APauseLongerThanAStepHoldsIsTakenInFull) {
  JobRequest request = tiny_job(2);
  const double without = seconds(request);
  request.software.iteration = std::chrono::seconds(10);
  EXPECT_NEAR(seconds(request) - without, 10, 0.001);
  request.software.iteration = {};
  request.software.forward_gap = std::chrono::seconds(6);  // seven kernels
  EXPECT_NEAR(seconds(request) - without, 7 * 6, 0.01);
}

TEST(IterationTime, ATransferAddsItsBytesOverTheLinksRate) {
  JobRequest request = pipelined(2, "sequential", 1);
  const double free = seconds(request);
  request.cluster = plain_cluster(1e10);
  // 1024 samples x 4096 x 2 bytes at 10 GB/s: 839 us, there and back.
  EXPECT_NEAR(seconds(request) - free, 2 * 1024 * 4096 * 2 / 1e10, 2e-5);
}

TEST(IterationTime, EverySchedulesTableIsWhatItsJobTakes) {
  for (const pipeline::ScheduleSpec& spec : pipeline::schedule_specs()) {
    for (const std::uint32_t p : {2U, 4U, 8U}) {
      for (const std::uint32_t m : {2 * p, 3 * p}) {
        JobRequest request = pipelined(p, spec.name, m, 16);
        // Without it ranks run ahead into the next iteration, which ZB-H2 is made for.
        request.software.gradient_norm = GradientNorm::kGlobal;
        const ParallelPlan plan = plan_of(request);
        const SynthesisedJob job = synthesise(plan);
        double optimizer = 0;  // all start it together
        for (const program::Program& rank : job.program.ranks) {
          optimizer = std::max(optimizer, optimizer_seconds(rank));
        }
        const double took = seconds(plan, job) - optimizer;
        // Gradients of the two copies cost nothing on these links.
        EXPECT_NEAR(took / table_seconds(plan), 1, 0.002) << spec.name << " " << p << " " << m;
      }
    }
  }
}

JobRequest ddp(double rate) {
  JobRequest request = tiny_job(4);
  request.plan.data = 4;
  request.cluster = plain_cluster(rate);
  request.plan.gradients.first_bucket = Bytes{1};
  request.plan.gradients.bucket = Bytes{1};
  set_micro_batches(request, 1);
  return request;
}

TEST(IterationTime, OverlappedBucketsLeaveTheLastOneExposed) {
  const double free = seconds(ddp(1e16));
  // A layer's gradients take 2 (4096^2 + 4096) bytes x 1.5 / 500 GB/s = 101 us, less than its
  // backward pass; only the first layer's, which come last, are waited for.
  const double exposed = 2.0 * (4096.0 * 4096 + 4096) * 1.5 / 5e11;
  EXPECT_NEAR(seconds(ddp(5e11)) - free, exposed, 0.05 * exposed);
}

TEST(IterationTime, GradientsAfterTheBackwardPassAreAllExposed) {
  JobRequest request = ddp(5e11);
  request.plan.gradients.sync = GradientSync::kAfterBackward;
  const double layers = 4 * (4096.0 * 4096 + 4096) + 4096 + 1;
  EXPECT_NEAR(seconds(request) - seconds(ddp(1e16)), 2 * layers * 1.5 / 5e11, 1e-5);
}

TEST(IterationTime, MoreThan255BucketsAreAllWaitedFor) {
  JobRequest request = ddp(1e9);
  request.model = linear_layers(150);  // 302 buckets
  const double bytes = 2 * (150 * (4096.0 * 4096 + 4096) + 4096 + 1);
  EXPECT_GT(seconds(request), bytes * 1.5 / 1e9);
}

/// 8 replicas in two regions, which exchange every four iterations.
JobRequest wide_area_job(WideAreaMode mode, double rate = 1e9) {
  JobRequest request = tiny_job(4);
  request.plan.data = 8;
  request.plan.wide_area = {mode, 4};
  request.cluster.regions = hardware::RegionSpec{2, BytesPerSecond{rate}, {}};
  request.cluster.gpus_per_node = 2;
  request.cluster.nics.count = 2;
  set_micro_batches(request, 1);
  return request;
}

TEST(WideArea, AsynchronousTakesLocalWorkAndAveragingWaits) {
  JobRequest local = wide_area_job({});
  local.plan.wide_area = {};
  local.plan.data = 4;
  set_micro_batches(local, 1);
  const double alone = seconds(local);
  EXPECT_NEAR(seconds(wide_area_job(WideAreaMode::kAsynchronous)) / alone, 1, 0.02);
  // Two regions exchange all parameters once over 1 GB/s in four iterations.
  const double bytes = 2 * (4 * (4096.0 * 4096 + 4096) + 4096 + 1);
  EXPECT_NEAR(seconds(wide_area_job(WideAreaMode::kAveraging)) - alone, bytes / 1e9 / 4,
              0.1 * bytes / 1e9 / 4);
}

// 134 MB between two regions take 134 ms at 1 GB/s and 13 ms at 10 GB/s; four iterations of some 5
// ms are 20 ms.
TEST(WideArea, ExchangesThatFallBehindAreCounted) {
  const auto late = [](double rate) {
    const SynthesisedJob job =
        synthesise(plan_of(wide_area_job(WideAreaMode::kAsynchronous, rate)));
    EXPECT_FALSE(job.program.ranks.empty());
    return job.program.counters.count(kLateExchanges.name) / job.program.ranks.size();
  };
  EXPECT_EQ(late(1e9), 1U);
  EXPECT_EQ(late(1e10), 0U);
}

}  // namespace
}  // namespace bubblesim::synth
