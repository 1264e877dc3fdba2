// A program while it is built: recorded times beside what was found out about them. Internal to
// the builder.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload/program.hpp"
#include "sim/workload/program_builder.hpp"
#include "traces/trace.hpp"

namespace bubblesim::workload {

/// A dependency on an operation of another stream.
struct DraftEdge {
  std::uint32_t before = kNoIndex;  ///< into Draft::ops
  Duration lag{};
};

struct DraftOp {
  const traces::DeviceOp* recorded = nullptr;
  TraceTime start{};
  TraceTime end{};
  std::uint32_t call = kNoIndex;      ///< the launching call, into Draft::calls
  std::uint32_t previous = kNoIndex;  ///< on the same stream
  std::vector<DraftEdge> edges;
  Duration launch_lag{};
  Duration gap{};
};

struct DraftCall {
  TraceTime start{};
  TraceTime end{};
  std::uint32_t thread = 0;
  StepKind kind = StepKind::kPause;
  traces::HostCallKind recorded_kind = traces::HostCallKind::kOther;
  std::uint32_t stream = traces::kNone;  ///< recorded stream of a synchronisation
  std::uint64_t event = 0;               ///< recorded event of a synchronisation; 0: none
  Duration held{};                       ///< of the call: the launch queue was full
  std::uint32_t first_op = kNoIndex;     ///< launches: into Draft::ops
  std::uint32_t op_count = 0;
  std::uint32_t target = 0;              ///< as Step::target
  Duration cost{};
  Duration return_lag{};
  bool waits = false;                    ///< has a return lag
  std::uint32_t after = kNoIndex;        ///< hand-over: into Draft::calls
};

struct Draft {
  const traces::RankTrace* trace = nullptr;
  TraceTime begin{};
  TraceTime end{};
  std::vector<DraftOp> ops;      ///< in launch order: call start, then start
  std::vector<DraftCall> calls;  ///< by start; every call that becomes a step
  std::vector<std::vector<std::uint32_t>> stream_ops;  ///< by stream, in start order
  std::vector<std::vector<std::uint32_t>> thread_calls;
  std::vector<TraceTime> iteration_starts;
  TraceTime iterations_end{};
  std::uint32_t marked_thread = 0;
  bool marked = false;
  CounterSet counters;
};

/// Chooses the window and collects its calls and operations.
Draft collect(const traces::RankTrace& trace, const BuildOptions& options);
/// Makes operations of one stream follow each other.
void trim_overlaps(Draft& draft);
/// Adds recorded and inferred edges.
void find_edges(Draft& draft);
/// Splits the time between an operation's start and what held it into lags.
void assign_lags(Draft& draft);
/// Finds out what synchronising calls waited for.
void find_waits(Draft& draft);
/// Finds pauses that end with another thread's call.
void find_hand_overs(Draft& draft);
/// Ties threads that begin by themselves to the marked thread's first iteration.
void tie_free_threads(Draft& draft);
/// Writes the finished program.
Program emit(const Draft& draft, const hardware::GpuSpec& spec);

}  // namespace bubblesim::workload
