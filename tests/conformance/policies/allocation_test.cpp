// Launches that pass at once, and ticks, allocate nothing. Its own executable, as it replaces the
// allocation functions.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "policies/builtin.hpp"
#include "tests/conformance/policies/no_actions.hpp"

namespace {

std::size_t allocations = 0;

}  // namespace

// Not inlined: GCC 12 would see malloc() and free() meet operators, and warn of a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

TEST(every_policy, allocates_nothing_where_nothing_is_held) {
  const Registry registry = policies::builtin_policies();
  for (const PolicySpec& spec : registry.all()) {
    const auto policy = spec.make(defaults(spec));
    const std::vector<ClientInfo> clients{{ClientId{0}, Role::kTraining, "t", {}, false},
                                          {ClientId{1}, Role::kOnline, "f", {}, false}};
    policy->start({}, clients);
    policy->admit(clients[1], {}, {});
    testing::NoActions actions;
    policy->on_bubble_begin({100s, Bytes{}, true}, 0s, actions);
    // In the first six seconds a policy may learn what repeats.
    std::size_t before = 0;
    for (int i = 0; i < 11000; ++i) {
      if (i == 6000) before = allocations;
      const Instant now = 1ms * i;
      const LaunchInfo training{ClientId{0}, WorkKind::kKernel, 100, 256, 1, {}};
      const LaunchInfo copy{ClientId{1}, WorkKind::kCopy, 0, 0, 1, 1us};
      policy->on_launch(training, now, actions);
      policy->on_launch(copy, now, actions);
      policy->on_completion({ClientId{0}, WorkKind::kKernel, 1}, now, actions);
      if (policy->next_tick().value_or(1000s) <= now) policy->on_tick(now, actions);
    }
    // A burst's length may be remembered: no more than doubling a vector of 20.
    EXPECT_LE(allocations - before, 6u) << spec.name;
  }
}

}  // namespace
}  // namespace bubblesim::policies
