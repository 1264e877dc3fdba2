// The job of recorded_job.hpp, recorded: every time is one of the sums there.
#include <gmock/gmock.h>

#include <filesystem>

#include "sim/workload/program_builder.hpp"
#include "sim/workload/replay.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/synth/recorded_job.hpp"
#include "traces/format/trace_reader.hpp"
#include "traces/format/trace_writer.hpp"
#include "traces/iterations/job_pass.hpp"

namespace bubblesim::synth {
namespace {

using testing::ElementsAre;
using traces::CollectiveKind;
using workload::Span;

std::string path_for_test() {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  return (std::filesystem::temp_directory_path() /
          (std::string("bubblesim_record_") + info->name() + ".btr")).string();
}

traces::JobTrace through_a_file(const traces::JobTrace& trace) {
  const std::string path = path_for_test();
  EXPECT_TRUE(traces::format::write_job(path, trace));
  auto read = traces::format::read_job(path);
  std::filesystem::remove(path);
  EXPECT_TRUE(read);
  EXPECT_TRUE(read->counters.empty());
  return read->job;
}

workload::JobProgram rebuilt(const traces::JobTrace& trace, workload::Window window) {
  return must(workload::build_job_program(trace, workload::plain_gpu(), {window}));
}

TEST(RecordTrace, WritesEveryOperationWhenItRan) {
  const traces::JobTrace trace = must_record(recorded_job());
  EXPECT_THAT(spans_of(trace.ranks[0].device_ops),  // A, T, R, B
              ElementsAre(Span{4, 14}, Span{14, 26}, Span{15, 30}, Span{30, 36}));
  EXPECT_THAT(spans_of(trace.ranks[1].device_ops),
              ElementsAre(Span{4, 24}, Span{24, 26}, Span{25, 30}, Span{30, 36}));
}

TEST(RecordTrace, WritesEveryCallAndWhatItLaunched) {
  const traces::RankTrace rank = must_record(recorded_job()).ranks[0];
  EXPECT_THAT(spans_of(rank.host_calls),
              ElementsAre(Span{1, 3}, Span{4, 6}, Span{7, 9}, Span{10, 12}, Span{13, 37}));
  EXPECT_EQ(rank.host_calls[4].kind, traces::HostCallKind::kDeviceSync);
  EXPECT_EQ(rank.names[rank.host_calls[0].name], "cudaLaunchKernel");
  const auto& ops = rank.device_ops;
  EXPECT_THAT((std::vector{ops[0].launch, ops[1].launch, ops[2].launch, ops[3].launch}),
              ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(ops[1].correlation, rank.host_calls[2].correlation);
  EXPECT_EQ(rank.names[ops[2].name], "ncclAllReduce");
  EXPECT_EQ(ops[2].stream, StreamId{1});
}

TEST(RecordTrace, WritesEdgesBetweenOperations) {
  const traces::RankTrace rank = must_record(recorded_job()).ranks[0];
  ASSERT_EQ(rank.edges.size(), 2U);  // A before R, R before B, as places in order of start
  EXPECT_EQ(rank.edges[0].before, DeviceOpId{0});
  EXPECT_EQ(rank.edges[0].after, DeviceOpId{2});
  EXPECT_EQ(rank.edges[1].before, DeviceOpId{2});
  EXPECT_EQ(rank.edges[1].after, DeviceOpId{3});
}

TEST(RecordTrace, TellsWhatEachCollectiveIs) {
  const traces::JobTrace trace = must_record(recorded_job(), {.iterations = 2});
  const traces::RankTrace& rank = trace.ranks[1];
  std::vector<traces::Collective> found;
  for (const auto& op : rank.device_ops) {
    if (op.collective != traces::kNone) found.push_back(rank.collectives[op.collective]);
  }
  ASSERT_EQ(found.size(), 4U);  // T, R, and again
  EXPECT_EQ(found[0].kind, CollectiveKind::kSend);
  EXPECT_THAT(found[0].peers, ElementsAre(1, 0));
  EXPECT_EQ(found[1].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(found[1].bytes, 4096U);
  EXPECT_EQ(found[1].group_size, 2U);
  EXPECT_EQ(rank.names[found[1].group], "dp");
  EXPECT_EQ(found[1].sequence, 0U);
  EXPECT_EQ(found[3].sequence, 1U);
  EXPECT_EQ(trace.ranks[0].collectives[1].kind, CollectiveKind::kRecv);
}

TEST(RecordTrace, WritesIterationsMemoryShapesAndTheDevice) {
  hardware::GpuSpec spec = workload::plain_gpu();
  spec.name = "NVIDIA Test GPU";
  RecordSetup setup;
  setup.iterations = 2;
  setup.provenance = {"job.json", "?", "bubblesim", "made"};
  const auto trace = must(record_trace(recorded_job(), spec, setup));
  const traces::RankTrace& rank = trace.ranks[0];
  EXPECT_THAT(spans_of(rank.markers), ElementsAre(Span{0, 40}, Span{40, 80}));
  EXPECT_EQ(rank.markers[1].number, 1);
  ASSERT_EQ(rank.memory.size(), 4U);
  EXPECT_EQ(to_ns(rank.memory[1].at), 30'000);  // B starts
  EXPECT_EQ(rank.memory[1].allocated_bytes, 150U);
  EXPECT_EQ(to_ns(rank.memory[2].at), 44'000);  // the next A
  EXPECT_EQ(rank.shapes[rank.device_ops[0].shape].blocks(), 8U);
  EXPECT_EQ(rank.device.name, "NVIDIA Test GPU");
  EXPECT_EQ(rank.world_size, 2U);
  EXPECT_EQ(rank.provenance.format, "bubblesim-synth");
  EXPECT_EQ(rank.provenance.source, "job.json");
  EXPECT_TRUE(rank.counters.empty());
}

TEST(RecordTrace, ReplaysThroughAFileExactly) {
  const auto trace = through_a_file(must_record(recorded_job(), {.iterations = 2}));
  const auto job = rebuilt(trace, workload::Window::kWhole);
  EXPECT_EQ(job.collectives.size(), 4U);
  EXPECT_EQ(job.counters.count("program_collectives_not_joined"), 0U);
  const auto report = must(workload::replay_alone(job, workload::plain_gpu()));
  for (const auto& rank : report.ranks) {
    EXPECT_THAT(rank.recorded, ElementsAre(workload::us(40), workload::us(40)));
    EXPECT_EQ(rank.simulated, rank.recorded);
    EXPECT_EQ(rank.simulated_span, rank.recorded_span);
  }
}

// Rank 1 twice as slow: A 4-44, R 45-50, B 50-62, so its iteration ends at 66; rank 0's at 60.
TEST(RecordTrace, WhatWasRecordedReactsAsTheProgramItself) {
  RecordSetup slow;
  slow.perturbations.resize(2);
  slow.perturbations[1].slowdown = 2.0;
  const auto job =
      rebuilt(through_a_file(must_record(recorded_job())), workload::Window::kIterations);
  for (const auto& source : {recorded_job(), job}) {
    const traces::JobTrace trace = must_record(source, slow);
    EXPECT_EQ(span_of(trace.ranks[0].markers[0]), (Span{0, 60}));
    EXPECT_EQ(span_of(trace.ranks[1].markers[0]), (Span{0, 66}));
  }
}

TEST(RecordTrace, RecordingARecordingChangesNothing) {
  const traces::JobTrace once = must_record(recorded_job(), {.iterations = 2});
  const traces::JobTrace twice =
      must_record(rebuilt(once, workload::Window::kWhole), {.iterations = 2});
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(spans_of(twice.ranks[rank].device_ops), spans_of(once.ranks[rank].device_ops));
    EXPECT_EQ(spans_of(twice.ranks[rank].host_calls), spans_of(once.ranks[rank].host_calls));
    EXPECT_EQ(spans_of(twice.ranks[rank].markers), spans_of(once.ranks[rank].markers));
    const auto& names = twice.ranks[rank].names;
    EXPECT_EQ(names[twice.ranks[rank].collectives[0].group], "dp");
    const auto& shape = twice.ranks[rank].shapes[twice.ranks[rank].device_ops[0].shape];
    EXPECT_EQ(shape, recorded_rank(0).shapes[0]);
  }
}

/// Passes of two iterations, of 1 + 1 us and of 6 + 1 + 1 us of the host.
workload::JobProgram two_iterations() {
  workload::JobProgram job;
  job.ranks.push_back(workload::ProgramMaker()
                          .iterations(2)
                          .iteration(0)
                          .kernel(1, 2)
                          .cost(1)
                          .iteration(1)
                          .kernel(6, 2)
                          .cost(1)
                          .end(1)
                          .program());
  return job;
}

TEST(RecordTrace, WhatFollowsTheLastIterationIsNotWritten) {
  const traces::RankTrace rank = must_record(two_iterations(), {.iterations = 3}).ranks[0];
  EXPECT_EQ(rank.markers.size(), 3U);
  EXPECT_EQ(rank.host_calls.size(), 3U);
  EXPECT_EQ(rank.device_ops.size(), 3U);
}

// Readers leave out the first iteration; those after it are a whole pass.
TEST(RecordTrace, AnIterationMoreThanAPassIsReadAsThePass) {
  const traces::JobTrace trace = must_record(two_iterations(), {.iterations = 3});
  const auto pass = must(traces::find_job_pass(trace));
  EXPECT_EQ(pass.iterations_used(), 2U);
  const auto repeated = must(workload::repeat_alone(two_iterations(), workload::plain_gpu()));
  EXPECT_EQ(pass.iteration_time(), repeated.ranks[0].simulated.front());
}

TEST(RecordTrace, ADependencyThatIsNeverMetIsAFault) {
  workload::JobProgram job = recorded_job();
  job.ranks.pop_back();
  const auto trace = error_of(record_trace(job, workload::plain_gpu()));
  EXPECT_THAT(trace.text(), testing::HasSubstr("rank 0 stopped"));
}

TEST(RecordTrace, NothingToRecordIsAFault) {
  EXPECT_FALSE(record_trace({}, workload::plain_gpu()));
  EXPECT_FALSE(record_trace(recorded_job(), workload::plain_gpu(), {.iterations = 0}));
}

// How each kind of step is written as a call, and what is written of what a program does not know.

using traces::HostCallKind;
using workload::ProgramMaker;

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
  const auto again = must(workload::build_job_program(trace, workload::plain_gpu(), {}));
  EXPECT_TRUE(again.collectives.empty());
  EXPECT_EQ(again.counters.count("program_collectives_not_joined"), 2U);
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
