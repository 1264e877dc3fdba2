// Two captured ranks of a data-parallel job: on each a kernel G (gemm, 100 us; rank 1: 200), a
// kernel E (element-wise, 50 us), and an all-reduce behind them on a second stream, which lasts
// 1,000 us from the last arrival. The cluster's one cost is bandwidth: 100 GB/s a port, so a ring
// of n ranks takes bytes x 2(n-1)/n / 100 GB/s.
#include "sim/synth/retarget.hpp"

#include <gmock/gmock.h>

#include "sim/workload/replay.hpp"
#include "tests/unit/sim/synth/recorded_job.hpp"

namespace bubblesim::synth {
namespace {

using testing::Contains, testing::HasSubstr;
using workload::us;

constexpr std::uint64_t k100MB = 100'000'000;

hardware::ClusterSpec cluster_of(std::uint32_t gpus, double bytes_per_second = 100e9) {
  hardware::ClusterSpec cluster;
  cluster.name = "plain " + std::to_string(gpus);
  cluster.gpus_per_node = gpus;
  cluster.node.bandwidth = {bytes_per_second};
  return cluster;
}

program::Program captured_rank(std::uint32_t rank) {
  workload::ProgramMaker maker(2);
  maker.rank(rank).iteration(0);
  maker.kernel(0, rank == 0 ? 100 : 200).kernel(0, 50);
  maker.collective(0, 1000, 0, 1).after(1, 0);
  maker.wait_device(0, 0).end(0);
  program::Program program = maker.program();
  for (const char* name : {"bf16_gemm", "elementwise", "ncclAllReduce"}) program.names.intern(name);
  for (std::uint32_t i = 0; i < 3; ++i) program.ops[i].name = NameId{i};
  program.profiles.assign(2, program.profiles[0]);
  program.profiles[0].kernel_class = program::KernelClass::kCompute;
  program.profiles[1].kernel_class = program::KernelClass::kMemory;
  program.ops[1].profile = 1;
  program.shapes.assign(2, {{4, 1, 1}, {128, 1, 1}, 32, 0});
  return program;
}

workload::JobProgram captured_job() {
  workload::JobProgram job;
  for (std::uint32_t rank = 0; rank < 2; ++rank) job.ranks.push_back(captured_rank(rank));
  workload::JoinedCollective reduce;
  reduce.participants = 2;
  reduce.bytes = k100MB;
  reduce.kind = traces::CollectiveKind::kAllReduce;
  job.collectives = {reduce};
  return job;
}

RetargetSpec to_replicas(std::uint32_t replicas) {
  RetargetSpec spec;
  spec.replicas = replicas;
  spec.recorded_cluster = cluster_of(8);
  return spec;
}

Retargeted must_retarget(const RetargetSpec& spec, workload::JobProgram job = captured_job()) {
  return must(retarget(std::move(job), spec));
}

std::string fault_of(const RetargetSpec& spec, workload::JobProgram job = captured_job()) {
  return error_of(retarget(std::move(job), spec)).text();
}

Duration iteration_of(const workload::JobProgram& job) {
  const auto report = workload::replay_alone(job, workload::plain_gpu());
  EXPECT_TRUE(report);
  return report ? report->ranks.back().simulated.front() : Duration{};
}

Duration all_reduce_of(const Retargeted& result) { return result.job.ranks[0].ops[2].duration; }

TEST(Retarget, TheSameSetUpGivesBackTheRecording) {
  RetargetSpec spec = to_replicas(2);
  spec.cluster = cluster_of(8);
  const Retargeted same = must_retarget(spec);
  EXPECT_EQ(all_reduce_of(same), us(1000));
  EXPECT_EQ(iteration_of(same.job), us(200 + 50 + 1000));  // rank 1 is the last to arrive
  const Retargeted nothing = must_retarget({});
  EXPECT_TRUE(nothing.extrapolated.empty());
  EXPECT_TRUE(nothing.counters.empty());
}

TEST(Retarget, MoreReplicasRepeatRanksInTurnAndReduceOverMore) {
  const Retargeted four = must_retarget(to_replicas(4));
  ASSERT_EQ(four.job.ranks.size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(four.job.ranks[i].rank, i);
    EXPECT_EQ(four.job.ranks[i].ops[0].duration, us(i % 2 == 0 ? 100 : 200));
  }
  // 2 x 3/4 instead of 2 x 1/2 of the bytes: half as long again.
  EXPECT_EQ(all_reduce_of(four), us(1500));
  EXPECT_EQ(four.job.collectives[0].participants, 4U);
  EXPECT_EQ(iteration_of(four.job), us(200 + 50 + 1500));
  EXPECT_EQ(four.counters.count("retarget_ranks_copied"), 2U);
  EXPECT_EQ(four.counters.count("retarget_collectives_scaled"), 1U);
  EXPECT_THAT(four.extrapolated, Contains(HasSubstr("repeat the 2 recorded ones in turn")));
  EXPECT_EQ(four.job.counters.count("retarget_ranks_copied"), 2U);
}

TEST(Retarget, FoldedReplicasTakeAsLongAsUnfoldedOnes) {
  RetargetSpec spec = to_replicas(8);
  const Retargeted unfolded = must_retarget(spec);
  spec.copies = Copies::kFolded;
  const Retargeted folded = must_retarget(spec);
  EXPECT_EQ(unfolded.job.ranks.size(), 8U);
  EXPECT_EQ(folded.job.ranks.size(), 2U);
  EXPECT_EQ(folded.replicas, 8U);
  EXPECT_EQ(folded.job.collectives[0].group_size, 8U);
  EXPECT_EQ(iteration_of(folded.job), us(200 + 50 + 1750));  // 2 x 7/8 over 2 x 1/2
  EXPECT_EQ(iteration_of(unfolded.job), iteration_of(folded.job));
}

TEST(Retarget, ACollectiveThatOneRankLacksIsStillItsGroups) {
  workload::JobProgram job = captured_job();
  job.ranks.push_back(captured_rank(2));
  job.ranks[2].ops[2].collective = program::kNoIndex;  // not joined: its recorded time is kept
  job.collectives[0].group_size = 3;
  const Retargeted six = must_retarget(to_replicas(6), job);
  EXPECT_EQ(six.job.collectives[0].participants, 4U);  // of ranks 0, 1 and their copies
  EXPECT_EQ(all_reduce_of(six), us(1250));             // 2 x 5/6 over 2 x 2/3
  EXPECT_EQ(six.counters.count("retarget_collectives_kept"), 1U);
  EXPECT_TRUE(workload::replay_alone(six.job, workload::plain_gpu()));
}

TEST(Retarget, FewerReplicasLeaveRanksOut) {
  const Retargeted single = must_retarget(to_replicas(1));
  ASSERT_EQ(single.job.ranks.size(), 1U);
  EXPECT_EQ(iteration_of(single.job), us(100 + 50));  // nobody to reduce with
  EXPECT_EQ(single.counters.count("retarget_ranks_dropped"), 1U);
}

TEST(Retarget, CollectivesScaleByTheRatioOfModels) {
  RetargetSpec spec = to_replicas(0);
  spec.cluster = cluster_of(8, 400e9);  // another interconnect
  EXPECT_EQ(all_reduce_of(must_retarget(spec)), us(250));
  // An all-gather of shards moves the same array, 2 x 100 MB, among more ranks: (n-1)/n of it.
  workload::JobProgram job = captured_job();
  job.collectives[0].kind = traces::CollectiveKind::kAllGather;
  EXPECT_EQ(all_reduce_of(must_retarget(to_replicas(4), job)), us(1500));  // 3/4 over 1/2
}

TEST(Retarget, WithoutTheRecordedClusterTheModelStandsAlone) {
  RetargetSpec spec;
  spec.cluster = cluster_of(8, 50e9);
  const Retargeted result = must_retarget(spec);
  EXPECT_EQ(all_reduce_of(result), us(2000));  // 100 MB x 2 x 1/2 / 50 GB/s
  EXPECT_EQ(result.counters.count("retarget_collectives_modelled"), 1U);
  EXPECT_THAT(result.extrapolated, Contains(HasSubstr("not calibrated")));
}

TEST(Retarget, UnrecordedBytesAreThoseThatTakeTheRecordedTime) {
  workload::JobProgram job = captured_job();
  job.collectives[0].bytes = 0;
  const Retargeted four = must_retarget(to_replicas(4), job);
  EXPECT_NEAR(to_seconds(all_reduce_of(four)), 1500e-6, 1e-6);
  EXPECT_EQ(four.counters.count("retarget_collective_bytes_inferred"), 1U);
}

TEST(Retarget, KernelsAreScaledByTheirClass) {
  RetargetSpec spec;
  spec.device =
      DeviceChange{workload::plain_gpu(), [](std::string_view, program::KernelClass kernel_class) {
                     return kernel_class == program::KernelClass::kCompute ? 0.5 : 0.8;
                   }};
  spec.device->device.name = "fast";
  const Retargeted result = must_retarget(spec);
  EXPECT_EQ(result.job.ranks[1].ops[0].duration, us(100));
  EXPECT_EQ(result.job.ranks[1].ops[1].duration, us(40));
  EXPECT_EQ(iteration_of(result.job), us(100 + 40 + 1000));
  EXPECT_EQ(result.counters.count("retarget_kernels_scaled"), 4U);
  EXPECT_THAT(result.extrapolated, Contains(HasSubstr("kernels run on fast")));
  EXPECT_EQ(result.job.ranks[0].profiles[0].blocks, 4U);  // of the launch shape
}

TEST(Retarget, TransfersBetweenSomeRanksForbidAnotherNumberOfReplicas) {
  EXPECT_THAT(fault_of(to_replicas(4), recorded_job()),
              HasSubstr("1 operation between some ranks only; expected a job that is "
                        "data-parallel alone, or 2 replicas"));
  RetargetSpec spec = to_replicas(2);
  spec.cluster = cluster_of(8, 400e9);
  const Retargeted kept = must_retarget(spec, recorded_job());
  EXPECT_EQ(kept.job.ranks[0].ops[2].duration, us(2));  // the transfer
  EXPECT_EQ(kept.counters.count("retarget_collectives_kept"), 1U);
  EXPECT_THAT(kept.extrapolated, Contains(HasSubstr("1 collective cannot be modelled")));
}

TEST(Retarget, WhatCannotBeModelledIsRefused) {
  EXPECT_THAT(fault_of({.replicas = 4}), HasSubstr("no cluster is named"));
  EXPECT_THAT(fault_of(to_replicas(9)), HasSubstr("expected at most 8"));
  EXPECT_THAT(fault_of({}, {}), HasSubstr("job of no rank"));
  workload::JobProgram alone;
  alone.ranks.push_back(captured_rank(0));
  alone.ranks[0].ops[2].collective = program::kNoIndex;
  EXPECT_THAT(fault_of(to_replicas(4), alone), HasSubstr("traces of at least two ranks"));
  workload::JobProgram modelled = captured_job();
  modelled.collectives[0].transfer = 0;
  EXPECT_THAT(fault_of(to_replicas(4), modelled), HasSubstr("expected a captured one"));
}

TEST(Retarget, AClusterWithNicsGrows) {
  RetargetSpec spec = to_replicas(32);
  spec.cluster = cluster_of(8);
  spec.cluster->nics = {8, {25e9}, {}};
  spec.copies = Copies::kFolded;
  EXPECT_THAT(must_retarget(spec).extrapolated, Contains(HasSubstr("taken with 4 nodes")));
}

RooflineDevice device_with(double tensor_flops, double bandwidth) {
  RooflineDevice device;
  device.gpu.dram_bandwidth = {bandwidth};
  device.efficiency.peak_flops = {tensor_flops / 16, tensor_flops / 2, tensor_flops, tensor_flops,
                                  0};
  return device;
}

TEST(KernelRatio, FollowsThePeakOfThePrecisionOrTheBandwidth) {
  RooflineDevice fast = device_with(1000e12, 4e12);
  fast.efficiency.peak_flops[0] = 60e12;
  const KernelRatio ratio = kernel_ratio(device_with(320e12, 2e12), fast);
  EXPECT_DOUBLE_EQ(ratio("ampere_bf16_s16816gemm", program::KernelClass::kCompute), 0.32);
  EXPECT_DOUBLE_EQ(ratio("ampere_sgemm_128x64", program::KernelClass::kCompute), 20.0 / 60.0);
  EXPECT_DOUBLE_EQ(ratio("elementwise", program::KernelClass::kMemory), 0.5);
  EXPECT_DOUBLE_EQ(ratio("mystery", program::KernelClass::kUnknown), 0.4);  // sqrt(0.32 x 0.5)
}

TEST(KernelRatio, ReadsThePrecisionFromTheName) {
  using model::Precision;
  EXPECT_EQ(precision_of("sm80_xmma_gemm_bf16bf16_bf16f32"), Precision::kBf16);
  EXPECT_EQ(precision_of("ampere_fp16_s16816gemm_fp16_64x64"), Precision::kFp16);
  EXPECT_EQ(precision_of("volta_h884gemm_128x128"), Precision::kFp16);
  EXPECT_EQ(precision_of("cutlass_80_tensorop_s1688gemm_64x64"), Precision::kTf32);
  EXPECT_EQ(precision_of("volta_sgemm_128x64_nn"), Precision::kFp32);
  EXPECT_EQ(precision_of("layer_norm"), std::nullopt);
}

}  // namespace
}  // namespace bubblesim::synth
