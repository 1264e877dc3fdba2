// What waits for what, found in recordings of jobs whose dependencies are known: jobs made at
// random, run by the twenty lines of `Job` and written as a profiler would. The dependencies found
// are those generated, and a kernel that is longer moves exactly what depends on it. Times in us.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/workload/build_counters.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;
using Kind = program::StepKind;

constexpr std::int64_t kCall = 2;    ///< what every call takes by itself
constexpr std::int64_t kLaunch = 5;  ///< from a launch to its start on an idle stream
constexpr std::int64_t kGap = 1;     ///< from an end to what it held
constexpr std::int64_t kReturn = 2;  ///< from an end to the return of the call that waited

/// A kernel or a copy, and what was given to it.
struct Work {
  std::uint32_t stream = 0;
  std::int64_t length = 0;
  std::vector<std::uint32_t> after{};  ///< operations of other streams
};

/// One call of the host.
struct Call {
  HostCallKind kind = HostCallKind::kLaunchKernel;
  std::int64_t think = 0;        ///< before it
  std::vector<Work> work{};      ///< that it launches
  std::uint32_t stream = 0;      ///< of a synchronisation or an event's record
  std::uint32_t awaited = 0;     ///< event synchronisations: an operation
  std::uint64_t event = 0;
};

/// A call that waited: how, and for what.
using Wait = std::tuple<Kind, std::uint32_t>;

/// What a job did.
struct Done {
  std::vector<Span> calls;
  std::vector<Span> ops;
  std::vector<Wait> waits;
};

/// A host thread, streams and what each call depends on.
struct Job {
  std::uint32_t streams = 2;
  std::vector<Call> calls;

  [[nodiscard]] Done run(std::size_t longer = SIZE_MAX, std::int64_t by = 0) const {
    Done done;
    std::vector<std::int64_t> free(streams, -kGap);
    std::vector<std::uint32_t> last(streams, program::kNoIndex);
    std::int64_t now = 0;
    for (const Call& call : calls) {
      const std::int64_t called = now + call.think;
      now = called + kCall;
      for (const Work& work : call.work) {
        std::int64_t start = std::max(called + kLaunch, free[work.stream] + kGap);
        for (const std::uint32_t op : work.after) start = std::max(start, done.ops[op].end + kGap);
        const std::int64_t length = work.length + (done.ops.size() == longer ? by : 0);
        last[work.stream] = static_cast<std::uint32_t>(done.ops.size());
        done.ops.push_back({start, start + length});
        free[work.stream] = start + length;
      }
      const auto wait = [&](std::int64_t end, Kind kind, std::uint32_t what) {
        now = std::max(now, end + kReturn);
        done.waits.emplace_back(kind, what);
      };
      const std::int64_t all = *std::ranges::max_element(free);
      switch (call.kind) {
        case HostCallKind::kStreamSync:
          if (last[call.stream] != program::kNoIndex) {
            wait(free[call.stream], Kind::kWaitStream, call.stream);
          }
          break;
        case HostCallKind::kDeviceSync:
        case HostCallKind::kFree: wait(all, Kind::kWaitDevice, 0); break;
        case HostCallKind::kEventSync:
          wait(done.ops[call.awaited].end, Kind::kWaitOp, call.awaited);
          break;
        case HostCallKind::kCopy:
          wait(done.ops.back().end, Kind::kLaunchAndWait,
               static_cast<std::uint32_t>(done.ops.size() - 1));
          break;
        default: break;
      }
      done.calls.push_back({called, now});
    }
    return done;
  }
};

/// Which calls of a recording say what they wait for.
enum class Names : std::uint8_t { kRecorded, kLeftOut };

class Maker {
 public:
  explicit Maker(const std::string& name) : random_(1, name) {}

  Job job(Names names) {
    names_ = names;
    job_ = {};
    ops_ = 0;
    pending_.assign(8, {});
    job_.streams = names == Names::kRecorded ? 2 + below(5) : 2;
    for (std::uint32_t i = 0; i < 40; ++i) add_call();
    return job_;
  }

 private:
  std::uint32_t below(std::uint32_t count) {
    return static_cast<std::uint32_t>(random_.uniform() * count);
  }
  Call& add(HostCallKind kind) {
    Call call;
    call.kind = kind;
    call.think = 1 + below(30);
    job_.calls.push_back(call);
    return job_.calls.back();
  }
  Work work(std::uint32_t stream) {
    ++ops_;
    return {stream, 50 + below(200), std::exchange(pending_[stream], {})};
  }

  void add_call() {
    const std::uint32_t stream = below(job_.streams);
    const std::uint32_t what = ops_ == 0 ? 0 : below(11);
    if (what < 4) {
      add(HostCallKind::kLaunchKernel).work.push_back(work(stream));
    } else if (what < 6) {
      add_event(stream);
    } else if (what == 6) {
      add(HostCallKind::kStreamSync).stream = stream;
    } else if (what == 7) {
      add(HostCallKind::kLaunchKernel).work.push_back(work(stream));
      add(below(2) == 0 ? HostCallKind::kDeviceSync : HostCallKind::kFree).think = 1;
    } else if (what == 8) {
      add_event_sync(stream);
    } else if (what == 9) {
      add(HostCallKind::kCopy).work.push_back(work(stream));
    } else if (names_ == Names::kRecorded) {
      add_graph(stream);
    }
  }

  // A kernel, its event's record, another stream's wait for it, and a launch there.
  void add_event(std::uint32_t stream) {
    const std::uint32_t other = (stream + 1 + below(job_.streams - 1)) % job_.streams;
    add(HostCallKind::kLaunchKernel).work.push_back(work(stream));
    pending_[other].push_back(ops_ - 1);
    record(stream);
    Call& wait = add(HostCallKind::kStreamWaitEvent);
    wait.stream = other;
    wait.event = events_;
    add(HostCallKind::kLaunchKernel).work.push_back(work(other));
  }
  void record(std::uint32_t stream) {
    Call& record = add(HostCallKind::kEventRecord);
    record.stream = stream;
    record.event = ++events_;
  }
  void add_event_sync(std::uint32_t stream) {
    add(HostCallKind::kLaunchKernel).work.push_back(work(stream));
    record(stream);
    Call& wait = add(HostCallKind::kEventSync);
    wait.awaited = ops_ - 1;
    wait.event = events_;
  }
  // Two kernels on two streams: the second waits for the first, which no profiler writes. Both
  // streams are idle: behind other work, the wait would not be seen.
  void add_graph(std::uint32_t stream) {
    add(HostCallKind::kDeviceSync);
    const std::uint32_t other = (stream + 1) % job_.streams;
    Call& graph = add(HostCallKind::kLaunchGraph);
    graph.work.push_back(work(stream));
    pending_[other].push_back(ops_ - 1);
    graph.work.push_back(work(other));
  }

  RandomStream random_;
  Names names_ = Names::kRecorded;
  Job job_;
  std::uint32_t ops_ = 0;
  std::uint64_t events_ = 0;
  std::vector<std::vector<std::uint32_t>> pending_;  ///< by stream: what its next operation awaits
};

/// As a profiler writes it, with the host's clock so far ahead of the device's.
traces::RankTrace recorded(const Job& job, Names names, std::int64_t ahead) {
  const Done done = job.run();
  const auto instant = [](std::int64_t at) { return TraceTime{std::chrono::microseconds{at}}; };
  traces::RankTrace trace;
  trace.shapes.intern({});
  trace.threads.resize(1);
  trace.streams.resize(job.streams);
  for (std::size_t i = 0; i < job.calls.size(); ++i) {
    const Call& made = job.calls[i];
    traces::HostCall call;
    call.kind = made.kind;
    call.start = instant(1000 + done.calls[i].start + ahead);
    call.duration = us(done.calls[i].end - done.calls[i].start);
    call.thread = ThreadId{0};
    call.stream = traces::kNone;
    if (names == Names::kRecorded) {
      call.event = made.event;
      if (made.work.empty()) call.stream = made.stream;
    }
    for (const Work& work : made.work) {
      const auto place = static_cast<std::uint32_t>(trace.device_ops.size());
      traces::DeviceOp op;
      const bool copy = made.kind == HostCallKind::kCopy;
      op.kind = copy ? traces::DeviceOpKind::kCopy : traces::DeviceOpKind::kKernel;
      op.start = instant(1000 + done.ops[place].start);
      op.duration = us(done.ops[place].end - done.ops[place].start);
      op.name = trace.names.intern("kernel " + std::to_string(place));
      op.stream = StreamId{work.stream};
      op.launch = static_cast<std::uint32_t>(i);
      trace.device_ops.push_back(op);
      if (names == Names::kLeftOut || made.kind == HostCallKind::kLaunchGraph) continue;
      for (const std::uint32_t before : work.after) {
        trace.edges.push_back({DeviceOpId{before}, DeviceOpId{place}, false});
      }
    }
    trace.host_calls.push_back(call);
  }
  return trace;
}

/// The program numbers operations by launch, a recording by start: this test's jobs by launch.
traces::RankTrace sorted(traces::RankTrace trace) {
  std::vector<std::uint32_t> order(trace.device_ops.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return trace.device_ops[i].start; });
  std::vector<std::uint32_t> place(order.size());
  std::vector<traces::DeviceOp> ops;
  for (const std::uint32_t old : order) {
    place[old] = static_cast<std::uint32_t>(ops.size());
    ops.push_back(trace.device_ops[old]);
  }
  trace.device_ops = std::move(ops);
  for (traces::Edge& edge : trace.edges) {
    edge = {DeviceOpId{place[edge.before.value]}, DeviceOpId{place[edge.after.value]}, false};
  }
  return trace;
}

std::vector<Wait> waits_of(const program::Program& program) {
  std::vector<Wait> waits;
  for (const program::Step& step : program.threads.front().steps) {
    if (step.kind == Kind::kWaitStream || step.kind == Kind::kWaitDevice ||
        step.kind == Kind::kWaitOp || step.kind == Kind::kLaunchAndWait) {
      waits.emplace_back(step.kind, step.kind == Kind::kWaitDevice ? 0 : step.target);
    }
  }
  return waits;
}

std::vector<std::set<std::uint32_t>> edges_of(const program::Program& program) {
  std::vector<std::set<std::uint32_t>> edges(program.ops.size());
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const program::Op& op = program.ops[i];
    for (std::uint32_t e = op.first_edge; e < op.first_edge + op.edge_count; ++e) {
      edges[i].insert(program.edges[e].before);
    }
  }
  return edges;
}

std::vector<std::set<std::uint32_t>> edges_of(const Job& job) {
  std::vector<std::set<std::uint32_t>> edges;
  for (const Call& call : job.calls) {
    for (const Work& work : call.work) {
      edges.emplace_back(work.after.begin(), work.after.end());
    }
  }
  return edges;
}

// Starts and ends, from the first start on, within `off` of each other.
void expect_near(const Spans& found, const Spans& expected, std::int64_t off) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::int64_t start = found[i].start - found[0].start;
    const std::int64_t end = found[i].end - found[0].start;
    EXPECT_LE(std::abs(start - (expected[i].start - expected[0].start)), off) << "operation " << i;
    EXPECT_LE(std::abs(end - (expected[i].end - expected[0].start)), off) << "operation " << i;
  }
}

constexpr int kJobs = 30;

TEST(Dependencies, OfRecordedEventsStreamsAndGraphsAreThoseOfTheJob) {
  Maker maker("recorded");
  for (int i = 0; i < kJobs; ++i) {
    SCOPED_TRACE("job " + std::to_string(i));
    const Job job = maker.job(Names::kRecorded);
    const program::Program program = must_build(sorted(recorded(job, Names::kRecorded, 0)));
    EXPECT_EQ(waits_of(program), job.run().waits);
    EXPECT_EQ(edges_of(program), edges_of(job));
    EXPECT_EQ(program.counters.count(kUnexplainedDelays.name), 0U);
  }
}

TEST(Dependencies, AKernelTwiceAsLongMovesExactlyWhatDependsOnIt) {
  Maker maker("longer");
  for (int i = 0; i < kJobs; ++i) {
    SCOPED_TRACE("job " + std::to_string(i));
    const Job job = maker.job(Names::kRecorded);
    const program::Program program = must_build(sorted(recorded(job, Names::kRecorded, 0)));
    const Spans before = job.run().ops;
    expect_near(workload::replayed(program), before, 0);
    for (std::size_t op = 0; op < before.size(); op += 5) {
      SCOPED_TRACE("longer " + std::to_string(op));
      const std::int64_t length = before[op].end - before[op].start;
      expect_near(replayed_with_longer(program, op, length), job.run(op, length).ops, 0);
    }
  }
}

// Of two streams, the other one is the one waited for: no call has to name it.
TEST(Dependencies, OfEventsAndWaitsWithoutStreamsAreInferred) {
  Maker maker("unnamed");
  for (int i = 0; i < kJobs; ++i) {
    SCOPED_TRACE("job " + std::to_string(i));
    const Job job = maker.job(Names::kLeftOut);
    const program::Program program = must_build(sorted(recorded(job, Names::kLeftOut, 0)));
    const Spans before = job.run().ops;
    expect_near(workload::replayed(program), before, 0);
    EXPECT_EQ(edges_of(program), edges_of(job));
    EXPECT_EQ(program.counters.count(kUnexplainedDelays.name), 0U);
  }
}

// Clocks of host and device differ: the same waits and edges, and what moves does so by what it
// should, but for the offset at each of a chain of waits.
class DependenciesByOffset : public testing::TestWithParam<int> {};

TEST_P(DependenciesByOffset, AreThoseOfTheJob) {
  Maker maker("clocks apart");
  for (int i = 0; i < kJobs; ++i) {
    SCOPED_TRACE("job " + std::to_string(i));
    const Job job = maker.job(Names::kRecorded);
    const program::Program program =
        must_build(sorted(recorded(job, Names::kRecorded, GetParam())));
    const Done done = job.run();
    EXPECT_EQ(waits_of(program), done.waits);
    EXPECT_EQ(edges_of(program), edges_of(job));
    expect_near(workload::replayed(program), done.ops, 0);
    const std::int64_t off = std::abs(GetParam()) * (1 + std::ssize(done.waits));
    for (std::size_t op = 0; op < done.ops.size(); op += 5) {
      SCOPED_TRACE("longer " + std::to_string(op));
      expect_near(replayed_with_longer(program, op, 1000), job.run(op, 1000).ops, off);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Microseconds, DependenciesByOffset, testing::Values(-10, -3, 3, 10));

}  // namespace
}  // namespace bubblesim::workload
