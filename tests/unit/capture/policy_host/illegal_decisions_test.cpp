// Decisions that end a run: those that no hardware can carry out while a process runs, and two of
// the session's own, as they come out of the host (all: tests/unit/sim/policy/session_test.cpp).
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <stdexcept>

#include "tests/unit/capture/policy_host/host_rig.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;
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

}  // namespace
}  // namespace bubblesim::capture
