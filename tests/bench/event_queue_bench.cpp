// What an event costs, by how many entities are pending: the hold model. Every entity has one
// event; the earliest is taken and its entity rescheduled an exponential time later (mean 1 us),
// which keeps the number pending constant; exponential times have no memory, so the first moment is
// as good as any. `items_per_second` counts events.
//
// Two that do the same work in the same run: the engine (what the simulator pays), and the bare
// structure under it.
#include <algorithm>
#include <array>
#include <benchmark/benchmark.h>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/engine/engine.hpp"

namespace bubblesim::engine {
namespace {

constexpr Duration kMean{1000};

/// Exponential spans, drawn ahead: a logarithm costs more than an event of a small queue.
class Spans {
 public:
  Spans() {
    RandomStream random(1, "hold model");
    for (Duration& span : table_) {
      span = scale(kMean, random.exponential(1.0));
    }
  }
  Duration next() { return table_[at_++ % table_.size()]; }

 private:
  std::array<Duration, 4096> table_{};
  std::size_t at_ = 0;
};

/// An entity of the engine that reschedules itself.
class Holder final : public EventHandler {
 public:
  Holder(Engine& engine, Spans& spans) : engine_(engine), spans_(spans) {
    entity_ = engine.add_entity(*this, Phase::kHost);
    engine.schedule(entity_, kSimStart + spans.next());
  }
  void on_event(SimTime now) override { engine_.schedule(entity_, now + spans_.next()); }

 private:
  Engine& engine_;
  Spans& spans_;
  EntityId entity_{};
};

void hold_engine(benchmark::State& state) {
  Engine engine;
  Spans spans;
  std::vector<std::unique_ptr<Holder>> holders;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    holders.push_back(std::make_unique<Holder>(engine, spans));
  }
  // About a thousand events a step, whatever the number of entities.
  const Duration step{1000 * kMean.count() / state.range(0) + 1};
  SimTime limit = kSimStart;
  for (auto _ : state) engine.run_until(limit += step);
  state.SetItemsProcessed(static_cast<std::int64_t>(engine.events()));
}

/// The best that is known for one event an entity: a winner tree of keys, nothing else. Its keys
/// hold 40 bits of time and the entity: no phase, no order of scheduling, no far times.
void hold_bare_tree(benchmark::State& state) {
  constexpr unsigned kEntityBits = 24;
  const std::size_t leaves = std::bit_ceil(static_cast<std::size_t>(state.range(0)));
  std::vector<std::uint64_t> tree(2 * leaves, UINT64_MAX);
  Spans spans;
  const auto set = [&](std::size_t entity, std::uint64_t time) {
    std::uint64_t key = time << kEntityBits | entity;
    for (std::size_t node = leaves + entity; node > 1; node /= 2) {
      tree[node] = key;
      key = std::min(key, tree[node ^ 1U]);
    }
    tree[1] = key;
  };
  const auto next = [&] { return static_cast<std::uint64_t>(spans.next().count()); };
  for (std::size_t i = 0; i < static_cast<std::size_t>(state.range(0)); ++i) set(i, next());
  for (auto _ : state) {
    const std::uint64_t first = tree[1];
    set(first & ((std::uint64_t{1} << kEntityBits) - 1), (first >> kEntityBits) + next());
  }
  state.SetItemsProcessed(state.iterations());
}

void sizes(benchmark::internal::Benchmark* bench) {
  for (const std::int64_t entities : {16, 256, 4096, 65536, 1'000'000}) bench->Arg(entities);
}

BENCHMARK(hold_engine)->Apply(sizes);
BENCHMARK(hold_bare_tree)->Apply(sizes);

}  // namespace
}  // namespace bubblesim::engine
