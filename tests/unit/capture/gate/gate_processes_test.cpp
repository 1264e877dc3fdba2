// Clients and hosts in processes of their own, killed and stalled.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include "capture/clock/host_clock.hpp"
#include "capture/clock/shared_segment.hpp"
#include "capture/gate/gate_board.hpp"
#include "tests/unit/capture/clock/child_process.hpp"
#include "tests/unit/capture/policy_host/host_rig.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;
using bubblesim::testing::ChildProcess;
using policy::Verdict;
using ::testing::ElementsAre;

constexpr ClientId kFiller{1};

/// A process that takes part in the rig's clock, as a client.
using Work = std::function<void(HostClock&, GateClient&)>;
std::unique_ptr<ChildProcess> start_process(HostRig& rig, std::uint32_t id, const Work& work) {
  const std::uint32_t begun = rig.clock->parts_begun();
  auto child = std::make_unique<ChildProcess>([&] {
    const auto clock = *open_clock(rig.clock->address());
    const auto part = clock->join(Turn::kFiller);
    const auto gate = *GateClient::open(rig.host->gate_name(), ClientId{id}, *clock);
    work(*clock, *gate);
  });
  EXPECT_TRUE(rig.clock->await_parts(begun + 1, 30s));
  return child;
}

/// Two client processes, launches at 5, 10, 15 us and 7, 14 us; those at 10 and 14 us are held
/// until 20 us.
TEST(GateProcesses, AskAsThreadsDo) {
  HostRig rig({}, 3);
  rig.policy.launch = [](const policy::LaunchInfo& info, auto, auto&) {
    return info.launch == 2 ? Verdict::kHold : Verdict::kAdmit;
  };
  rig.policy.next = 20us;
  rig.policy.ticks = [&](policy::Instant, policy::Actions& actions) {
    actions.release(ClientId{2});
    actions.release(ClientId{1});
    rig.policy.next.reset();
  };
  const auto every = [](Duration step, int count) {
    return [=](HostClock& clock, GateClient& gate) {
      for (int i = 1; i <= count; ++i) {
        clock.sleep_until(at(step * i));
        const Passage passage = gate.launch(kernel());
        if (passage.gate_open || passage.held != (i == 2)) _exit(3);
      }
    };
  };
  const auto first = start_process(rig, 1, every(5us, 3));
  const auto second = start_process(rig, 2, every(7us, 2));
  rig.start_host();
  rig.run_until(40us);
  EXPECT_EQ(first->wait(), 0);
  EXPECT_EQ(second->wait(), 0);
  EXPECT_THAT(rig.policy.log, ElementsAre("5us launch 1.1", "7us launch 2.1", "10us launch 1.2",
                                          "14us launch 2.2", "20us tick", "20us launch 1.3"));
}

TEST(GateProcesses, OneThatIsKilledWhileHeldIsGoneAndTheOthersGoOn) {
  HostRig rig({}, 3);
  rig.policy.launch = [](const policy::LaunchInfo& info, auto, auto&) {
    return info.client == kFiller ? Verdict::kHold : Verdict::kAdmit;
  };
  const auto victim =
      start_process(rig, 1, [](HostClock&, GateClient& gate) { gate.launch(kernel()); });
  rig.start_host();
  rig.start_client(2, Turn::kFiller, [&](GateClient& gate) {
    rig.clock->sleep_until(at(8us));
    EXPECT_FALSE(gate.launch(kernel()).gate_open);
  });
  rig.clock->sleep_until(at(5us));
  victim->kill();
  rig.host->client_gone(kFiller);
  rig.run_until(20us);
  EXPECT_THAT(rig.policy.log,
              ElementsAre("0ns launch 1.1", "5us gone 1, held 0", "8us launch 2.1"));
  EXPECT_EQ(rig.host->counts().clients_died, 1u);
  EXPECT_FALSE(GateClient::open(rig.host->gate_name(), kFiller, *rig.clock));
}

/// Nobody says so: the host looks every 100 ms, here beside a filler's held launch. Training's
/// kernel ended with its process; the one that comes after it is gated.
TEST(GateProcesses, TheSuccessorOfOneThatIsKilledIsGated) {
  HostRig rig({.completions = true});
  rig.policy.launch = [](const policy::LaunchInfo& info, auto, auto&) {
    return info.client == kFiller ? Verdict::kHold : Verdict::kAdmit;
  };
  const auto victim = start_process(rig, 0, [](HostClock& clock, GateClient& gate) {
    gate.launch(kernel());
    clock.sleep_until(at(60s));
  });
  rig.start_host();
  rig.start_client(1, Turn::kFiller, [](GateClient& gate) { gate.launch(kernel()); });
  rig.clock->sleep_until(at(5us));
  victim->kill();
  rig.clock->sleep_until(at(1s));
  ASSERT_EQ(rig.policy.log.size(), 3u);
  EXPECT_THAT(rig.policy.log[2], ::testing::EndsWith("completion 0.1"));
  const auto next = rig.open(0);
  ASSERT_NE(next, nullptr);
  EXPECT_FALSE(next->launch(kernel()).gate_open);
  rig.run_until(2s);
  ASSERT_EQ(rig.policy.log.size(), 4u);
  EXPECT_THAT(rig.policy.log[3], ::testing::EndsWith("launch 0.2"));
  EXPECT_EQ(rig.host->counts().clients_died, 0u);
}

/// It got its verdict at 1 us and does nothing with it until 50 ms; the other launches meanwhile.
TEST(GateProcesses, OneThatStallsBetweenVerdictAndLaunchHoldsUpNobody) {
  HostRig rig({}, 3);
  const auto stalled = start_process(rig, 1, [](HostClock& clock, GateClient& gate) {
    clock.sleep_until(at(1us));
    gate.launch(kernel());
    clock.sleep_until(at(50ms));
    gate.completed(program::WorkKind::kKernel, 1);
  });
  rig.start_host();
  rig.start_client(2, Turn::kFiller, [&](GateClient& gate) {
    for (int i = 1; i <= 49; ++i) {
      rig.clock->sleep_until(at(1ms * i));
      EXPECT_EQ(gate.launch(kernel()).asked, 0ns);
    }
  });
  rig.run_until(60ms);
  EXPECT_EQ(stalled->wait(), 0);
  EXPECT_EQ(rig.policy.log.size(), 50u);
  EXPECT_EQ(rig.host->counts().decision_latency.max, 0ns);
}

/// What a host in another process needs to tell.
struct Board {
  char gate[64];
};

/// The host is killed inside the policy at 10 us, while one launch is held since 5 us and another
/// asks. Both go on after a quarter of the patience, when they first look.
TEST(GateProcesses, TheDeathOfTheHostStopsNobody) {
  auto clock = *make_turn_clock();
  const auto part = clock->join(Turn::kControl);
  auto memory = *SharedSegment::make("bubblesim.test", sizeof(Board));
  auto& board = *static_cast<Board*>(memory->address());
  ChildProcess host([&] {
    ScriptedPolicy policy;
    policy::PolicySpec spec;
    policy.launch = [](const policy::LaunchInfo& info, auto, auto&) {
      if (info.launch == 2) raise(SIGKILL);
      return Verdict::kHold;
    };
    PolicyHostSetup setup{&spec, &policy, {}, {}};
    setup.clients.resize(1);
    auto made = *PolicyHost::make(*clock, std::move(setup));
    made->gate_name().copy(board.gate, sizeof(board.gate) - 1);
    const auto own_part = clock->join(Turn::kPolicy);
    made->run();
  });
  ASSERT_TRUE(clock->await_parts(2, 30s));
  auto gate = *GateClient::open(board.gate, ClientId{0}, *clock, 400us);
  Crew crew(*clock);
  std::vector<Duration> times;
  for (const Duration when : {5us, 10us, 300us}) {
    crew.start(Turn::kFiller, [&, when] {
      clock->sleep_until(at(when));
      EXPECT_TRUE(gate->launch(kernel()).gate_open);
      times.push_back(clock->now().time_since_epoch());
    });
  }
  crew.wait();
  EXPECT_EQ(host.wait(), -SIGKILL);
  EXPECT_EQ(gate->counts().ungated, 3u);
  // The last does not even wait.
  EXPECT_THAT(times, ElementsAre(105us, 110us, 300us));
  shm_unlink(board.gate);
}

TEST(GateProcesses, AWindowEndsWithTheHost) {
  auto memory = *SharedSegment::make("bubblesim.test", sizeof(Board));
  auto& board = *static_cast<Board*>(memory->address());
  ChildProcess host([&] {
    const auto clock = wall_clock();
    const auto made = *GateBoard::make(*clock, 1);
    made->set_window(ClientId{0}, 2);
    made->name().copy(board.gate, sizeof(board.gate) - 1);
    raise(SIGKILL);
  });
  EXPECT_EQ(host.wait(), -SIGKILL);
  const auto clock = wall_clock();
  auto gate = *GateClient::open(board.gate, ClientId{0}, *clock);
  EXPECT_EQ(gate->window(), 2u);
  gate->look_for_host();
  EXPECT_EQ(gate->window(), 0u);
  shm_unlink(board.gate);
}

/// The policy thinks from 10 us to 5 ms; patience is 1 ms. After that the host is back.
TEST(GateProcesses, AStalledHostIsWaitedForNoLongerThanThePatience) {
  HostRig rig({.completions = true});
  rig.policy.launch = [&](const policy::LaunchInfo& info, auto, auto&) {
    if (info.launch == 1) rig.clock->sleep_until(at(5ms));
    return Verdict::kAdmit;
  };
  rig.start_host();
  const auto gate = rig.open(1, 1ms);
  Crew crew(*rig.clock);
  crew.start(Turn::kFiller, [&] {
    rig.clock->sleep_until(at(10us));
    const Passage first = gate->launch(kernel());
    EXPECT_TRUE(first.gate_open);
    EXPECT_EQ(first.asked, 1ms);
    EXPECT_EQ(gate->launch(kernel()).asked, 0ns);  // it is known to be silent
    gate->completed(program::WorkKind::kKernel, 1);
    gate->completed(program::WorkKind::kKernel, 2);
    rig.clock->sleep_until(at(6ms));
    EXPECT_FALSE(gate->launch(kernel()).gate_open);
    gate->completed(program::WorkKind::kKernel, 3);
  });
  rig.run_until(10ms);
  crew.wait();
  // The policy never saw the second launch, so not its completion either.
  EXPECT_THAT(rig.policy.log, ElementsAre("10us launch 1.1", "1.01ms completion 1.1",
                                          "6ms launch 1.3", "6ms completion 1.3"));
  const CounterSet counters = rig.host->counters();
  EXPECT_EQ(counters.count("gate_answers_too_late"), 1u);
  EXPECT_EQ(counters.count("gate_launches_ungated"), 2u);
  EXPECT_EQ(counters.count("gate_completions_unseen"), 1u);
}

/// Held at 10 us by a policy that then thinks from 20 us to 5 ms: the thread goes on at 1.02 ms (it
/// last looked at 20 us), and its kernel ends at 2 ms. The policy releases it at 6 ms, and hears of
/// the end only then.
TEST(GateProcesses, ACompletionOfALaunchThatDidNotWaitComesAfterItsRelease) {
  HostRig rig({.completions = true});
  rig.policy.launch = [](const auto&, auto, auto&) { return Verdict::kHold; };
  rig.policy.next = 20us;
  rig.policy.ticks = [&](policy::Instant now, policy::Actions& actions) {
    if (now >= 6ms) {
      actions.release(kFiller);
      rig.policy.next.reset();
      return;
    }
    rig.clock->sleep_until(at(5ms));
    rig.policy.next = 6ms;
  };
  rig.start_host();
  const auto gate = rig.open(1, 1ms);
  Crew crew(*rig.clock);
  crew.start(Turn::kFiller, [&] {
    rig.clock->sleep_until(at(10us));
    EXPECT_TRUE(gate->launch(kernel()).gate_open);
    rig.clock->sleep_until(at(2ms));
    gate->completed(program::WorkKind::kKernel, 1);
  });
  rig.run_until(10ms);
  crew.wait();
  EXPECT_THAT(rig.policy.log, ElementsAre("10us launch 1.1", "20us tick", "6ms tick",
                                          "6ms completion 1.1"));
}

}  // namespace
}  // namespace bubblesim::capture
