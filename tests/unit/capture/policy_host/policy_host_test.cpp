// Verdicts, holds, releases and ticks at instants that can be checked by hand.
#include <gmock/gmock.h>

#include <cmath>

#include "capture/policy_host/policy_host.hpp"
#include "tests/unit/capture/policy_host/host_rig.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;
using ::testing::Not;
using policy::Verdict;

/// Holds fillers' launches, and releases one at each tick; ticks every 10 us from 10 us on.
void hold_and_release_every_ten(ScriptedPolicy& policy) {
  policy.launch = [](const policy::LaunchInfo& info, auto, auto&) {
    return info.client == kFiller ? Verdict::kHold : Verdict::kAdmit;
  };
  policy.next = 10us;
  policy.ticks = [&policy](policy::Instant now, policy::Actions& actions) {
    if (actions.held(kFiller) > 0) actions.release(kFiller);
    policy.next = now + 10us;
  };
}

TEST(PolicyHost, AnAdmittedLaunchGoesOnInTheSameInstant) {
  HostRig rig;
  rig.start_host();
  rig.start_client(1, Turn::kFiller, [&](GateClient& gate) {
    rig.clock->sleep_until(at(5us));
    const Passage passage = gate.launch(kernel());
    EXPECT_EQ(passage.asked, Duration{0});
    EXPECT_FALSE(passage.held);
    EXPECT_FALSE(passage.gate_open);
    rig.note("passed " + std::to_string(gate.last_launch()));
  });
  rig.run_until(20us);
  EXPECT_THAT(rig.policy.log, ElementsAre("5us launch 1.1"));
  EXPECT_THAT(rig.log, ElementsAre("5us passed 1"));
}

// What nobody looks at is counted, and no more; not what comes when the gate is open to all.
TEST(PolicyHost, OfAPolicyThatDoesNotLookAtLaunchesHearsOfNone) {
  HostRig rig({.iterations = true, .launches = false});
  rig.start_host();
  rig.start_client(1, Turn::kFiller, [&](GateClient& gate) {
    EXPECT_EQ(gate.launch(kernel()).asked, Duration{0});
    gate.launch(kernel());
    gate.iteration_ended(5us);
    EXPECT_EQ(gate.last_launch(), 2u);
    EXPECT_EQ(gate.counts().ungated, 0u);
    rig.clock->sleep_until(at(30us));
    gate.launch(kernel());
    EXPECT_EQ(gate.counts().ungated, 1u);
  });
  rig.run_until(20us);
  EXPECT_THAT(rig.policy.log, Not(Contains(HasSubstr("launch"))));
  EXPECT_THAT(rig.policy.log, Contains(HasSubstr("iteration")));
  EXPECT_EQ(rig.host->counts().session.calls, 3u);  // as a simulation counts: with launches
  EXPECT_EQ(rig.host->counts().decision_latency.count, 0u);
}

/// Preempted at 10 us, so that the second launch is parked until 15 us.
TEST(PolicyHost, AClientThatPassesAsksOnceItIsPreempted) {
  HostRig rig({.launches = false});
  rig.policy.next = 10us;
  rig.policy.ticks = [&](policy::Instant now, policy::Actions& actions) {
    if (now == 10us) actions.preempt(kFiller, policy::Preemption::kAfterKernel);
    if (now == 15us) actions.proceed(kFiller);
    rig.policy.next = now == 10us ? std::optional<policy::Instant>(15us) : std::nullopt;
  };
  rig.start_host();
  rig.start_client(1, Turn::kFiller, [&](GateClient& gate) {
    EXPECT_EQ(gate.launch(kernel()).asked, Duration{0});
    rig.clock->sleep_until(at(12us));
    EXPECT_EQ(gate.launch(kernel()).asked, 3us);
  });
  rig.run_until(25us);
  EXPECT_FALSE(rig.host->fault());
}

/// Launched at 0, released at 10 us; launched again at 13 us, released at 20 us.
TEST(PolicyHost, AHeldLaunchGoesOnAtTheTickThatReleasesIt) {
  HostRig rig;
  hold_and_release_every_ten(rig.policy);
  rig.start_host();
  rig.start_client(1, Turn::kFiller, [&](GateClient& gate) {
    const Passage first = gate.launch(kernel());
    EXPECT_EQ(first.asked, 10us);
    EXPECT_TRUE(first.held);
    rig.note("first");
    rig.clock->sleep_until(at(13us));
    EXPECT_EQ(gate.launch(kernel()).asked, 7us);
    rig.note("second");
  });
  rig.run_until(25us);
  EXPECT_THAT(rig.policy.log,
              ElementsAre("0ns launch 1.1", "10us tick", "13us launch 1.2", "20us tick"));
  EXPECT_THAT(rig.log, ElementsAre("10us first", "20us second"));
  const PolicyHostCounts counts = rig.host->counts();
  EXPECT_EQ(counts.session.calls, 4u);
  EXPECT_EQ(counts.session.holds, 2u);
  EXPECT_EQ(counts.session.released, 2u);
  EXPECT_EQ(counts.session.held_time, 17us);
  EXPECT_EQ(counts.decision_latency.count, 0u);  // all were held
  EXPECT_EQ(counts.policy_call.count, 4u);
  EXPECT_EQ(rig.host->counters().count("gate_times_out_of_order"), 0u);
}

TEST(PolicyHost, HeldCountsFallAtOnceAndThreadsGoOnAfterTheCall) {
  HostRig rig;
  std::vector<std::size_t> held;
  rig.policy.launch = [](const auto&, auto, auto&) { return Verdict::kHold; };
  rig.policy.next = 10us;
  rig.policy.ticks = [&](policy::Instant, policy::Actions& actions) {
    held.push_back(actions.held(kFiller));
    EXPECT_EQ(actions.oldest_held(kFiller).blocks, 7u);
    actions.release(kFiller);
    held.push_back(actions.held(kFiller));
    EXPECT_EQ(actions.oldest_held(kFiller).blocks, 8u);
    EXPECT_THAT(rig.log, IsEmpty());
    rig.policy.next.reset();
  };
  rig.start_host();
  const auto gate = rig.open(1);
  Crew threads(*rig.clock);
  for (const std::uint64_t blocks : {7u, 8u}) {
    threads.start(Turn::kFiller, [&, blocks] {
      const bool open = gate->launch(kernel(blocks)).gate_open;
      rig.note((open ? "open " : "released ") + std::to_string(gate->last_launch()));
    });
  }
  rig.run_until(20us);
  threads.wait();
  EXPECT_THAT(held, ElementsAre(2u, 1u));
  EXPECT_THAT(rig.log, ElementsAre("10us released 1", "20us open 2"));
  EXPECT_EQ(gate->counts().launches, 2u);
  EXPECT_EQ(gate->counts().ungated, 1u);
}

/// At 10 us a thread launches that was only started by another launch of that instant: the tick of
/// 10 us comes after both, as in the simulator.
TEST(PolicyHost, ATickSeesAllThatHappensInItsInstant) {
  HostRig rig;
  rig.policy.next = 10us;
  rig.policy.ticks = [&](auto, auto&) { rig.policy.next.reset(); };
  rig.start_host();
  Bell bell;
  bell.id = rig.clock->bell_id();
  rig.start_client(0, Turn::kTraining, [&](GateClient& gate) {
    rig.clock->wait(bell, 0, HostTime::max());
    gate.launch(kernel());
  });
  rig.start_client(1, Turn::kFiller, [&](GateClient& gate) {
    rig.clock->sleep_until(at(10us));
    gate.launch(kernel());
    rig.clock->ring(bell);
  });
  rig.run_until(30us);
  EXPECT_THAT(rig.policy.log, ElementsAre("10us launch 1.1", "10us launch 0.1", "10us tick"));
}

TEST(PolicyHost, AClientThatTellsNeverWaits) {
  HostRig rig;
  rig.start_host();
  rig.start_client(0, Turn::kTraining, [&](GateClient& gate) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(gate.launch(kernel()).asked, Duration{0});
      rig.note("told");
    }
  });
  rig.run_until(20us);
  EXPECT_THAT(rig.policy.log, ElementsAre("0ns launch 0.1", "0ns launch 0.2", "0ns launch 0.3"));
  EXPECT_THAT(rig.log, ElementsAre("0ns told", "0ns told", "0ns told"));
}

TEST(PolicyHost, InstantsAreSpansSinceTheOrigin) {
  HostRig rig;
  rig.policy.next = 3us;
  rig.policy.ticks = [&](auto, auto&) { rig.policy.next.reset(); };
  rig.host->set_origin(at(100us));
  rig.start_host();
  rig.start_client(0, Turn::kTraining, [&](GateClient& gate) {
    gate.launch(kernel());  // before the origin: at 0
    rig.clock->sleep_until(at(102us));
    gate.launch(kernel());
  });
  rig.run_until(200us);
  EXPECT_THAT(rig.policy.log, ElementsAre("0ns launch 0.1", "2us launch 0.2", "3us tick"));
  EXPECT_EQ(rig.host->counters().count("gate_times_out_of_order"), 0u);
}

TEST(PolicyHost, PublishesTheWindow) {
  HostRig rig({}, 2, GateMode::kTell, 4);
  EXPECT_EQ(rig.open(0)->window(), 0u);
  const auto filler = rig.open(1);
  EXPECT_EQ(filler->window(), 4u);
  rig.host->stop();
  EXPECT_EQ(filler->window(), 0u);  // nobody decides any more
}

void tell_everything(GateClient& gate) {
  policy::LaunchInfo launch = kernel();
  launch.profiled = 4us;
  launch.bound = program::KernelClass::kMemory;
  gate.launch(launch);
  gate.bubble_ended();  // none has begun
  gate.bubble_began({7us, Bytes{}, true});
  gate.bubble_ended();
  gate.bubble_ended();
  gate.completed(program::WorkKind::kKernel, 1);
  gate.iteration_ended(11us);
  gate.iteration_ended(12us);
}

TEST(PolicyHost, TellsAPolicyWhatItDeclaredToNeed) {
  HostRig rig({true, true, true, true, true});
  rig.start_host();
  rig.start_client(0, Turn::kTraining, tell_everything);
  rig.run_until(20us);
  EXPECT_THAT(rig.policy.log,
              ElementsAre("0ns launch 0.1", "0ns bubble of 7us", "0ns bubble ends",
                          "0ns completion 0.1", "0ns iteration 0.1 of 11us",
                          "0ns iteration 0.2 of 12us"));
  EXPECT_EQ(rig.policy.launches[0].profiled, 4us);
  EXPECT_EQ(rig.policy.launches[0].bound, program::KernelClass::kMemory);
}

TEST(PolicyHost, TellsAPolicyNothingElse) {
  HostRig rig;
  rig.start_host();
  rig.start_client(0, Turn::kTraining, tell_everything);
  rig.run_until(20us);
  EXPECT_THAT(rig.policy.log, ElementsAre("0ns launch 0.1"));
  EXPECT_EQ(rig.policy.launches[0].profiled, Duration{0});
  EXPECT_EQ(rig.policy.launches[0].bound, program::KernelClass::kUnknown);
}

/// Preempted from 10 to 20 us. The launch of 12 us is admitted, but waits; the collective passes.
TEST(PolicyHost, APreemptedClientsLaunchesWaitUntilItMayProceed) {
  HostRig rig;
  rig.policy.next = 10us;
  rig.policy.ticks = [&](policy::Instant now, policy::Actions& actions) {
    if (now == 10us) actions.preempt(kFiller, program::Preemption::kAfterKernel);
    if (now == 20us) actions.proceed(kFiller);
    if (now == 15us) {
      EXPECT_EQ(actions.held(kFiller), 0u);  // the policy admitted it
    }
    rig.policy.next = now + 5us;
  };
  rig.start_host();
  rig.start_client(1, Turn::kFiller, [&](GateClient& gate) {
    rig.clock->sleep_until(at(12us));
    policy::LaunchInfo collective = kernel();
    collective.kind = program::WorkKind::kCollective;
    gate.launch(collective);
    rig.note("collective");
    EXPECT_TRUE(gate.launch(kernel()).held);
    rig.note("kernel");
    EXPECT_FALSE(gate.launch(kernel()).held);
  });
  rig.run_until(31us);
  EXPECT_THAT(rig.log, ElementsAre("12us collective", "20us kernel"));
  EXPECT_EQ(rig.host->counts().session.holds, 0u);
  EXPECT_EQ(rig.host->counters().count("gate_launches_parked"), 1u);
  EXPECT_EQ(rig.host->counters().count("scripted"), rig.policy.log.size());
}

/// Held at 0, released at 10 us while preempted, and let go on at 20 us.
TEST(PolicyHost, AReleaseOfAPreemptedClientTakesEffectWhenItProceeds) {
  HostRig rig;
  hold_and_release_every_ten(rig.policy);
  const auto release = rig.policy.ticks;
  rig.policy.ticks = [&, release](policy::Instant now, policy::Actions& actions) {
    if (now == 10us) actions.preempt(kFiller, program::Preemption::kAfterKernel);
    if (now == 20us) actions.proceed(kFiller);
    release(now, actions);
  };
  rig.start_host();
  rig.start_client(1, Turn::kFiller, [&](GateClient& gate) {
    gate.launch(kernel());
    rig.note("passed");
  });
  rig.run_until(25us);
  EXPECT_THAT(rig.log, ElementsAre("20us passed"));
  EXPECT_EQ(rig.host->counts().session.held_time, 10us);
}

/// The launch of 12 us is admitted while its client is preempted; at 20 us the policy lets the
/// client proceed and thinks better of it in the same call, at 30 us it lets it go.
TEST(PolicyHost, AClientPreemptedAgainInTheSameCallStaysAtTheGate) {
  HostRig rig;
  rig.policy.next = 10us;
  rig.policy.ticks = [&](policy::Instant now, policy::Actions& actions) {
    if (now != 10us) actions.proceed(kFiller);
    if (now != 30us) actions.preempt(kFiller, program::Preemption::kAfterKernel);
    rig.policy.next = now + 10us;
  };
  rig.start_host();
  rig.start_client(1, Turn::kFiller, [&](GateClient& gate) {
    rig.clock->sleep_until(at(12us));
    gate.launch(kernel());
    rig.note("kernel");
  });
  rig.run_until(31us);
  EXPECT_THAT(rig.log, ElementsAre("30us kernel"));
  EXPECT_EQ(rig.host->counters().count("gate_launches_parked"), 1u);
}

TEST(PolicyHost, AClientThatGoesIsToldOnceAndItsLaunchesAreForgotten) {
  HostRig rig;
  rig.policy.launch = [](const auto&, auto, auto&) { return Verdict::kHold; };
  rig.start_host();
  rig.start_client(1, Turn::kFiller, [&](GateClient& gate) { gate.launch(kernel()); });
  rig.clock->sleep_until(at(5us));
  rig.host->client_gone(kFiller);
  rig.host->client_gone(kFiller);
  rig.run_until(20us);
  EXPECT_THAT(rig.policy.log, ElementsAre("0ns launch 1.1", "5us gone 1, held 0"));
  EXPECT_EQ(rig.host->counts().clients_died, 1u);
}

/// Training tells at 5 and need not wait; then the policy wants to be asked, and holds what comes
/// at 15 until its tick at 30; what comes after that tick tells again.
TEST(PolicyHost, TrainingAsksWhileThePolicyWantsIt) {
  HostRig rig;
  rig.policy.launch = [](const policy::LaunchInfo& launch, policy::Instant, policy::Actions& act) {
    if (launch.client != ClientId{0}) return policy::Verdict::kAdmit;
    EXPECT_EQ(launch.waits, launch.launch == 2);
    if (launch.launch == 1) act.set_asking(ClientId{0}, true);
    return launch.launch == 2 ? policy::Verdict::kHold : policy::Verdict::kAdmit;
  };
  rig.policy.next = 30us;
  rig.policy.ticks = [&rig](policy::Instant, policy::Actions& act) {
    rig.policy.next.reset();
    act.release(ClientId{0});
    act.set_asking(ClientId{0}, false);
  };
  rig.start_host();
  rig.start_client(0, Turn::kTraining, [&](GateClient& gate) {
    for (const auto begin : {5us, 15us, 40us}) {
      rig.clock->sleep_until(at(begin));
      const Passage passage = gate.launch(kernel());
      rig.note(passage.held ? "held" : passage.asked > Duration{} ? "asked" : "told");
    }
  });
  rig.run_until(60us);
  EXPECT_FALSE(rig.host->fault());
  EXPECT_THAT(rig.log, ElementsAre("5us told", "30us held", "40us told"));
}

TEST(SpanHistogram, OfNothingIsAllZero) {
  const SpanSummary summary = SpanHistogram{}.summary();
  EXPECT_EQ(summary.count, 0u);
  EXPECT_EQ(summary.p99, Duration{0});
}

TEST(SpanHistogram, ShortSpansAreExact) {
  SpanHistogram spans;
  for (int i = 1; i <= 50; ++i) spans.add(Duration{i});
  const SpanSummary summary = spans.summary();
  EXPECT_EQ(summary.count, 50u);
  EXPECT_EQ(summary.mean, Duration{26});  // 25.5, away from zero
  EXPECT_EQ(summary.p50, Duration{25});
  EXPECT_EQ(summary.p95, Duration{48});  // the 47.5th
  EXPECT_EQ(summary.p99, Duration{50});
  EXPECT_EQ(summary.max, Duration{50});
}

TEST(SpanHistogram, AnySpanIsWithinThreePerCent) {
  for (std::int64_t ns = 1; ns < std::int64_t{1} << 58; ns = ns * 21 / 20 + 1) {
    SpanHistogram spans;
    spans.add(Duration{ns});
    spans.add(Duration{ns * 4});
    const double error = static_cast<double>(spans.summary().p50.count() - ns);
    EXPECT_LE(std::abs(error), 0.03 * static_cast<double>(ns)) << ns;
  }
}

TEST(SpanHistogram, TakesNegativeAndHugeSpans) {
  SpanHistogram spans;
  spans.add(-5ns);
  EXPECT_EQ(spans.summary().max, Duration{0});
  spans.add(Duration::max());
  EXPECT_EQ(spans.summary().max, Duration::max());
  EXPECT_EQ(spans.summary().p50, Duration{0});
}

}  // namespace
}  // namespace bubblesim::capture
