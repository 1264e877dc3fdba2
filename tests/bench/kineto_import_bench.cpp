// Throughput of the Kineto import: JSON bytes a second on one core, of a generated text and of a
// file.
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/bench/generated_kineto.hpp"
#include "traces/import/kineto_import.hpp"

namespace {

void import_generated_text(benchmark::State& state) {
  const std::string text =
      bubblesim::bench::generated_kineto(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    auto trace = bubblesim::traces::import_kineto_text(text, "generated.json");
    if (!trace) return state.SkipWithError("refused");
    benchmark::DoNotOptimize(trace->device_ops.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
}
BENCHMARK(import_generated_text)->Arg(20000)->Arg(100000)->Unit(benchmark::kMillisecond);

/// A real file, as it lies on disk: set BUBBLESIM_BENCH_TRACE to its path. Bytes are the file's.
void import_file(benchmark::State& state) {
  const char* path = std::getenv("BUBBLESIM_BENCH_TRACE");
  if (path == nullptr) return state.SkipWithError("BUBBLESIM_BENCH_TRACE is not set");
  for (auto _ : state) {
    auto process = bubblesim::traces::import_kineto_process(path);
    if (!process) return state.SkipWithError("refused");
    benchmark::DoNotOptimize(process->ranks.front().device_ops.data());
  }
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path));
  state.SetBytesProcessed(size * state.iterations());
}
BENCHMARK(import_file)->Unit(benchmark::kMillisecond);

}  // namespace
