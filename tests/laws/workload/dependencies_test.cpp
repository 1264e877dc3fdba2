// What waits for what, found in recordings of jobs whose dependencies are known: jobs made at
// random, run by the twenty lines of `Job` and written as a profiler would. The dependencies found
// are those generated, and a kernel that is longer moves exactly what depends on it. Times in us.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/workload/build_counters.hpp"
#include "sim/workload/replay.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"
#include "traces/join/join_parts.hpp"
#include "traces/join/split_devices.hpp"

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

/// A host thread, streams and what each call depends on. Streams are dealt out to the GPUs in turn.
struct Job {
  std::uint32_t streams = 2;
  std::uint32_t gpus = 1;
  std::vector<Call> calls;

  /// The end of all that the GPU of a stream was given.
  [[nodiscard]] std::int64_t all_ended(const std::vector<std::int64_t>& free,
                                       std::uint32_t stream) const {
    std::int64_t end = free[stream];
    for (std::size_t i = stream % gpus; i < free.size(); i += gpus) end = std::max(end, free[i]);
    return end;
  }

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
      const std::int64_t all = all_ended(free, call.stream);
      switch (call.kind) {
        case HostCallKind::kStreamSync:
          if (last[call.stream] != program::kNoIndex) {
            wait(free[call.stream], Kind::kWaitStream, call.stream);
          }
          break;
        case HostCallKind::kDeviceSync:
        case HostCallKind::kAlloc:
        case HostCallKind::kFree: wait(all, Kind::kWaitDevice, 0); break;
        case HostCallKind::kEventQuery:
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

/// Whether calls of another thread come between.
enum class Threads : std::uint8_t { kOne, kTwo };

class Maker {
 public:
  explicit Maker(const std::string& name, std::uint32_t gpus = 1)
      : random_(1, name), gpus_(gpus) {}

  Job job(Names names, Threads threads = Threads::kOne) {
    names_ = names;
    threads_ = threads;
    job_ = {};
    job_.gpus = gpus_;
    ops_ = 0;
    pending_.assign(8, {});
    job_.streams = names == Names::kRecorded ? 2 * gpus_ + below(5) : 2;
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
    // Between launches lie up to three; from 30 us on, a pause may be another thread's hand-over.
    call.think = 1 + below(threads_ == Threads::kOne ? 30 : 8);
    job_.calls.push_back(call);
    return job_.calls.back();
  }
  Work work(std::uint32_t stream) {
    ++ops_;
    return {stream, 50 + below(200), std::exchange(pending_[stream], {})};
  }

  // Another stream of the same GPU.
  std::uint32_t beside(std::uint32_t stream) {
    const std::uint32_t gpu = stream % gpus_;
    const std::uint32_t count = (job_.streams - gpu + gpus_ - 1) / gpus_;
    return gpu + gpus_ * ((stream / gpus_ + 1 + below(count - 1)) % count);
  }

  void add_call() {
    const std::uint32_t stream = below(job_.streams);
    // What waits for all of the GPU waits for the other thread's work, too.
    const std::uint32_t most = threads_ == Threads::kOne ? 11 : 7;
    const std::uint32_t what = ops_ == 0 ? 0 : below(most);
    if (what < 4) {
      add(HostCallKind::kLaunchKernel).work.push_back(work(stream));
    } else if (what < 6) {
      add_event(stream);
    } else if (what == 6) {
      add(HostCallKind::kStreamSync).stream = stream;
    } else if (what == 7) {
      add(HostCallKind::kLaunchKernel).work.push_back(work(stream));
      Call& wait = add(kWaitForAll[below(3)]);
      wait.think = 1;
      wait.stream = stream;
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
    const std::uint32_t other = beside(stream);
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
    Call& launch = add(HostCallKind::kLaunchKernel);
    launch.work.push_back(work(stream));
    launch.work.back().length += 100;  // a poll takes as long at least
    record(stream);
    Call& wait = add(below(2) == 0 ? HostCallKind::kEventSync : HostCallKind::kEventQuery);
    wait.awaited = ops_ - 1;
    wait.stream = stream;
    wait.event = events_;
  }
  // Two kernels on two streams: the second waits for the first, which no profiler writes. Both
  // streams are idle: behind other work, the wait would not be seen.
  void add_graph(std::uint32_t stream) {
    // A synchronisation is of the GPU that the thread used last.
    if (gpus_ > 1) add(HostCallKind::kLaunchKernel).work.push_back(work(stream));
    add(HostCallKind::kDeviceSync).stream = stream;
    const std::uint32_t other = beside(stream);
    Call& graph = add(HostCallKind::kLaunchGraph);
    graph.work.push_back(work(stream));
    pending_[other].push_back(ops_ - 1);
    graph.work.push_back(work(other));
  }

  static constexpr std::array kWaitForAll{HostCallKind::kDeviceSync, HostCallKind::kFree,
                                          HostCallKind::kAlloc};

  RandomStream random_;
  std::uint32_t gpus_;
  Names names_ = Names::kRecorded;
  Threads threads_ = Threads::kOne;
  Job job_;
  std::uint32_t ops_ = 0;
  std::uint64_t events_ = 0;
  std::vector<std::vector<std::uint32_t>> pending_;  ///< by stream: what its next operation awaits
};

bool waits_for_all(HostCallKind kind) {
  return kind == HostCallKind::kDeviceSync || kind == HostCallKind::kFree ||
         kind == HostCallKind::kAlloc;
}

TraceTime instant(std::int64_t at) { return TraceTime{std::chrono::microseconds{at}}; }

/// A poll is a row of queries of 2 us, the last of which ends it.
void add_queries(const traces::HostCall& poll, std::vector<traces::HostCall>& calls) {
  traces::HostCall query = poll;
  query.duration = us(2);
  for (; query.start < poll.end() - us(4); query.start += us(4)) calls.push_back(query);
  query.start = poll.end() - us(2);
  calls.push_back(query);
}

/// As a profiler writes it, with the host's clock so far ahead of the device's.
traces::RankTrace recorded(const Job& job, Names names, std::int64_t ahead) {
  const Done done = job.run();
  traces::RankTrace trace;
  trace.shapes.intern({});
  trace.threads.resize(1);
  trace.streams.resize(job.streams);
  for (std::uint32_t i = 0; i < job.streams; ++i) trace.streams[i].device = i % job.gpus;
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
      if (made.work.empty() && !waits_for_all(made.kind)) call.stream = made.stream;
    }
    if (made.kind == HostCallKind::kEventQuery) {
      add_queries(call, trace.host_calls);
      continue;
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
      op.launch = static_cast<std::uint32_t>(trace.host_calls.size());
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

/// Where each record went.
template <class Record>
std::vector<std::uint32_t> sort_by_start(std::vector<Record>& records) {
  std::vector<std::uint32_t> order(records.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return records[i].start; });
  std::vector<std::uint32_t> place(order.size());
  std::vector<Record> sorted;
  for (const std::uint32_t old : order) {
    place[old] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(records[old]);
  }
  records = std::move(sorted);
  return place;
}

void sort_calls(traces::RankTrace& trace) {
  const std::vector<std::uint32_t> place = sort_by_start(trace.host_calls);
  for (traces::DeviceOp& op : trace.device_ops) op.launch = place[op.launch];
}

/// The program numbers operations by launch, a recording by start: this test's jobs by launch.
traces::RankTrace sorted(traces::RankTrace trace) {
  sort_calls(trace);
  const std::vector<std::uint32_t> place = sort_by_start(trace.device_ops);
  for (traces::Edge& edge : trace.edges) {
    edge = {DeviceOpId{place[edge.before.value]}, DeviceOpId{place[edge.after.value]}, false};
  }
  return trace;
}

/// Two recordings of one clock as one, of two threads.
traces::RankTrace beside(traces::RankTrace trace, const traces::RankTrace& other) {
  const auto streams = static_cast<std::uint32_t>(trace.streams.size());
  const auto calls = static_cast<std::uint32_t>(trace.host_calls.size());
  const auto ops = static_cast<std::uint32_t>(trace.device_ops.size());
  trace.threads.resize(2);
  trace.streams.insert(trace.streams.end(), other.streams.begin(), other.streams.end());
  for (traces::HostCall call : other.host_calls) {
    call.thread = ThreadId{1};
    if (call.stream != traces::kNone) call.stream += streams;
    if (call.event != 0) call.event += 1000;
    trace.host_calls.push_back(call);
  }
  for (traces::DeviceOp op : other.device_ops) {
    op.stream.value += streams;
    op.launch += calls;
    op.name = trace.names.intern("kernel " + std::to_string(trace.device_ops.size()));
    trace.device_ops.push_back(op);
  }
  for (const traces::Edge& edge : other.edges) {
    trace.edges.push_back({DeviceOpId{edge.before.value + ops}, DeviceOpId{edge.after.value + ops},
                           false});
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
    for (const Work& work : call.work) edges.emplace_back(work.after.begin(), work.after.end());
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

/// The operations of all ranks by the number in their names; one of them `by` us longer.
Spans replayed_by_name(JobProgram job, std::size_t longer = SIZE_MAX, std::int64_t by = 0) {
  std::size_t count = 0;
  const auto number = [](const program::Program& rank, const program::Op& op) {
    return std::stoul(rank.names[op.name].substr(std::string_view("kernel ").size()));
  };
  for (program::Program& rank : job.ranks) {
    count += rank.ops.size();
    for (program::Op& op : rank.ops) op.duration += us(number(rank, op) == longer ? by : 0);
  }
  const std::vector<RunRecorder> done = run_once(job);
  Spans spans(count);
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const Spans of_rank = done[i].spans();
    for (std::size_t op = 0; op < of_rank.size(); ++op) {
      spans[number(job.ranks[i], job.ranks[i].ops[op])] = of_rank[op];
    }
  }
  return spans;
}

/// A rank a GPU, as importers make them of a process.
JobProgram must_build_process(const traces::RankTrace& process, Window window = Window::kWhole) {
  traces::JobTrace job{traces::split_by_device(process)};
  for (std::uint32_t i = 0; i < job.ranks.size(); ++i) {
    job.ranks[i].rank = i;
    job.ranks[i].process = 1;
  }
  Result<JobProgram> program = build_job_program(job, plain_gpu(), {window});
  EXPECT_TRUE(program.has_value());
  return *std::move(program);
}

constexpr int kJobs = 30;

/// Gives `test` each of kJobs jobs.
template <class Test>
void for_each_job(const char* name, Names names, const Test& test, std::uint32_t gpus = 1) {
  Maker maker(name, gpus);
  for (int i = 0; i < kJobs; ++i) {
    SCOPED_TRACE("job " + std::to_string(i));
    test(maker.job(names));
  }
}

// Of two streams, the other one is the one waited for: no call has to name it.
TEST(Dependencies, OfEventsAndWaitsWithoutStreamsAreInferred) {
  for_each_job("unnamed", Names::kLeftOut, [](const Job& job) {
    const program::Program program = must_build(sorted(recorded(job, Names::kLeftOut, 0)));
    expect_near(workload::replayed(program), job.run().ops, 0);
    EXPECT_EQ(edges_of(program), edges_of(job));
    EXPECT_EQ(program.counters.count(kUnexplainedDelays.name), 0U);
  });
}

// Clocks of host and device agree or differ: the same waits and edges, and what moves does so by
// what it should, but for the offset at each of a chain of waits.
class DependenciesByOffset : public testing::TestWithParam<int> {};

TEST_P(DependenciesByOffset, AreThoseOfTheJob) {
  for_each_job("clocks apart", Names::kRecorded, [](const Job& job) {
    const program::Program program =
        must_build(sorted(recorded(job, Names::kRecorded, GetParam())));
    const Done done = job.run();
    EXPECT_EQ(waits_of(program), done.waits);
    EXPECT_EQ(edges_of(program), edges_of(job));
    expect_near(workload::replayed(program), done.ops, 0);
    if (GetParam() == 0) {
      EXPECT_EQ(program.counters.count(kUnexplainedDelays.name), 0U);
    }
    const std::int64_t off = std::abs(GetParam()) * (1 + std::ssize(done.waits));
    for (std::size_t op = 0; op < done.ops.size(); op += 5) {
      SCOPED_TRACE("longer " + std::to_string(op));
      expect_near(replayed_with_longer(program, op, 1000), job.run(op, 1000).ops, off);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Microseconds, DependenciesByOffset, testing::Values(-10, -3, 0, 3, 10));

// One thread drives both, in one order: what waits for the one holds what is launched on the other.
TEST(Dependencies, OfAHostWithTwoGpusAreThoseOfTheJob) {
  std::size_t moved_elsewhere = 0;
  for_each_job("two GPUs", Names::kRecorded, [&](const Job& job) {
    const JobProgram program = must_build_process(sorted(recorded(job, Names::kRecorded, 0)));
    if (program.ranks.size() < 2) return;
    const Spans before = job.run().ops;
    expect_near(replayed_by_name(program), before, 0);
    for (std::size_t op = 0; op < before.size(); op += 5) {
      SCOPED_TRACE("longer " + std::to_string(op));
      const Spans after = job.run(op, 1000).ops;
      // A GPU with few operations does not show its usual gap.
      expect_near(replayed_by_name(program, op, 1000), after, kGap);
      moved_elsewhere += after.back().end - before.back().end >= 500 ? 1 : 0;
    }
  }, 2);
  EXPECT_GT(moved_elsewhere, 100U);
}

// A kernel of 400 us on GPU 0, a wait, one of 300 us on GPU 1, a wait, and so on. An iteration
// takes what both take, of any pass: its first launch comes after the last wait of the pass before.
TEST(Dependencies, OfAHostWithTwoGpusHoldFromPassToPass) {
  Job job;
  job.gpus = 2;
  constexpr std::uint32_t kIterations = 4;
  for (std::uint32_t i = 0; i < 2 * kIterations; ++i) {
    job.calls.push_back({HostCallKind::kLaunchKernel, 3, {{i % 2, i % 2 == 0 ? 400 : 300}}});
    job.calls.push_back({HostCallKind::kDeviceSync, 1, {}, i % 2});
  }
  traces::RankTrace process = recorded(job, Names::kRecorded, 0);
  for (std::uint32_t i = 0; i < kIterations; ++i) {
    traces::Marker marker;
    marker.start = process.host_calls[4 * i].start;
    marker.duration = process.host_calls[4 * i + 3].end() - marker.start;
    marker.kind = traces::MarkerKind::kIteration;
    marker.number = i;
    process.markers.push_back(marker);
  }
  JobProgram program = must_build_process(sorted(process), Window::kIterations);
  const auto iteration = [&] {
    return repeat_alone(program, plain_gpu()).value().ranks.front().simulated.front();
  };
  const Duration before = iteration();
  for (program::Op& op : program.ranks[1].ops) op.duration += us(300);
  EXPECT_EQ(iteration() - before, us(300));
  for (program::Op& op : program.ranks[0].ops) op.duration += us(400);
  EXPECT_EQ(iteration() - before, us(700));
}

// Two threads that share nothing, each with streams of its own.
TEST(Dependencies, OfTwoThreadsAreThoseOfEach) {
  Maker maker("two threads");
  for (int i = 0; i < kJobs; ++i) {
    SCOPED_TRACE("job " + std::to_string(i));
    const Job first = maker.job(Names::kRecorded, Threads::kTwo);
    const Job second = maker.job(Names::kRecorded, Threads::kTwo);
    const traces::RankTrace trace =
        sorted(beside(recorded(first, Names::kRecorded, 0), recorded(second, Names::kRecorded, 0)));
    const program::Program program = must_build(trace);
    EXPECT_EQ(program.counters.count(kUnexplainedDelays.name), 0U);
    JobProgram alone;
    alone.ranks.push_back(program);
    Spans expected = first.run().ops;
    const std::size_t of_first = expected.size();
    std::ranges::copy(second.run().ops, std::back_inserter(expected));
    expect_near(replayed_by_name(alone), expected, 0);
    for (std::size_t op = 0; op < of_first; op += 5) {
      SCOPED_TRACE("longer " + std::to_string(op));
      std::ranges::copy(first.run(op, 1000).ops, expected.begin());
      expect_near(replayed_by_name(alone, op, 1000), expected, 0);
    }
  }
}

// A profiler's fault: one kernel 5 s before its launch. It is dropped and counted; the others are
// where they were.
TEST(Dependencies, OfAJobWithAnImpossibleStartAreThoseOfTheOthers) {
  for_each_job("impossible", Names::kRecorded, [](const Job& job) {
    traces::RankTrace trace = recorded(job, Names::kRecorded, 0);
    trace.device_ops.back().start -= std::chrono::seconds(5);
    trace = sorted(std::move(trace));
    traces::drop_impossible_ops(trace);
    EXPECT_EQ(trace.counters.count("join_device_ops_before_launch_dropped"), 1U);
    Spans expected = job.run().ops;
    expected.pop_back();
    JobProgram alone;
    alone.ranks.push_back(must_build(trace));
    expect_near(replayed_by_name(alone), expected, 0);
  });
}

}  // namespace
}  // namespace bubblesim::workload
