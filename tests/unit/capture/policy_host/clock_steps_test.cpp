// A clock that steps: the policy's instants never decrease, and steps are counted.
#include <gmock/gmock.h>

#include "capture/policy_host/policy_host.hpp"
#include "tests/unit/capture/policy_host/host_rig.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

/// Another clock, some time off.
class OffClock final : public HostClock {
 public:
  explicit OffClock(HostClock& clock) : clock_(clock) {}
  Duration off{};

  HostTime now() const override { return clock_.now() + off; }
  std::unique_ptr<ClockPart> join(Turn turn) override { return clock_.join(turn); }
  void sleep_until(HostTime until) override { clock_.sleep_until(until - off); }
  void wait(Bell& bell, std::uint32_t seen, HostTime deadline) override {
    clock_.wait(bell, seen, deadline == HostTime::max() ? deadline : deadline - off);
  }
  void ring(Bell& bell) override { clock_.ring(bell); }
  std::uint32_t bell_id() override { return clock_.bell_id(); }
  std::uint32_t parts_begun() const override { return clock_.parts_begun(); }
  bool await_parts(std::uint32_t parts, Duration patience) override {
    return clock_.await_parts(parts, patience);
  }
  TurnHolder holder() const override { return clock_.holder(); }
  std::string address() const override { return clock_.address(); }

 private:
  HostClock& clock_;
};

/// The client's clock steps back by 30 us after its launch at 50 us, and ahead by 500 us later; the
/// host's stays.
TEST(ClockSteps, AClientsTimesOutOfOrderAreClampedAndCounted) {
  HostRig rig;
  OffClock off(*rig.clock);
  rig.start_host();
  const auto gate = *GateClient::open(rig.host->gate_name(), ClientId{0}, off);
  Crew crew(*rig.clock);
  crew.start(Turn::kTraining, [&] {
    rig.clock->sleep_until(at(50us));
    gate->launch(kernel());
    off.off = -30us;
    rig.clock->sleep_until(at(60us));
    gate->launch(kernel());  // says 30 us
    off.off = 500us;
    rig.clock->sleep_until(at(70us));
    gate->launch(kernel());  // says 570 us
    off.off = 0us;
    rig.clock->sleep_until(at(80us));
    gate->launch(kernel());
  });
  rig.run_until(100us);
  crew.wait();
  EXPECT_THAT(rig.policy.log, ElementsAre("50us launch 0.1", "50us launch 0.2", "70us launch 0.3",
                                          "80us launch 0.4"));
  EXPECT_EQ(rig.host->counts().clock_steps, 2u);
  EXPECT_EQ(rig.host->counts().longest_step, 500us);
  EXPECT_EQ(rig.host->counters().count("gate_times_out_of_order"), 2u);
}

TEST(ClockSteps, InstantsStandStillUntilAClockThatSteppedBackHasCaughtUp) {
  InstantLine line;
  line.set_origin(at(100us));
  EXPECT_EQ(line.at(at(150us), at(160us)), 50us);
  EXPECT_EQ(line.at(at(70us), at(70us)), 50us);
  EXPECT_EQ(line.at(at(140us), at(140us)), 50us);
  EXPECT_EQ(line.at(at(151us), at(151us)), 51us);
  EXPECT_EQ(line.steps(), 2u);
  EXPECT_EQ(line.longest(), 80us);
}

TEST(ClockSteps, WhatHappenedBeforeTheOriginIsAtZeroAndNoStep) {
  InstantLine line;
  line.set_origin(at(100us));
  EXPECT_EQ(line.at(at(20us), at(30us)), 0us);
  EXPECT_EQ(line.at(at(25us), at(110us)), 0us);
  EXPECT_EQ(line.steps(), 0u);
  EXPECT_EQ(line.time_of(5us), at(105us));
}

}  // namespace
}  // namespace bubblesim::capture
