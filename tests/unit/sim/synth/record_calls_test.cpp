// How each kind of step is written as a call, and what is written of what a program does not know.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/synth/recorded_job.hpp"

namespace bubblesim::synth {
namespace {

using testing::ElementsAre;
using traces::HostCallKind;
using workload::ProgramMaker;
using workload::Span;

traces::RankTrace record_alone(const program::Program& program) {
  workload::JobProgram job;
  job.ranks.push_back(program);
  return must_record(job).ranks.at(0);
}

std::vector<HostCallKind> kinds(const traces::RankTrace& rank) {
  std::vector<HostCallKind> result;
  for (const auto& call : rank.host_calls) result.push_back(call.kind);
  return result;
}

TEST(RecordCalls, EachKindOfWaitIsTheCallThatWaitsSo) {
  // kernel 1-11, waited for by stream until 13; kernel 14-24, waited for by event until 25.
  const auto rank = record_alone(ProgramMaker()
                                     .kernel(1, 10)
                                     .wait_stream(0, 2)
                                     .kernel(1, 10)
                                     .wait_op(0, 1, 1)
                                     .program());
  EXPECT_THAT(kinds(rank), ElementsAre(HostCallKind::kLaunchKernel, HostCallKind::kStreamSync,
                                       HostCallKind::kLaunchKernel, HostCallKind::kEventSync));
  EXPECT_EQ(span_of(rank.host_calls[1]), (Span{1, 13}));
  EXPECT_EQ(rank.host_calls[1].stream, 0U);
  EXPECT_EQ(span_of(rank.host_calls[3]), (Span{14, 25}));
}

TEST(RecordCalls, ABlockingCopyIsOneCall) {
  const auto rank = record_alone(ProgramMaker().copy_and_wait(1, 10, 2).program());
  EXPECT_THAT(kinds(rank), ElementsAre(HostCallKind::kCopy));
  EXPECT_EQ(span_of(rank.host_calls[0]), (Span{1, 13}));
  EXPECT_EQ(rank.counters.count("record_copies_without_size"), 1U);
}

TEST(RecordCalls, ABlockingKernelIsALaunchAndAWait) {
  program::Program program = ProgramMaker().kernel(1, 10).cost(3).program();
  program.threads[0].steps[0].kind = program::StepKind::kLaunchAndWait;
  const auto rank = record_alone(program);
  EXPECT_THAT(kinds(rank), ElementsAre(HostCallKind::kLaunchKernel, HostCallKind::kStreamSync));
  EXPECT_EQ(span_of(rank.host_calls[0]), (Span{1, 4}));
  EXPECT_EQ(span_of(rank.host_calls[1]), (Span{4, 11}));
}

TEST(RecordCalls, AGraphIsOneCallOfManyOperations) {
  const auto rank = record_alone(ProgramMaker(2).kernel(1, 10).and_kernel(5, 1).program());
  EXPECT_THAT(kinds(rank), ElementsAre(HostCallKind::kLaunchGraph));
  EXPECT_THAT(spans_of(rank.device_ops), ElementsAre(Span{1, 11}, Span{1, 6}));
  EXPECT_EQ(rank.device_ops[1].launch, 0U);
}

TEST(RecordCalls, AnUnknownShapeIsRebuiltFromTheProfileAndCounted) {
  program::Program program = ProgramMaker().kernel(1, 10).kernel(1, 10).program();
  program.profiles[0].blocks = 7;
  program.profiles[0].residency.warps = 2;
  program.profiles[0].residency.registers = 64 * 20;
  const auto rank = record_alone(program);
  const traces::LaunchShape& shape = rank.shapes[rank.device_ops[0].shape];
  EXPECT_EQ(shape.blocks(), 7U);
  EXPECT_EQ(shape.threads_per_block(), 64U);
  EXPECT_EQ(shape.registers_per_thread, 20U);
  EXPECT_EQ(rank.counters.count("record_shapes_reconstructed"), 2U);
}

TEST(RecordCalls, ACollectiveThatMeetsNobodyJoinsNobodyWhenReadAgain) {
  const program::Program alone = ProgramMaker().collective(1, 5, program::kNoIndex).program();
  workload::JobProgram job;
  job.ranks = {alone, alone};
  job.ranks[1].rank = 1;
  const traces::JobTrace trace = must_record(job);
  const auto again = workload::build_job_program(trace, workload::plain_gpu(), {});
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->collectives.empty());
  EXPECT_EQ(again->counters.count("program_collectives_not_joined"), 2U);
}

TEST(RecordCalls, AGroupWithoutANameIsNamedByWhatItHolds) {
  workload::JobProgram job = recorded_job();
  for (auto& joined : job.collectives) joined.group = program::kNoIndex;
  job.collectives[1].from = job.collectives[1].to = program::kNoIndex;
  const traces::RankTrace rank = must_record(job).ranks[0];
  EXPECT_EQ(rank.names[rank.collectives[0].group], "world");
  EXPECT_EQ(rank.names[rank.collectives[1].group], "transfers");
  EXPECT_THAT(rank.collectives[1].peers, ElementsAre(0, 1));
  EXPECT_EQ(rank.collectives[1].kind, traces::CollectiveKind::kSend);
}

}  // namespace
}  // namespace bubblesim::synth
