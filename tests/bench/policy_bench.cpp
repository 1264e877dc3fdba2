// What a policy's decision costs: one launch of training at 100 us steps, its completion if the
// policy asks for completions, and the question for the next tick after each, as the engine room
// asks it. One benchmark a policy, defaults throughout.
#include <benchmark/benchmark.h>

#include "policies/builtin.hpp"
#include "tests/conformance/policies/no_actions.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

void decide(benchmark::State& state, const PolicySpec& spec) {
  const auto policy = spec.make(defaults(spec));
  const std::vector<ClientInfo> clients{{ClientId{0}, Role::kTraining, "training", {}, false},
                                        {ClientId{1}, Role::kOffline, "filler", {}, false}};
  policy->start({}, clients);
  policy->admit(clients[1], {}, {});
  testing::NoActions actions;
  Instant now{};
  LaunchInfo launch{ClientId{0}, WorkKind::kKernel, 100, 256, 0, {}};
  for (auto _ : state) {
    now += 100us;
    ++launch.launch;
    benchmark::DoNotOptimize(policy->on_launch(launch, now, actions));
    if (spec.needs.completions) {
      benchmark::DoNotOptimize(policy->next_tick());
      policy->on_completion({ClientId{0}, WorkKind::kKernel, launch.launch}, now, actions);
    }
    if (policy->next_tick().value_or(Instant::max()) <= now) policy->on_tick(now, actions);
  }
}

int register_all() {
  static Registry registry = policies::builtin_policies();
  for (const PolicySpec& spec : registry.all()) {
    benchmark::RegisterBenchmark(spec.name.c_str(),
                                 [&spec](benchmark::State& state) { decide(state, spec); });
  }
  return 0;
}

[[maybe_unused]] const int registered = register_all();

}  // namespace
}  // namespace bubblesim::policies
