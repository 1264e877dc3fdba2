// What is wrong with a gate, and how much fits into it.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "capture/gate/gate_board.hpp"
#include "tests/unit/capture/clock/child_process.hpp"
#include "tests/unit/capture/policy_host/host_rig.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;
using bubblesim::testing::ChildProcess;
using ::testing::HasSubstr;

std::string fault_of(const Result<std::unique_ptr<GateClient>>& opened) {
  return opened ? "opened" : opened.error().message;
}

TEST(GateFaults, ThereIsNoSuchGate) {
  const auto clock = wall_clock();
  EXPECT_THAT(fault_of(GateClient::open("bubblesim.gate.no.such", ClientId{0}, *clock)),
              HasSubstr("there is no gate \"bubblesim.gate.no.such\""));
}

TEST(GateFaults, AGateOfAnotherVersion) {
  const auto clock = wall_clock();
  auto memory = *SharedSegment::make("bubblesim.gate", sizeof(GateSegment));
  EXPECT_EQ(fault_of(GateClient::open(memory->name(), ClientId{0}, *clock)),
            "\"" + memory->name() + "\" is no gate of this version");
}

TEST(GateFaults, AClientThatTheGateDoesNotHave) {
  HostRig rig;
  EXPECT_EQ(fault_of(GateClient::open(rig.host->gate_name(), ClientId{2}, *rig.clock)),
            "gate \"" + rig.host->gate_name() + "\" has no client 2, only 0 to 1");
}

TEST(GateFaults, APlaceBelongsToOneProcessWhileItLives) {
  HostRig rig;
  auto first = rig.open(1);
  EXPECT_THAT(fault_of(GateClient::open(rig.host->gate_name(), ClientId{1}, *rig.clock)),
              HasSubstr("is process " + std::to_string(getpid()) + " already, and it lives"));
  first.reset();
  EXPECT_NE(rig.open(1), nullptr);
  ChildProcess child([&] {
    auto inside = rig.open(1);
    raise(SIGKILL);
  });
  EXPECT_EQ(child.wait(), -SIGKILL);
  EXPECT_NE(rig.open(1), nullptr);  // a dead process has no place
}

TEST(GateFaults, MoreClientsThanAGateHas) {
  const auto clock = wall_clock();
  const auto board = GateBoard::make(*clock, kMostGateClients + 1);
  ASSERT_FALSE(board);
  EXPECT_EQ(board.error().message, "a gate has at most 16 clients, not 17");
}

/// A host that waits on a clock with this much looking, and is told of a launch once it does so.
std::uint32_t rings_of_a_told_launch(Duration spin, bool awaits_sleep) {
  const auto clock = wall_clock(spin);
  auto board = *GateBoard::make(*clock, 1);
  const auto gate = *GateClient::open(board->name(), ClientId{0}, *clock);
  std::atomic<bool> returned{false};
  std::thread host([&] {
    while (!board->take()) board->wait(0, HostTime::max());
    returned = true;
  });
  if (awaits_sleep) std::this_thread::sleep_for(50ms);
  gate->launch(kernel());
  for (int i = 0; i < 10'000 && !returned; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(returned);
  const std::uint32_t rings = board->knocks();
  board->knock();
  host.join();
  return rings;
}

TEST(GateBell, IsRungForAHostThatSleepsAndForNoneThatLooks) {
  EXPECT_EQ(rings_of_a_told_launch(1h, false), 0U);
  EXPECT_LE(rings_of_a_told_launch(0us, true), 1U);
}

TEST(GateLimits, AFullRingDropsAndCounts) {
  HostRig rig;  // its host does not run
  const auto gate = rig.open(0);
  for (std::uint32_t i = 0; i < kGateRing + 5; ++i) gate->launch(kernel());
  EXPECT_EQ(gate->counts().messages_dropped, 5u);
  EXPECT_EQ(gate->counts().launches, kGateRing + 5);
  EXPECT_EQ(rig.host->counts().messages_dropped, 5u);
  EXPECT_EQ(rig.host->counters().count("gate_messages_dropped"), 5u);
}

/// Launch 1025 found the ring full, so the policy hears of neither it nor its end.
TEST(GateLimits, TheEndOfALaunchThatWasDroppedIsDroppedToo) {
  HostRig rig({.completions = true});
  const auto gate = rig.open(0);
  for (std::uint32_t i = 0; i < kGateRing + 1; ++i) gate->launch(kernel());
  rig.start_host();
  rig.clock->sleep_until(at(1us));
  gate->completed(program::WorkKind::kKernel, kGateRing);
  gate->completed(program::WorkKind::kKernel, kGateRing + 1);
  rig.run_until(2us);
  EXPECT_EQ(rig.policy.log.size(), kGateRing + 1u);
  EXPECT_EQ(rig.host->counters().count("gate_completions_unseen"), 1u);
}

TEST(GateLimits, AQuestionThatFindsTheRingFullGoesUngated) {
  HostRig rig;
  const auto gate = rig.open(1);
  for (std::uint32_t i = 0; i < kGateRing; ++i) gate->iteration_ended(1us);
  EXPECT_TRUE(gate->launch(kernel()).gate_open);
}

TEST(GateLimits, RowsOfThreadsThatEndedAreGivenOutAgain) {
  HostRig rig;
  const auto gate = rig.open(0);
  for (std::uint32_t i = 0; i < 3 * kMostGateThreads; ++i) {
    Crew crew(*rig.clock);
    crew.start(Turn::kTraining, [&] { gate->launch(kernel()); });
    crew.wait();
    if (i == kMostGateThreads / 2) rig.start_host();  // until then nobody takes messages
    if (i > kMostGateThreads / 2) rig.clock->sleep_until(rig.clock->now() + 1us);
  }
  EXPECT_EQ(gate->counts().ungated, 0u);
  EXPECT_EQ(rig.policy.log.size(), 3 * kMostGateThreads);
}

TEST(GateLimits, MoreThreadsAtATimeThanRowsGoUngated) {
  HostRig rig;
  const auto gate = rig.open(0);
  Crew crew(*rig.clock);
  for (std::uint32_t i = 0; i < kMostGateThreads + 2; ++i) {
    crew.start(Turn::kTraining, [&] {
      gate->launch(kernel());
      rig.clock->sleep_until(at(1ms));
    });
  }
  crew.wait();
  EXPECT_EQ(gate->counts().ungated, 2u);
}

TEST(GateForks, AForkedChildIsNotTheClient) {
  HostRig rig;
  auto gate = rig.open(1);
  ChildProcess child([&] {
    const bool open = gate->launch(kernel()).gate_open;
    gate->completed(program::WorkKind::kKernel, 1);
    const bool counted = gate->counts().launches == 1 && gate->counts().ungated == 1;
    const std::uint64_t number = gate->last_launch();
    gate.reset();
    _exit(open && counted && number == 1 ? 0 : 3);
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(gate->counts().launches, 0u);
  rig.start_host();
  Crew crew(*rig.clock);
  crew.start(Turn::kFiller, [&] { EXPECT_FALSE(gate->launch(kernel()).gate_open); });
  rig.run_until(1us);
  crew.wait();
  EXPECT_EQ(rig.policy.log, std::vector<std::string>{"0ns launch 1.1"});
}

/// On the wall clock, with several threads of two clients; some launches are held for a while.
/// Every thread comes through, and the policy saw each launch once.
TEST(GateWallClock, ThreadsAskAllAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kLaunches = 500;
  const auto clock = wall_clock(20us);
  ScriptedPolicy policy;
  policy::PolicySpec spec;
  std::uint64_t seen = 0;
  policy.launch = [&](const policy::LaunchInfo& info, policy::Instant now, policy::Actions&) {
    ++seen;
    if (info.launch % 7 != 0) return policy::Verdict::kAdmit;
    policy.next = now + 100us;
    return policy::Verdict::kHold;
  };
  policy.ticks = [&](policy::Instant, policy::Actions& actions) {
    for (const ClientId id : {ClientId{0}, ClientId{1}}) {
      while (actions.held(id) > 0) actions.release(id);
    }
    policy.next.reset();
  };
  PolicyHostSetup setup{&spec, &policy, {}, clock->now()};
  setup.clients.resize(2);
  auto host = *PolicyHost::make(*clock, std::move(setup));
  std::thread decides([&] { host->run(); });
  std::atomic<std::uint64_t> held{0};
  {
    std::vector<std::unique_ptr<GateClient>> gates;
    for (std::uint32_t i = 0; i < 2; ++i) {
      // So patient that no busy machine makes it give up.
      gates.push_back(*GateClient::open(host->gate_name(), ClientId{i}, *clock, 100s));
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        for (int launch = 0; launch < kLaunches; ++launch) {
          held += gates[i % 2]->launch(kernel()).held ? 1 : 0;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(gates[0]->counts().ungated + gates[1]->counts().ungated, 0u);
  }
  host->stop();
  decides.join();
  EXPECT_EQ(seen, std::uint64_t{kThreads * kLaunches});
  EXPECT_EQ(host->counts().session.holds, host->counts().session.released);
  EXPECT_EQ(host->counts().session.holds, 2u * (kThreads * kLaunches / 2 / 7));
  EXPECT_LE(held, host->counts().session.holds);
}

}  // namespace
}  // namespace bubblesim::capture
