// What a .btr file costs: bytes a kernel on disk, time to write and to read.
//
// One kernel is one device operation and the host call that launched it, as a captured training
// step has them: 400 names, 1500 shapes, gaps and durations of hundreds of ns to tens of us, 2 % of
// operations collectives, one stream in ten another. bytes_per_second is of records in memory,
// file_bytes/s of the file.
#include <benchmark/benchmark.h>
#include <cstdio>
#include <filesystem>
#include <string>

#include "sim/base/random.hpp"
#include "traces/format/trace_reader.hpp"
#include "traces/format/trace_writer.hpp"

namespace bubblesim::traces::format {
namespace {

constexpr std::uint32_t kNames = 400;
constexpr std::uint32_t kShapes = 1500;
/// Kernels of one iteration; each iteration repeats names, shapes and, but for noise, durations.
constexpr std::uint32_t kStepKernels = 5000;

std::uint32_t pick(RandomStream& random, std::uint32_t count) {
  return static_cast<std::uint32_t>(random.uniform() * count);
}

Duration around(RandomStream& random, double mean_ns, double deviation) {
  const double factor = random.normal(1.0, deviation);
  return Duration{static_cast<std::int64_t>(mean_ns * (factor < 0.1 ? 0.1 : factor))};
}

void add_tables(RankTrace& trace) {
  for (std::uint32_t i = 0; i < kNames; ++i) {
    trace.names.intern("void at::native::vectorized_elementwise_kernel<4, Functor" +
                       std::to_string(i) + ", std::array<char*, 3> >(int, float)");
  }
  for (std::uint32_t i = 0; i < kShapes; ++i) {
    trace.shapes.intern({{i + 1, 1 + i % 7, 1}, {128U << (i % 3), 1, 1}, 64, (i % 5) * 16'384});
  }
  trace.threads = {{1, "main"}, {2, "autograd"}};
  trace.streams = {{7, 0}, {20, -5}};
}

void add_collective(RankTrace& trace, DeviceOp& op) {
  op.kind = DeviceOpKind::kCollective;
  op.collective = static_cast<std::uint32_t>(trace.collectives.size());
  trace.collectives.push_back({CollectiveKind::kAllReduce, 26'214'400, NameId{1}, 8,
                               {0, 1, 2, 3, 4, 5, 6, 7}, op.collective, true});
}

JobTrace synthetic_job(std::uint32_t kernels) {
  RandomStream random(1, "trace_format_bench");
  JobTrace job;
  RankTrace& trace = job.ranks.emplace_back();
  add_tables(trace);
  std::vector<DeviceOp> step(kStepKernels);
  for (DeviceOp& op : step) {
    op.duration = Duration{static_cast<std::int64_t>(random.exponential(20'000)) + 1'000};
    op.name = NameId{pick(random, kNames)};
    op.shape = ShapeId{pick(random, kShapes)};
    op.stream = StreamId{random.uniform() < 0.1 ? 1U : 0U};
  }
  TraceTime host{Duration{1'700'000'000'000'000'000}};
  TraceTime device = host;
  for (std::uint32_t i = 0; i < kernels; ++i) {
    host += around(random, 6'000, 0.4);
    trace.host_calls.push_back({host, around(random, 3'500, 0.2), 1000 + i, NameId{0},
                                ThreadId{i / 2500 % 2}, HostCallKind::kLaunchKernel});
    DeviceOp op = step[i % kStepKernels];
    op.start = device = std::max(device, host + Duration{4'000}) + around(random, 900, 0.3);
    op.duration = around(random, static_cast<double>(to_ns(op.duration)), 0.03);
    op.correlation = 1000 + i;
    op.launch = i;
    if (i % 50 == 0) add_collective(trace, op);
    trace.device_ops.push_back(op);
    device += op.duration;
  }
  return job;
}

std::int64_t bytes_in_memory(const JobTrace& job) {
  const RankTrace& trace = job.ranks.front();
  return static_cast<std::int64_t>(trace.host_calls.size() * sizeof(HostCall) +
                                   trace.device_ops.size() * sizeof(DeviceOp) +
                                   trace.collectives.size() * sizeof(Collective));
}

std::string bench_path() {
  return (std::filesystem::temp_directory_path() / "bubblesim_trace_format_bench.btr").string();
}

/// Size of the job and of its file, for both directions.
void report(benchmark::State& state, const JobTrace& job) {
  const auto kernels = static_cast<double>(state.range(0));
  const auto file_bytes = static_cast<double>(std::filesystem::file_size(bench_path()));
  state.SetBytesProcessed(state.iterations() * bytes_in_memory(job));
  state.counters["bytes/kernel"] = file_bytes / kernels;
  state.counters["memory/kernel"] = static_cast<double>(bytes_in_memory(job)) / kernels;
  state.counters["file_bytes/s"] = benchmark::Counter(
      file_bytes * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["kernels/s"] = benchmark::Counter(
      kernels * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void write_trace(benchmark::State& state) {
  const JobTrace job = synthetic_job(static_cast<std::uint32_t>(state.range(0)));
  const WriterOptions options{.compression_level = static_cast<int>(state.range(1))};
  for (auto _ : state) {
    if (!write_job(bench_path(), job, options)) state.SkipWithError("cannot write");
  }
  report(state, job);
  std::remove(bench_path().c_str());
}

void read_trace(benchmark::State& state) {
  const JobTrace job = synthetic_job(static_cast<std::uint32_t>(state.range(0)));
  if (!write_job(bench_path(), job)) state.SkipWithError("cannot write");
  for (auto _ : state) {
    auto outcome = read_job(bench_path());
    benchmark::DoNotOptimize(outcome);
    if (!outcome || !outcome->counters.empty()) state.SkipWithError("cannot read");
  }
  report(state, job);
  std::remove(bench_path().c_str());
}

BENCHMARK(write_trace)
    ->ArgNames({"kernels", "level"})
    ->Args({1'000'000, 1})
    ->Args({1'000'000, 3})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(read_trace)->ArgName("kernels")->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bubblesim::traces::format
