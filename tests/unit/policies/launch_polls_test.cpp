#include "policies/launch_polls.hpp"

#include <gmock/gmock.h>

#include "tests/conformance/policies/no_actions.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;
using namespace std::chrono_literals;

/// Remembers what was released; every client's oldest launch carries its id.
class Recorder final : public testing::NoActions {
 public:
  void release(ClientId client) override { released.push_back(client.value); }
  std::size_t held(ClientId) const override { return 1; }
  const LaunchInfo& oldest_held(ClientId client) const override {
    launch_.client = client;
    return launch_;
  }
  std::vector<std::uint32_t> released;

 private:
  mutable LaunchInfo launch_;
};

TEST(launch_polls, want_no_tick_while_nobody_waits) {
  LaunchPolls polls(10ms);
  EXPECT_EQ(polls.next(), std::nullopt);
}

TEST(launch_polls, wake_each_thread_a_period_after_it_was_held) {
  LaunchPolls polls(10ms);
  Recorder actions;
  polls.hold(ClientId{1}, 0ms);
  polls.hold(ClientId{2}, 3ms);
  EXPECT_EQ(polls.next(), Duration{10ms});
  polls.wake(10ms, actions, [](const LaunchInfo&) { return true; });
  EXPECT_THAT(actions.released, ::testing::ElementsAre(1));
  EXPECT_EQ(polls.next(), Duration{13ms});
}

TEST(launch_polls, wake_again_a_period_later_if_the_gate_is_shut) {
  LaunchPolls polls(10ms);
  Recorder actions;
  polls.hold(ClientId{1}, 0ms);
  polls.wake(12ms, actions, [](const LaunchInfo&) { return false; });  // called late
  EXPECT_EQ(polls.next(), Duration{22ms});
  EXPECT_THAT(actions.released, ::testing::IsEmpty());
}

TEST(launch_polls, wake_in_the_order_of_being_held) {
  LaunchPolls polls(10ms);
  Recorder actions;
  for (std::uint32_t id : {3u, 1u, 2u}) polls.hold(ClientId{id}, 0ms);
  int left = 2;
  polls.wake(10ms, actions, [&left](const LaunchInfo&) { return left-- > 0; });
  EXPECT_THAT(actions.released, ::testing::ElementsAre(3, 1));
}

TEST(next_multiple, lies_after_now) {
  EXPECT_EQ(next_multiple(0ms, 5ms), Duration{5ms});
  EXPECT_EQ(next_multiple(4999us, 5ms), Duration{5ms});
  EXPECT_EQ(next_multiple(5ms, 5ms), Duration{10ms});
}

TEST(admit_with_reserve, keeps_the_reserve_free) {
  GpuInfo gpu;
  gpu.memory = Bytes{100};
  const ClientInfo filler{ClientId{1}, Role::kOffline, "f", Bytes{50}, true};
  EXPECT_TRUE(admit_with_reserve(filler, Bytes{40}, Bytes{10}, gpu).admitted);
  EXPECT_FALSE(admit_with_reserve(filler, Bytes{41}, Bytes{10}, gpu).admitted);
}

}  // namespace
}  // namespace bubblesim::policies
