// What a kernel costs to simulate: submission, placement, completion, and the listener's calls.
// `items_per_second` counts kernels.
#include <benchmark/benchmark.h>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/gpu/gpu.hpp"
#include "tests/bench/bench_job.hpp"

namespace bubblesim::gpu {
namespace {

/// Each client keeps `depth` kernels on the GPU: one that ends is followed by the next.
class Streams final : public WorkListener {
 public:
  Streams(const SharingSetup& sharing, std::uint32_t clients, std::uint32_t depth,
          std::uint64_t blocks)
      : spec_(bench::bench_device()),
        gpu_(engine_, spec_, sharing),
        profile_(
            program::profile_kernel({blocks, 256, 64, 0}, program::KernelClass::kMemory, spec_)) {
    for (std::uint32_t i = 0; i < clients; ++i) {
      gpu_.add_client({.name = "c", .priority = static_cast<std::int32_t>(i)}, *this);
    }
    for (std::uint32_t i = 0; i < clients * depth; ++i) submit(i / depth);
  }
  void on_work_started(std::uint64_t, WorkId, SimTime) override {}
  void on_work_finished(std::uint64_t cookie, SimTime) override {
    ++finished_;
    submit(static_cast<std::uint32_t>(cookie));
  }
  std::uint64_t run(Duration span) {
    limit_ += span;
    const std::uint64_t before = finished_;
    engine_.run_until(limit_);
    return finished_ - before;
  }

 private:
  void submit(std::uint32_t client) {
    gpu_.submit({.client = ClientId{client}, .kind = program::WorkKind::kKernel,
                 .solo = Duration{5000 + static_cast<std::int64_t>(++submitted_ % 97)},
                 .profile = &profile_, .cookie = client});
  }

  hardware::GpuSpec spec_;
  engine::Engine engine_;
  Gpu gpu_;
  program::KernelProfile profile_;
  SimTime limit_{};
  std::uint64_t finished_ = 0;
  std::uint64_t submitted_ = 0;
};

void run(benchmark::State& state, const SharingSetup& sharing, std::uint32_t clients,
         std::uint32_t depth, std::uint64_t blocks) {
  Streams streams(sharing, clients, depth, blocks);
  std::uint64_t kernels = 0;
  for (auto _ : state) kernels += streams.run(Duration{5'000'000});
  state.SetItemsProcessed(static_cast<std::int64_t>(kernels));
}

void lone_stream(benchmark::State& state) { run(state, {}, 1, 1, 100); }
void two_clients_that_contend(benchmark::State& state) { run(state, {}, 2, 1, 264); }
void two_clients_that_queue(benchmark::State& state) { run(state, {}, 2, 1, 5000); }
void two_clients_in_time_slices(benchmark::State& state) {
  run(state, {.mode = program::SharingMode::kTimeSliced, .slice = Duration{1'000'000},
              .switch_cost = Duration{50'000}}, 2, 1, 100);
}

BENCHMARK(lone_stream);
BENCHMARK(two_clients_that_contend);
BENCHMARK(two_clients_that_queue);
BENCHMARK(two_clients_in_time_slices);

}  // namespace
}  // namespace bubblesim::gpu
