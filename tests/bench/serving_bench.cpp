// What a language-model server costs to simulate: the scheduler alone at a fixed cost of steps, and
// with the kernels of Llama 3.1 8B timed for every step by the kernel model and by a filler's
// program. Requests of 250 tokens of prompt and 250 of output arrive at nine tenths of what the
// server can do; `requests_per_min` is of CPU time. `KiB_more` is what the process grows by in a
// run of ten times as many requests: memory follows requests in flight.
//
// The requirement: 200,000 requests of 500 tokens a minute.
#include <benchmark/benchmark.h>
#include <cmath>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include "sim/base/random.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/step_cost/engine_cost.hpp"
#include "sim/step_cost/model_times.hpp"
#include "sim/synth/server_plan.hpp"
#include "sim/synth/server_program.hpp"
#include "tests/fakes/lone_cost.hpp"

namespace bubblesim::serving {
namespace {

const std::string kConfigs = std::string(BUBBLESIM_SOURCE_DIR) + "/configs";
constexpr std::uint32_t kPrompt = 250;
constexpr std::uint32_t kOutput = 250;
constexpr Duration kStep = std::chrono::milliseconds{10};
constexpr double kLoad = 0.9;

class PoissonSource final : public RequestSource {
 public:
  PoissonSource(std::uint64_t requests, std::uint32_t sequences)
      : left_(requests), random_(1, "bench"),
        gap_s_(kOutput * to_seconds(kStep) / (kLoad * sequences)) {}

  std::optional<Request> next() override {
    if (left_-- == 0) return std::nullopt;
    now_ += Duration{std::llround(1e9 * random_.exponential(gap_s_))};
    Request request;
    request.number = ++number_;
    request.arrival = now_;
    request.prompt_tokens = kPrompt;
    request.output_tokens = kOutput;
    return request;
  }

 private:
  std::uint64_t left_;
  RandomStream random_;
  double gap_s_;
  std::uint64_t number_ = 0;
  SimTime now_{};
};

class Count final : public ServerObserver {
 public:
  void on_arrival(const Request&, ArrivalOutcome) override {}
  void on_step(const ScheduledStep&, SimTime, SimTime, const Scheduler&) override { ++steps; }
  void on_finished(const FinishedRequest&) override { ++finished; }
  std::uint64_t steps = 0;
  std::uint64_t finished = 0;
};

class FixedStep final : public StepCost {
 public:
  Duration step_time(const ScheduledStep&, bool) override { return kStep; }
};

/// A step is timed by `inner`; the server still takes kStep, so that all cases have the same load.
template <class Inner>
class TimedStep final : public StepCost {
 public:
  explicit TimedStep(Inner inner) : inner_(std::move(inner)) {}
  Duration step_time(const ScheduledStep& step, bool queued) override {
    inner_(step, queued);
    return kStep;
  }

 private:
  Inner inner_;
};

template <class T>
T good(CheckedResult<T> result) {
  if (!result) throw std::runtime_error(result.error().front().text());
  return *std::move(result);
}
template <class T>
T good(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return *std::move(result);
}

double resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6));
  }
  return 0;
}

SchedulerSpec spec_of(std::uint32_t sequences) {
  SchedulerSpec spec = vllm_settings();
  spec.enable_prefix_caching = false;
  spec.max_num_seqs = sequences;
  spec.kv_blocks = sequences * 40;
  return spec;
}

Count serve(std::uint64_t requests, std::uint32_t sequences, StepCost& cost) {
  Scheduler scheduler(spec_of(sequences));
  PoissonSource source(requests, sequences);
  Count count;
  serve_alone(scheduler, source, cost, count);
  return count;
}

void report(benchmark::State& state, std::uint64_t finished, std::uint64_t steps) {
  state.SetItemsProcessed(static_cast<std::int64_t>(finished));
  state.counters["requests_per_min"] =
      benchmark::Counter(60.0 * static_cast<double>(finished), benchmark::Counter::kIsRate);
  state.counters["steps"] = static_cast<double>(steps);
}

void run_case(benchmark::State& state, std::uint64_t requests, StepCost& cost) {
  std::uint64_t finished = 0;
  std::uint64_t steps = 0;
  for (auto _ : state) {
    const Count count = serve(requests, static_cast<std::uint32_t>(state.range(0)), cost);
    finished += count.finished;
    steps += count.steps;
  }
  report(state, finished, steps);
}

void scheduler_alone(benchmark::State& state) {
  FixedStep cost;
  run_case(state, 20'000, cost);
  const double before = resident_kib();
  (void)serve(200'000, static_cast<std::uint32_t>(state.range(0)), cost);
  state.counters["KiB_more"] = resident_kib() - before;
}
BENCHMARK(scheduler_alone)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);

synth::InferenceRequest llama() {
  synth::InferenceNames names;
  names.model = "llama3-8b";
  names.precision = model::Precision::kBf16;
  names.decode = synth::DecodeMode::kGraph;
  names.engine.emplace();
  const auto gpu = good(hardware::find_gpu_spec("a100-80gb", kConfigs + "/devices"));
  return good(synth::find_inference(names, gpu, kConfigs));
}

void kernel_model(benchmark::State& state) {
  const synth::InferenceRequest request = llama();
  const auto& transformer = std::get<model::TransformerSpec>(request.model.network);
  const step_cost::ServerLayout layout;
  const step_cost::EngineSpec engine;
  step_cost::ModelTimes times(request.model, layout, request.gpu, request.efficiency);
  step_cost::EngineCost of_engine(times, transformer, layout, engine,
                                  step_cost::vllm_graphs({.max_num_seqs = 256}));
  step_cost::LoneCost inner(of_engine);
  const auto time = [&inner](const ScheduledStep& step, bool queued) {
    benchmark::DoNotOptimize(inner.step_time(step, queued));
  };
  TimedStep cost(time);
  run_case(state, 2'000, cost);
}
BENCHMARK(kernel_model)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);

void filler_program(benchmark::State& state) {
  synth::EngineSettings settings;
  settings.scheduler = spec_of(static_cast<std::uint32_t>(state.range(0)));
  settings.cache = synth::CacheBlocks{1000};
  const Shared<synth::ServerPlan> plan(good(synth::plan_server(llama(), settings)));
  const auto program = good(synth::ServerProgram::make(plan));
  const auto set = [&program](const ScheduledStep& step, bool queued) {
    benchmark::DoNotOptimize(program->set(step, program->shape_of(step), queued));
  };
  TimedStep cost(set);
  run_case(state, 2'000, cost);
}
BENCHMARK(filler_program)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bubblesim::serving
