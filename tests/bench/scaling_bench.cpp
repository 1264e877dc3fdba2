// How the cost of a simulation grows with each of its sizes, the others kept: kernels an
// iteration, ranks, fillers, simulated time. A line is a size; the cost of growth is what
// `ns_kernel` differs by along an axis. tests/bench/plot_scaling.py draws the JSON of it.
//
// `kernels`: kernels and collectives that ran, of all ranks and fillers. `ns_kernel`: CPU time of
// the whole simulation, its set-up included, for one of them. `trace_bytes`: what the programs
// hold in memory for a kernel of theirs. `run_kB`: what the simulation holds besides when it has
// ended, for a rank. `in_windows`: the share of events that GPUs ran on their own
// (sim/engine/conductor.hpp).
//
// BUBBLESIM_BENCH_LARGE=1 adds the large sizes of each axis (some seconds and 200 MB each).
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <malloc.h>
#include <numeric>
#include <string>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/run/simulation.hpp"
#include "tests/bench/bench_job.hpp"

namespace bubblesim::bench {
namespace {

constexpr std::uint32_t kKernelsACollective = 100;

// 4 to 9 us; not random, but no rank has another's durations, nor their sum.
Duration duration_of(std::uint32_t rank, std::size_t number) {
  const std::uint64_t of_rank = (rank + 1) * 40503ULL * (number % 97 + 1);
  const std::uint64_t mixed = (number + 1) * 2654435761ULL + of_rank;
  return Duration{static_cast<std::int64_t>(4000 + mixed % 5000)};
}

/// What one line measures.
struct Size {
  std::uint32_t ranks = 1;
  std::uint32_t kernels = 2000;              ///< an iteration's, on a rank
  std::uint32_t fillers = 1;                 ///< dealt out to the GPUs in turn, one GPU each
  std::uint32_t filler_kernels = 500;        ///< a pass's
  std::optional<double> filler_rate_per_s{};  ///< passes of all; nothing: offline
  bool everywhere = false;                   ///< the one filler runs on every GPU
  Duration duration{};                       ///< simulated
};

// Bytes that are allocated now. Nothing of a simulation on one thread is anybody else's.
double heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

void add_fillers(const Size& size, run::LoadedRun& loaded) {
  const Shared program(
      run::LoadedFiller{bench_filler(size.filler_kernels, duration_of, loaded.device)});
  for (std::uint32_t i = 0; i < size.fillers; ++i) {
    run::FillerConfig& filler = loaded.config.fillers.emplace_back();
    filler.name = "filler " + std::to_string(i);
    if (!size.everywhere) filler.gpus = {i % size.ranks};
    if (size.filler_rate_per_s) {
      filler.mode = observe::FillerMode::kOnline;
      filler.arrivals = workload::PoissonArrivals{*size.filler_rate_per_s / size.fillers};
    }
    loaded.fillers.push_back(program);
  }
}

run::LoadedRun load(const Size& size) {
  run::LoadedRun loaded;
  loaded.device = bench_device();
  loaded.training = bench_job(
      {size.ranks, size.kernels, kKernelsACollective, duration_of}, loaded.device);
  loaded.config.duration = size.duration;
  add_fillers(size, loaded);
  return loaded;
}

double kernels_of(const run::LoadedRun& loaded) {
  std::size_t kernels = 0;
  for (const program::Program& program : loaded.training->ranks) kernels += program.ops.size();
  return static_cast<double>(kernels);
}

template <class T>
std::size_t bytes_in(const std::vector<T>& vector) {
  return vector.capacity() * sizeof(T);
}

// What vectors of the program hold.
std::size_t bytes_of(const program::Program& program) {
  std::size_t bytes = sizeof(program) + bytes_in(program.threads) + bytes_in(program.ops) +
                      bytes_in(program.edges) + bytes_in(program.details) +
                      bytes_in(program.profiles) + bytes_in(program.shapes) +
                      bytes_in(program.memory);
  for (const program::ThreadProgram& thread : program.threads) bytes += bytes_in(thread.steps);
  return bytes;
}

double trace_bytes_of(const run::LoadedRun& loaded) {
  std::size_t bytes = 0;
  for (const program::Program& program : loaded.training->ranks) bytes += bytes_of(program);
  return static_cast<double>(bytes);
}

// Of passes that ended, and of iterations, where the last counts by the time that it ran for.
double kernels_run(const run::LoadedRun& loaded, const observe::PolicyResult& result) {
  double kernels = 0;
  for (std::size_t rank = 0; rank < result.training.ranks.size(); ++rank) {
    const auto& times = result.training.ranks[rank].times;
    const Duration ended = std::accumulate(times.begin(), times.end(), Duration{});
    const double iterations =
        to_seconds(result.simulated) / to_seconds(ended) * static_cast<double>(times.size());
    kernels += iterations * static_cast<double>(loaded.training->ranks[rank].ops.size());
  }
  for (std::size_t i = 0; i < result.fillers.size(); ++i) {
    kernels +=
        static_cast<double>(result.fillers[i].passes * loaded.fillers[i]->program.ops.size());
  }
  return kernels;
}

void simulate(benchmark::State& state, const Size& size, const policy::PolicySpec& policy) {
  const run::LoadedRun loaded = load(size);
  const policy::ParameterSet parameters = policy::defaults(policy);
  run::RunScenario scenario;
  scenario.policy = &policy;
  scenario.parameters = &parameters;
  for (std::uint32_t i = 0; i < size.fillers; ++i) scenario.fillers.push_back(i);
  double run_bytes = 0, in_windows = 0;
  double kernels = 0;
  for (auto _ : state) {
    const double before = heap_bytes();
    run::Simulation simulation(loaded, scenario);
    const auto result = simulation.run();
    if (!result) return state.SkipWithError(result.error().text().c_str());
    run_bytes = heap_bytes() - before;
    in_windows = static_cast<double>(simulation.conductor().events_in_windows()) /
                 static_cast<double>(simulation.conductor().events());
    kernels += kernels_run(loaded, *result);
  }
  using benchmark::Counter;
  state.counters["kernels"] = Counter(kernels, Counter::kAvgIterations);
  state.counters["ns_kernel"] = Counter(kernels / 1e9, Counter::kIsRate | Counter::kInvert);
  state.counters["trace_bytes"] = trace_bytes_of(loaded) / kernels_of(loaded);
  state.counters["run_kB"] = run_bytes / 1e3 / size.ranks;
  state.counters["in_windows"] = in_windows;
}

constexpr Duration milliseconds(std::int64_t count) { return Duration{count * 1'000'000}; }

// Sizes above `small` need BUBBLESIM_BENCH_LARGE.
struct Axis {
  std::string name;
  std::vector<std::uint32_t> values;
  std::uint32_t small;
  Size (*size_of)(std::uint32_t value);
};

// Of few ranks more is simulated: four iterations of 2,000 kernels take 52 ms.
constexpr Duration time_of_ranks(std::uint32_t ranks) {
  return milliseconds(60) + milliseconds(800) / ranks;
}

const std::vector<Axis> kAxes{
    {"kernels", {100, 1000, 10'000, 100'000}, 1000,
     [](std::uint32_t value) {
       return Size{.kernels = value, .duration = milliseconds(value < 100'000 ? 1000 : 6000)};
     }},
    {"ranks_alone", {1, 8, 64, 256, 1024}, 64,
     [](std::uint32_t value) {
       return Size{.ranks = value, .fillers = 0, .duration = time_of_ranks(value)};
     }},
    {"ranks_filled", {1, 8, 64, 256, 1024}, 8,
     [](std::uint32_t value) {
       return Size{.ranks = value, .everywhere = true, .duration = time_of_ranks(value)};
     }},
    {"fillers_offline", {1, 10, 100, 1000}, 10,
     [](std::uint32_t value) {
       return Size{.ranks = 8, .kernels = 100, .fillers = value, .filler_kernels = 10,
                   .duration = milliseconds(200)};
     }},
    {"fillers_online", {1, 10, 100, 1000}, 10,
     [](std::uint32_t value) {
       return Size{.ranks = 8, .kernels = 100, .fillers = value, .filler_kernels = 10,
                   .filler_rate_per_s = 20'000, .duration = milliseconds(200)};
     }},
    {"milliseconds", {100, 1000, 10'000, 100'000}, 1000,
     [](std::uint32_t value) { return Size{.duration = milliseconds(value)}; }},
};

int register_all() {
  static policy::Registry registry = policies::builtin_policies();
  const policy::PolicySpec& mps = **registry.find("mps");
  const bool large = std::getenv("BUBBLESIM_BENCH_LARGE") != nullptr;
  for (const Axis& axis : kAxes) {
    for (const std::uint32_t value : axis.values) {
      if (value > axis.small && !large) continue;
      benchmark::RegisterBenchmark(
          ("scaling/" + axis.name + "/" + std::to_string(value)).c_str(),
          [size = axis.size_of(value), &mps](benchmark::State& state) {
            simulate(state, size, mps);
          })->Unit(benchmark::kMillisecond);
    }
  }
  return 0;
}

[[maybe_unused]] const int registered = register_all();

}  // namespace
}  // namespace bubblesim::bench
