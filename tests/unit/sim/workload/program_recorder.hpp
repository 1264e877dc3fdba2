// Builds programs, runs them alone, and writes down when every operation started and ended. Times
// are whole microseconds; a time that is none fails the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/workload/lone_job.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/program_run.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/gpu/gpu_fixture.hpp"
#include "tests/unit/sim/workload/trace_builder.hpp"

namespace bubblesim::workload {

/// No latency, no contention: what a program says is what happens.
inline hardware::GpuSpec plain_gpu() { return gpu::small_gpu(); }

inline std::int64_t microseconds(Duration span) {
  EXPECT_EQ(span.count() % 1000, 0) << "not whole microseconds: " << span.count() << " ns";
  return span.count() / 1000;
}
inline std::int64_t microseconds(SimTime at) { return microseconds(at - kSimStart); }
inline std::int64_t microseconds(program::ShortSpan span) { return microseconds(span.duration()); }
inline Duration us(std::int64_t count) { return std::chrono::microseconds{count}; }
inline program::ShortSpan short_us(std::int64_t count) { return program::short_span(us(count)); }
inline SimTime at(std::int64_t count) { return kSimStart + us(count); }

/// Start and end of an operation.
struct Span {
  std::int64_t start = 0;
  std::int64_t end = 0;
  friend bool operator==(const Span&, const Span&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Span& span) {
    return out << "[" << span.start << ", " << span.end << "]";
  }
};

/// What one run did, in the order of the program's operations, pass after pass.
class RunRecorder : public RunObserver {
 public:
  void on_iteration(ProgramRun&, std::uint32_t index, SimTime now) override {
    iterations.emplace_back(index, microseconds(now));
  }
  void on_op_started(ProgramRun& run, std::uint32_t op, SimTime now) override {
    starts.resize(run.program().ops.size());
    starts[op] = now;
  }
  void on_op_finished(const OpRecord& record) override {
    passes.resize(record.run->program().ops.size());
    EXPECT_EQ(record.start, starts[record.op]);
    passes[record.op].push_back({microseconds(record.start), microseconds(record.end)});
    launches.push_back(record.launch);
  }
  void on_pass_finished(ProgramRun&, SimTime now) override {
    pass_ends.push_back(microseconds(now));
  }

  /// Spans of the first pass.
  [[nodiscard]] std::vector<Span> spans() const {
    std::vector<Span> result;
    for (const auto& op : passes) result.push_back(op.empty() ? Span{-1, -1} : op.front());
    return result;
  }

  std::vector<SimTime> starts;
  std::vector<std::uint64_t> launches;  ///< of the operations that ended, in that order
  std::vector<std::vector<Span>> passes;  ///< by operation, then by pass
  std::vector<std::pair<std::uint32_t, std::int64_t>> iterations;
  std::vector<std::int64_t> pass_ends;
};

inline program::Program must_build(const traces::RankTrace& trace, Window window = Window::kWhole,
                          const hardware::GpuSpec& spec = plain_gpu()) {
  return must(build_program(trace, spec, {window}));
}

inline JobProgram must_build_job(const std::vector<TraceBuilder>& ranks,
                                 Window window = Window::kWhole) {
  traces::JobTrace job;
  for (const TraceBuilder& rank : ranks) job.ranks.push_back(rank.trace());
  return must(build_job_program(job, plain_gpu(), {window}));
}

/// Runs a job's ranks once, each on a GPU of its own; returns what each did.
inline std::vector<RunRecorder> run_once(const JobProgram& job,
                                         std::vector<Perturbation> perturbations = {}) {
  std::vector<RunRecorder> recorders(job.ranks.size());
  const hardware::GpuSpec gpu = plain_gpu();
  LoneJob lone(job, gpu, {Repeat::kOnePass, 0, std::move(perturbations)}, pointers_to(recorders));
  lone.run();
  EXPECT_TRUE(lone.finished());
  return recorders;
}

inline RunRecorder run_once(const program::Program& program,
                            const Perturbation& perturbation = {}) {
  JobProgram job;
  job.ranks.push_back(program);
  return run_once(job, {perturbation}).front();
}

/// Start and end of every operation of a lone replay, by launch.
inline std::vector<Span> replayed(const program::Program& program) {
  return run_once(program).spans();
}

using Spans = std::vector<Span>;

/// The same where one operation is `longer` longer.
inline Spans replayed_with_longer(program::Program program, std::size_t op, std::int64_t longer) {
  program.ops[op].duration += us(longer);
  return replayed(program);
}

using Edges = std::vector<std::uint32_t>;

/// A recording, what its replay is, and what it is with an operation that lasts longer.
struct Replayed {
  struct Longer {
    std::size_t op;
    std::int64_t by;
    Spans spans;
  };
  std::string_view name;
  TraceBuilder job;
  Spans recorded;  ///< empty: not compared
  std::vector<Longer> longer{};
  std::vector<std::pair<std::string_view, std::uint64_t>> counters{};
  std::vector<std::pair<std::size_t, program::StepKind>> steps{};  ///< of the first thread
  std::optional<Edges> edges{};  ///< what each edge waits for
  std::vector<std::pair<std::size_t, int>> edge_counts{};  ///< of operations
  std::vector<std::pair<std::size_t, std::int64_t>> lags{}, gaps{};  ///< of operations
};

inline void expect_replays(const std::vector<Replayed>& cases) {
  for (const Replayed& row : cases) {
    SCOPED_TRACE(row.name);
    const program::Program program = must_build(row.job.trace());
    if (!row.recorded.empty()) {
      EXPECT_EQ(replayed(program), row.recorded);
    }
    for (const auto& [op, by, spans] : row.longer) {
      EXPECT_EQ(replayed_with_longer(program, op, by), spans);
    }
    for (const auto& [name, count] : row.counters) EXPECT_EQ(program.counters.count(name), count);
    for (const auto& [step, kind] : row.steps) EXPECT_EQ(program.threads[0].steps[step].kind, kind);
    if (row.edges) {
      Edges before;
      for (const auto& edge : program.edges) before.push_back(edge.before);
      EXPECT_EQ(before, *row.edges);
    }
    for (const auto& [op, count] : row.edge_counts) EXPECT_EQ(program.ops[op].edge_count, count);
    for (const auto& [op, lag] : row.lags) {
      EXPECT_EQ(microseconds(program.ops[op].launch_lag), lag) << "of " << op;
    }
    for (const auto& [op, gap] : row.gaps) {
      EXPECT_EQ(microseconds(program.ops[op].gap), gap) << "of " << op;
    }
  }
}

}  // namespace bubblesim::workload
