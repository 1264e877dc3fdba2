// A program while it is built: recorded times beside what was found out about them. Internal to
// the builder.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/program/program.hpp"
#include "sim/workload/launch_queues.hpp"
#include "sim/workload/program_builder.hpp"
#include "traces/iterations/job_pass.hpp"
#include "traces/trace.hpp"

namespace bubblesim::workload {

/// A dependency on an operation of another stream.
struct DraftEdge {
  std::uint32_t before = program::kNoIndex;  ///< into Draft::ops
  Duration lag{};
};

struct DraftOp {
  const traces::DeviceOp* recorded = nullptr;
  TraceTime start{};
  TraceTime end{};
  std::uint32_t call = program::kNoIndex;      ///< the launching call, into Draft::calls
  std::uint32_t previous = program::kNoIndex;  ///< on the same stream, in the same pass
  /// The first of its stream, in a pass that repeats: when the stream's last one of the pass
  /// before ended.
  std::optional<TraceTime> pass_before;
  std::vector<DraftEdge> edges;
  Duration launch_lag{};
  Duration gap{};
};

struct DraftCall {
  TraceTime start{};
  TraceTime end{};
  std::uint32_t thread = 0;
  program::StepKind kind = program::StepKind::kPause;
  traces::HostCallKind recorded_kind = traces::HostCallKind::kOther;
  std::uint32_t stream = traces::kNone;  ///< recorded stream of a synchronisation
  std::uint64_t event = 0;               ///< recorded event of a synchronisation; 0: none
  QueueWait queue;                       ///< launches: how a full launch queue held the call
  std::uint32_t queue_op = program::kNoIndex;     ///< whose end made room, into Draft::ops
  Duration queue_lag{};                  ///< from that end until the launch
  std::uint32_t first_op = program::kNoIndex;     ///< launches: into Draft::ops
  std::uint32_t op_count = 0;
  std::uint32_t target = 0;              ///< as Step::target
  Duration cost{};
  Duration return_lag{};
  bool waits = false;                    ///< has a return lag
  std::uint32_t after = program::kNoIndex;        ///< hand-over: into Draft::calls
  std::uint32_t passes_back = 0;         ///< as StepDetail
  bool closes_pass = false;              ///< no recorded call: keeps the host's lead (close_pass)
};

struct Draft {
  const traces::RankTrace* trace = nullptr;
  const traces::RankPass* pass = nullptr;  ///< null: the whole recording, once
  TraceTime begin{};                       ///< of the window, as `moved`
  TraceTime end{};
  std::vector<DraftOp> ops;      ///< in launch order: call start, then start
  std::vector<DraftCall> calls;  ///< by start; every call that becomes a step
  std::vector<std::vector<std::uint32_t>> stream_ops;  ///< by stream, in start order
  std::vector<std::vector<std::uint32_t>> thread_calls;
  std::vector<TraceTime> iteration_starts;
  TraceTime iterations_end{};
  std::uint32_t marked_thread = 0;
  bool marked = false;
  Duration host_late{};  ///< of a pass: the host's clock runs so far ahead of the device's
  CounterSet counters;

  /// Whether a recorded instant lies in the window.
  [[nodiscard]] bool holds(TraceTime recorded) const {
    return pass == nullptr ? recorded >= begin && recorded < end : pass->holds_call(recorded);
  }
  /// A recorded instant as the draft has it: without waits for work from before the pass.
  [[nodiscard]] TraceTime moved(TraceTime recorded) const {
    return pass == nullptr ? recorded : pass->without_waits(recorded);
  }
  /// The same of a host call: on the device's clock.
  [[nodiscard]] TraceTime called(TraceTime recorded) const { return moved(recorded) - host_late; }
  /// The last operation of a stream as it was one pass before; nothing if passes do not repeat.
  [[nodiscard]] std::optional<TraceTime> pass_before(std::uint32_t stream) const {
    if (pass == nullptr || stream_ops[stream].empty()) return std::nullopt;
    return ops[stream_ops[stream].back()].end - pass->length;
  }
};

/// Collects the calls and operations of a pass, or of the whole recording (null).
Draft collect(const traces::RankTrace& trace, const traces::RankPass* pass, Window window);
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
program::Program emit(const Draft& draft, const hardware::GpuSpec& spec);

}  // namespace bubblesim::workload
