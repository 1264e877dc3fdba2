// Decisions that end a run: those that no hardware can carry out while a process runs, and two of
// the session's own, as they come out of the host (all: tests/unit/sim/policy/session_test.cpp).
#include <gmock/gmock.h>

#include <functional>
#include <ostream>
#include <stdexcept>

#include "capture/policy_host/policy_host.hpp"
#include "tests/unit/capture/policy_host/host_rig.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using policy::Actions;
using program::Preemption;

struct Case {
  std::string name;
  std::function<void(Actions&)> decide;
  std::string reason;
};
std::ostream& operator<<(std::ostream& out, const Case& info) { return out << info.name; }

class IllegalDecision : public ::testing::TestWithParam<Case> {};

TEST_P(IllegalDecision, EndsTheRunAndOpensTheGate) {
  HostRig rig;
  rig.policy.next = 10us;
  rig.policy.ticks = [&](policy::Instant, Actions& actions) { GetParam().decide(actions); };
  rig.start_host();
  rig.start_client(1, Turn::kFiller, [&](GateClient& gate) {
    rig.clock->sleep_until(at(20us));
    EXPECT_TRUE(gate.launch(kernel()).gate_open);
  });
  rig.run_until(30us);
  ASSERT_TRUE(rig.host->fault());
  EXPECT_EQ(rig.host->fault()->text(),
            "policy scripted: illegal decision at 10us: " + GetParam().reason);
  EXPECT_EQ(rig.policy.log, std::vector<std::string>{"10us tick"});
}

INSTANTIATE_TEST_SUITE_P(
    EveryKind, IllegalDecision,
    ::testing::Values(
        Case{"release", [](Actions& actions) { actions.release(kFiller); },
             "released client 1, which holds no launch"},
        Case{"percentage", [](Actions& actions) { actions.set_sm_percentage(kFiller, 101); },
             "set 101 % of SMs, allowed are 1 to 100"},
        Case{"percentage_while_running",
             [](Actions& actions) { actions.set_sm_percentage(kFiller, 50); },
             "set the SMs of client 1 while it runs; MPS sets them when a process starts"},
        Case{"priority", [](Actions& actions) { actions.set_priority(kFiller, 1); },
             "set the priority of client 1 while it runs; CUDA sets it when a stream is made"},
        Case{"slice", [](Actions& actions) { actions.set_time_slice(kFiller, 1ms); },
             "set the time slice of client 1 while it runs; the driver's slices are fixed"},
        Case{"preempt_blocks",
             [](Actions& actions) { actions.preempt(kFiller, Preemption::kAfterBlocks); },
             "drove off kernels of client 1 while it runs; a gate leaves resident blocks alone "
             "(after_kernel)"},
        Case{"reset", [](Actions& actions) { actions.preempt(kFiller, Preemption::kReset); },
             "drove off kernels of client 1 while it runs; a gate leaves resident blocks alone "
             "(after_kernel)"},
        Case{"context_switch",
             [](Actions& actions) { actions.preempt(kFiller, Preemption::kContextSwitch); },
             "drove off kernels of client 1 while it runs; a gate leaves resident blocks alone "
             "(after_kernel)"},
        Case{"preempt_one_who_does_not_wait",
             [](Actions& actions) { actions.preempt(ClientId{0}, Preemption::kAfterKernel); },
             "drove off kernels of client 0, whose threads do not wait for verdicts"},
        Case{"reshape", [](Actions& actions) { actions.reshape(kFiller, {4, 1}); },
             "reshaped a launch of client 1 while it runs; a gate cannot rewrite kernels"},
        Case{"memory",
             [](Actions& actions) { actions.set_resident_memory(kFiller, Bytes{1}); },
             "moved the memory of client 1 while it runs; a gate cannot move it"}),
    [](const auto& test) { return test.param.name; });

TEST(IllegalDecisions, AHoldOfAClientThatDoesNotWait) {
  HostRig rig;
  rig.policy.launch = [](const auto&, auto, auto&) { return policy::Verdict::kHold; };
  rig.start_host();
  rig.start_client(0, Turn::kTraining, [&](GateClient& gate) { gate.launch(kernel()); });
  rig.run_until(30us);
  ASSERT_TRUE(rig.host->fault());
  EXPECT_EQ(rig.host->fault()->message,
            "illegal decision at 0ns: held a launch of client 0, whose threads do not wait for "
            "verdicts");
}

TEST(IllegalDecisions, TicksWithoutEndAtOneInstant) {
  HostRig rig;
  rig.policy.next = 10us;
  rig.start_host();
  rig.run_until(30us);
  ASSERT_TRUE(rig.host->fault());
  EXPECT_EQ(rig.host->fault()->message,
            "illegal decision at 10us: asks for ticks without end at one instant");
  EXPECT_EQ(rig.policy.log.size(), 10'000u);
}

TEST(IllegalDecisions, AnExceptionEndsTheRunAsOneDoes) {
  HostRig rig;
  rig.policy.launch = [](const auto&, auto, auto&) -> policy::Verdict {
    throw std::runtime_error("no launch was expected");
  };
  rig.start_host();
  rig.start_client(1, Turn::kFiller, [&](GateClient& gate) {
    gate.launch(kernel());
    rig.clock->sleep_until(at(20us));
    EXPECT_TRUE(gate.launch(kernel()).gate_open);
  });
  rig.run_until(30us);
  ASSERT_TRUE(rig.host->fault());
  EXPECT_EQ(rig.host->fault()->text(),
            "policy scripted: threw an exception: no launch was expected");
  EXPECT_EQ(rig.policy.log, std::vector<std::string>{"0ns launch 1.1"});
}

// A clock that steps: the policy's instants never decrease, and steps are counted.

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
