// What it costs to build programs from a recorded job: time an operation of the recording, and the
// bytes an operation that are allocated at the peak (`B_peak`) and by the programs themselves
// (`B_held`), beyond what the recording holds.
//
// The recording is one of a job made here: 25,000 kernels a rank, a collective after every 50th.
// BUBBLESIM_BENCH_TRACE names a real one, a file or a folder, to be built as it is.
#include <atomic>
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <stdexcept>
#include <utility>

#include "sim/run/load_trace.hpp"
#include "sim/synth/record_trace.hpp"
#include "sim/workload/program_builder.hpp"
#include "tests/bench/bench_job.hpp"

namespace {

std::atomic<std::size_t> live_bytes{0};
std::atomic<std::size_t> peak_bytes{0};

// Not inlined, nor is release(): GCC would see free() of what operator new gave, and warn.
[[gnu::noinline]] void* allocate(std::size_t size) noexcept {
  void* const memory = std::malloc(size);
  if (memory == nullptr) return nullptr;
  const std::size_t bytes = malloc_usable_size(memory);
  const std::size_t live = live_bytes.fetch_add(bytes) + bytes;
  std::size_t peak = peak_bytes.load();
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live)) {
  }
  return memory;
}

[[gnu::noinline]] void release(void* memory) noexcept {
  if (memory != nullptr) live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
  void* const memory = allocate(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return allocate(size);
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { release(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { release(memory); }

namespace bubblesim {
namespace {

using workload::Window;

// 4 to 9 us.
Duration duration_of(std::uint32_t rank, std::size_t number) {
  return Duration{static_cast<std::int64_t>(4000 + (number * 37 + rank) % 5000)};
}

traces::JobTrace recorded(const workload::JobProgram& job, const hardware::GpuSpec& device,
                          std::uint32_t iterations) {
  auto trace = synth::record_trace(job, device, {.iterations = iterations});
  if (!trace) throw std::runtime_error(trace.error().text());
  return *std::move(trace);
}

traces::JobTrace made(std::uint32_t ranks, const hardware::GpuSpec& device) {
  return recorded(bench::bench_job({ranks, 5000, 50, duration_of}, device), device, 5);
}

void build(benchmark::State& state, const traces::JobTrace& trace, std::size_t threads) {
  const hardware::GpuSpec device = bench::bench_device();
  std::size_t ops = 0;
  std::size_t peak = 0;
  std::size_t held = 0;
  for (auto _ : state) {
    const std::size_t before = live_bytes;
    peak_bytes = before;
    const auto job = workload::build_job_program(trace, device, {Window::kWhole, {}, threads});
    if (!job) return state.SkipWithError(job.error().text().c_str());
    peak = peak_bytes - before;
    held = live_bytes - before;
    ops = 0;
    for (const program::Program& rank : job->ranks) ops += rank.ops.size();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ops));
  state.counters["B_peak"] = static_cast<double>(peak) / static_cast<double>(ops);
  state.counters["B_held"] = static_cast<double>(held) / static_cast<double>(ops);
}

void whole_recording(benchmark::State& state) {
  build(state, made(static_cast<std::uint32_t>(state.range(0)), bench::bench_device()),
        static_cast<std::size_t>(state.range(1)));
}
BENCHMARK(whole_recording)
    ->ArgNames({"ranks", "threads"})
    ->Args({1, 1})
    ->Args({8, 1})
    ->Args({8, 2})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// A recording that is named; without one there is no such case.
int register_named() {
  const char* const path = std::getenv("BUBBLESIM_BENCH_TRACE");
  if (path == nullptr) return 0;
  static const auto loaded = run::load_trace({path});
  if (!loaded) throw std::runtime_error(loaded.error().text());
  benchmark::RegisterBenchmark("named_recording", [](benchmark::State& state) {
    build(state, loaded->job, static_cast<std::size_t>(state.range(0)));
  })->ArgName("threads")->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
  return 0;
}

[[maybe_unused]] const int registered = register_named();

}  // namespace
}  // namespace bubblesim
