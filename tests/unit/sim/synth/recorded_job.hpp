// A handmade job of two ranks whose times can be added up in the head. Times in microseconds.
//
//   call            launch at   lag   operation   stream   lasts   waits for
//   A  (0)          1, cost 2   3     kernel      0        10 (rank 1: 20)
//   R  (1)          +1, cost 2  0     all-reduce  1        5       A, 1 later
//   T  (2)          +1, cost 2  0     transfer    0        2       A (stream)
//   B  (3)          +1, cost 2  0     kernel      0        6       T (stream), R
//   wait for the device: +1, returns 1 after; the iteration ends 3 after that.
//
// Rank 0: A 4-14, T from 14, R from 15. Rank 1: A 4-24, T from 24, R from 25. So T ends at 26 and R
// at 30 on both; B 30-36; the wait returns at 37; the iteration ends at 40.
#pragma once

#include "sim/synth/record_trace.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::synth {

inline program::Program recorded_rank(std::uint32_t rank) {
  workload::ProgramMaker maker(2);
  maker.rank(rank).iteration(0);
  maker.kernel(1, rank == 0 ? 10 : 20).cost(2).launch_lag(3);
  maker.collective(1, 5, 0, 1).cost(2).after(0, 1);
  maker.collective(1, 2, 1, 0).cost(2);
  maker.kernel(1, 6).cost(2).after(1, 0);
  maker.wait_device(1, 1).end(3);
  program::Program program = maker.program();
  program.threads[0].name = "main";
  for (const char* name : {"gemm_a", "ncclAllReduce", "ncclSendRecv", "gemm_b"}) {
    program.names.intern(name);
  }
  for (std::uint32_t i = 0; i < 4; ++i) program.ops[i].name = NameId{i};
  program.shapes = {{{4, 2, 1}, {128, 1, 1}, 40, 1024}};
  program.memory = {{0, 100}, {3, 150}};
  return program;
}

inline workload::JobProgram recorded_job() {
  workload::JobProgram job;
  for (std::uint32_t rank = 0; rank < 2; ++rank) job.ranks.push_back(recorded_rank(rank));
  job.groups = {"dp", "pp"};
  workload::JoinedCollective reduce;
  reduce.participants = 2;
  reduce.bytes = 4096;
  reduce.kind = traces::CollectiveKind::kAllReduce;
  reduce.group = 0;
  workload::JoinedCollective transfer = reduce;
  transfer.point_to_point = true;
  transfer.kind = traces::CollectiveKind::kSend;
  transfer.bytes = 512;
  transfer.group = 1;
  transfer.from = 1;
  transfer.to = 0;
  job.collectives = {reduce, transfer};
  return job;
}

inline traces::JobTrace must_record(const workload::JobProgram& job,
                                    const RecordSetup& setup = {}) {
  return must(record_trace(job, workload::plain_gpu(), setup));
}

/// Start and end in microseconds.
template <class Record>
workload::Span span_of(const Record& record) {
  return {workload::microseconds(record.start - TraceTime{}),
          workload::microseconds(record.start + record.duration - TraceTime{})};
}

template <class Record>
workload::Spans spans_of(const std::vector<Record>& records) {
  workload::Spans spans;
  for (const Record& record : records) spans.push_back(span_of(record));
  return spans;
}

}  // namespace bubblesim::synth
