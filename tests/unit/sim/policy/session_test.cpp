// What every driver of a policy keeps to, whatever outlet it has: an outlet that writes down what
// it is told. Instants in ns.
#include "sim/policy/session/session.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

namespace bubblesim::policy {
namespace {

using ::testing::ElementsAre;

using Log = std::vector<std::string>;

std::string number(const LaunchInfo& launch) {
  return std::to_string(launch.client.value) + "." + std::to_string(launch.launch);
}

/// Says "refused" as the reason for everything that `refuses`.
class WrittenOutlet final : public Outlet {
 public:
  explicit WrittenOutlet(Log& log) : log_(log) {}
  void admit(const LaunchInfo& launch, Waiter, const std::optional<LaunchForm>& form) override {
    log_.push_back("admit " + number(launch) + (form ? " reshaped" : ""));
  }
  void hold(const HeldLaunch& launch) override { log_.push_back("hold " + number(launch.info)); }
  void release(const HeldLaunch& launch, const std::optional<LaunchForm>& form, Instant) override {
    log_.push_back("release " + number(launch.info) + (form ? " reshaped" : ""));
  }
  Refusal cap(ClientId, std::uint32_t) override { return note("cap"); }
  Refusal prioritise(ClientId, std::int32_t) override { return note("priority"); }
  Refusal slice(ClientId, Duration) override { return note("slice"); }
  Refusal preempt(ClientId, Preemption) override { return note("preempt"); }
  Refusal proceed(ClientId) override { return note("proceed"); }
  Refusal reshape(ClientId, const LaunchForm&) override { return note("reshape"); }
  Refusal move_memory(ClientId, Bytes, Bytes moved) override {
    return note("move " + std::to_string(moved.value));
  }
  Refusal set_asking(ClientId, bool asks) override { return note(asks ? "ask" : "tell"); }
  void arm_tick(std::optional<Instant> next, Instant) override { tick = next; }
  void end() override { log_.push_back("end"); }

  Refusal refusal;
  std::optional<Instant> tick;

 private:
  Refusal note(const std::string& what) {
    log_.push_back(what);
    return refusal;
  }
  Log& log_;
};

class WrittenPolicy final : public Policy {
 public:
  explicit WrittenPolicy(Log& log) : log_(log) {}
  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override { return {}; }
  Verdict on_launch(const LaunchInfo& launch, Instant, Actions& actions) override {
    last = launch;
    log_.push_back("launch " + number(launch));
    if (decide) decide(actions);
    return launch.client.value > 0 ? of_fillers : Verdict::kAdmit;
  }
  void on_completion(const CompletionInfo& completion, Instant, Actions&) override {
    log_.push_back("completion of " + std::to_string(completion.launch));
  }
  void on_bubble_begin(const BubbleInfo&, Instant, Actions&) override {
    log_.push_back("bubble begins");
  }
  void on_bubble_end(Instant, Actions&) override { log_.push_back("bubble ends"); }
  void on_iteration(const IterationInfo& info, Instant, Actions&) override {
    log_.push_back("iteration " + std::to_string(info.number));
  }
  void on_gone(ClientId client, Instant, Actions& actions) override {
    log_.push_back("gone, held " + std::to_string(actions.held(client)));
  }
  std::optional<Instant> next_tick() const override { return next; }
  void on_tick(Instant, Actions& actions) override {
    log_.push_back("tick");
    if (decide) decide(actions);
    log_.push_back("tick done");
  }

  std::function<void(Actions&)> decide;
  Verdict of_fillers = Verdict::kHold;
  std::optional<Instant> next;
  LaunchInfo last;

 private:
  Log& log_;
};

constexpr ClientId kTraining{0};
constexpr ClientId kFiller{1};
constexpr ClientId kRefused{2};
constexpr ClientId kNobody{7};

Instant at(std::int64_t ns) { return Instant{ns}; }

/// Training, a filler with 100 of 200 bytes on the device, and one that was refused.
class SessionTest : public ::testing::Test {
 protected:
  SessionTest() { spec_.name = "written"; }

  void begin(bool turns = true) {
    session_.emplace(spec_, policy_, outlet_, turns);
    session_->add_client({});
    session_->add_client({.memory = Bytes{200}, .resident = Bytes{100}});
    session_->add_client({.present = false});
    session_->begin(at(0));
  }
  Verdict launch(ClientId client, std::uint64_t number, std::int64_t ns, Waiter waiter = 0) {
    LaunchInfo info;
    info.client = client;
    info.launch = number;
    info.profiled = Duration{5};
    info.bound = KernelClass::kMemory;
    return session_->on_launch(std::move(info), waiter, at(ns));
  }
  [[nodiscard]] std::string fault() const {
    return session_->fault() ? session_->fault()->text() : "none";
  }

  Log log_;
  PolicySpec spec_;
  WrittenOutlet outlet_{log_};
  WrittenPolicy policy_{log_};
  std::optional<Session<WrittenOutlet>> session_;
};

TEST_F(SessionTest, HeldLaunchesGoOnInOrderAfterTheCallThatReleasesThem) {
  begin();
  EXPECT_EQ(launch(kFiller, 1, 10), Verdict::kHold);
  EXPECT_EQ(launch(kFiller, 2, 20), Verdict::kHold);
  EXPECT_EQ(session_->still_held(), 2u);
  policy_.decide = [](Actions& actions) {
    EXPECT_EQ(actions.oldest_held(kFiller).launch, 1u);
    actions.release(kFiller);
    EXPECT_EQ(actions.held(kFiller), 1u);
    actions.release(kFiller);
  };
  log_.clear();
  session_->on_tick(at(50));
  EXPECT_THAT(log_, ElementsAre("tick", "tick done", "release 1.1", "release 1.2"));
  EXPECT_EQ(session_->counts().calls, 3u);
  EXPECT_EQ(session_->counts().holds, 2u);
  EXPECT_EQ(session_->counts().released, 2u);
  EXPECT_EQ(session_->counts().held_time, Duration{70});
}

TEST_F(SessionTest, WhatACallReleasesGoesOnBeforeTheLaunchThatItAdmits) {
  begin();
  launch(kFiller, 1, 10);
  log_.clear();
  policy_.decide = [](Actions& actions) { actions.release(kFiller); };
  policy_.of_fillers = Verdict::kAdmit;
  launch(kFiller, 2, 20);
  EXPECT_THAT(log_, ElementsAre("launch 1.2", "release 1.1", "admit 1.2"));
}

TEST_F(SessionTest, AFormIsOfTheNextLaunchThatGoesOnAndOfNoOther) {
  begin();
  policy_.decide = [](Actions& actions) { actions.reshape(kFiller, {1, 2.0}); };
  launch(kFiller, 1, 10);
  policy_.decide = [](Actions& actions) { actions.release(kFiller); };
  session_->on_tick(at(20));
  policy_.decide = nullptr;
  policy_.of_fillers = Verdict::kAdmit;
  launch(kFiller, 2, 30);
  EXPECT_THAT(log_, ElementsAre("launch 1.1", "reshape", "hold 1.1", "tick", "tick done",
                                "release 1.1 reshaped", "launch 1.2", "admit 1.2"));
  EXPECT_EQ(session_->counts().reshaped, 1u);
}

TEST_F(SessionTest, APolicyHearsOnlyOfWhatItDeclared) {
  begin();
  policy_.of_fillers = Verdict::kAdmit;
  launch(kFiller, 1, 10);
  EXPECT_EQ(policy_.last.profiled, Duration{0});
  EXPECT_EQ(policy_.last.bound, KernelClass::kUnknown);
  session_->on_completion({kFiller, WorkKind::kKernel, 1}, at(20));
  session_->on_bubble_begin({}, at(20));
  session_->on_bubble_end(at(20));
  session_->on_iteration(kTraining, Duration{20}, at(20));
  EXPECT_THAT(log_, ElementsAre("launch 1.1", "admit 1.1"));
}

TEST_F(SessionTest, APolicyHearsOfAllThatItDeclared) {
  spec_.needs = {true, true, true, true, true};
  begin();
  policy_.of_fillers = Verdict::kAdmit;
  launch(kFiller, 1, 10);
  EXPECT_EQ(policy_.last.profiled, Duration{5});
  EXPECT_EQ(policy_.last.bound, KernelClass::kMemory);
  log_.clear();
  session_->on_completion({kFiller, WorkKind::kKernel, 1}, at(20));
  session_->on_bubble_end(at(20));  // none has begun
  session_->on_bubble_begin({}, at(20));
  session_->on_bubble_end(at(20));
  session_->on_bubble_end(at(20));
  session_->on_iteration(kTraining, Duration{20}, at(20));
  session_->on_iteration(kTraining, Duration{20}, at(40));
  EXPECT_THAT(log_, ElementsAre("completion of 1", "bubble begins", "bubble ends", "iteration 1",
                                "iteration 2"));
}

TEST_F(SessionTest, ABubbleThatEndsDuringACallIsToldAfterIt) {
  spec_.needs.bubbles = true;
  begin();
  session_->on_bubble_begin({}, at(10));
  launch(kFiller, 1, 15);
  log_.clear();
  policy_.decide = [this](Actions& actions) {
    actions.release(kFiller);
    session_->on_bubble_end(at(20));
  };
  session_->on_tick(at(20));
  EXPECT_THAT(log_, ElementsAre("tick", "tick done", "release 1.1", "bubble ends"));
}

TEST_F(SessionTest, TheNextTickIsAskedForAfterEveryCall) {
  policy_.next = at(30);
  begin();
  EXPECT_EQ(outlet_.tick, at(30));
  policy_.decide = [this](Actions&) { policy_.next.reset(); };
  launch(kFiller, 1, 10);
  EXPECT_EQ(outlet_.tick, std::nullopt);
}

TEST_F(SessionTest, OfAClientThatHasGoneNothingIsHeldAndNothingIsTold) {
  spec_.needs = {true, true, true, true, true};
  begin();
  launch(kFiller, 1, 10);
  log_.clear();
  session_->on_gone(kFiller, at(20));
  session_->on_gone(kFiller, at(20));
  launch(kFiller, 2, 30);
  session_->on_completion({kFiller, WorkKind::kKernel, 1}, at(30));
  session_->on_iteration(kFiller, Duration{20}, at(30));
  session_->on_gone(kTraining, at(40));  // the contract knows of fillers that go
  EXPECT_THAT(log_, ElementsAre("gone, held 0"));
}

TEST_F(SessionTest, DecisionsAboutARefusedClientHaveNoEffect) {
  begin();
  policy_.decide = [](Actions& actions) {
    actions.set_priority(kRefused, 3);
    actions.preempt(kRefused, Preemption::kReset);
    actions.set_resident_memory(kRefused, Bytes{1000});
  };
  session_->on_tick(at(10));
  EXPECT_EQ(fault(), "none");
  EXPECT_THAT(log_, ElementsAre("tick", "tick done"));
  EXPECT_EQ(session_->counts().preemptions, 0u);
}

TEST_F(SessionTest, WhoNeedNotAskIsNotHeld) {
  begin();
  policy_.decide = [](Actions& actions) { actions.set_asking(kFiller, false); };
  session_->on_tick(at(10));
  EXPECT_THAT(log_, ElementsAre("tick", "tell", "tick done"));
}

TEST_F(SessionTest, MemoryMovesByTheDifference) {
  begin();
  policy_.decide = [](Actions& actions) {
    actions.set_resident_memory(kFiller, Bytes{30});
    actions.set_resident_memory(kFiller, Bytes{200});
  };
  session_->on_tick(at(10));
  EXPECT_THAT(log_, ElementsAre("tick", "move 70", "move 170", "tick done"));
  EXPECT_EQ(session_->resident(kFiller), Bytes{200});
  EXPECT_EQ(session_->counts().migrated, Bytes{240});
}

TEST_F(SessionTest, WhatAnOutletCannotDoEndsTheSessionInItsWords) {
  begin();
  outlet_.refusal = " while it runs; this cannot be done";
  policy_.decide = [](Actions& actions) { actions.set_sm_percentage(kFiller, 50); };
  session_->on_tick(at(10));
  EXPECT_EQ(fault(),
            "policy written: illegal decision at 10ns: set the SMs of client 1 while it runs; this "
            "cannot be done");
}

TEST_F(SessionTest, AThreadThatDoesNotWaitCannotBeHeld) {
  begin();
  launch(kFiller, 1, 10, kNobodyWaits);
  EXPECT_EQ(fault(),
            "policy written: illegal decision at 10ns: held a launch of client 1, whose threads do "
            "not wait for verdicts");
  EXPECT_EQ(session_->still_held(), 0u);
}

TEST_F(SessionTest, AnUnknownVerdictEndsTheSession) {
  begin();
  policy_.of_fillers = static_cast<Verdict>(9);
  launch(kFiller, 1, 10);
  EXPECT_EQ(fault(), "policy written: illegal decision at 10ns: gave the unknown verdict 9");
}

TEST_F(SessionTest, TicksWithoutEndAtOneInstantEndTheSession) {
  begin();
  for (int i = 0; i < 10'000; ++i) session_->on_tick(at(10));
  EXPECT_EQ(fault(), "none");
  session_->on_tick(at(10));
  EXPECT_EQ(fault(),
            "policy written: illegal decision at 10ns: asks for ticks without end at one instant");
}

TEST_F(SessionTest, AfterAnIllegalDecisionNoCallComesAndTheFirstReasonCounts) {
  begin();
  policy_.decide = [](Actions& actions) {
    actions.release(kFiller);
    actions.proceed(kNobody);
  };
  session_->on_tick(at(10));
  EXPECT_EQ(launch(kFiller, 1, 20), Verdict::kAdmit);
  session_->on_tick(at(30));
  EXPECT_THAT(log_, ElementsAre("tick", "end", "tick done"));
  EXPECT_EQ(fault(),
            "policy written: illegal decision at 10ns: released client 1, which holds no launch");
}

struct Illegal {
  std::string name;
  std::function<void(Actions&)> decide;
  std::string reason;
  bool turns = true;
};
std::ostream& operator<<(std::ostream& out, const Illegal& illegal) { return out << illegal.name; }

class IllegalDecision : public SessionTest, public ::testing::WithParamInterface<Illegal> {};

TEST_P(IllegalDecision, EndsTheSessionBeforeTheOutletSeesIt) {
  begin(GetParam().turns);
  policy_.decide = GetParam().decide;
  session_->on_tick(at(10));
  EXPECT_EQ(fault(), "policy written: illegal decision at 10ns: " + GetParam().reason);
  EXPECT_THAT(log_, ElementsAre("tick", "end", "tick done"));
}

INSTANTIATE_TEST_SUITE_P(
    EveryKind, IllegalDecision,
    ::testing::Values(
        Illegal{"release", [](Actions& actions) { actions.release(kFiller); },
                "released client 1, which holds no launch"},
        Illegal{"release_of_nobody", [](Actions& actions) { actions.release(kNobody); },
                "released client 7, which holds no launch"},
        Illegal{"no_percentage", [](Actions& actions) { actions.set_sm_percentage(kFiller, 0); },
                "set 0 % of SMs, allowed are 1 to 100"},
        Illegal{"percentage", [](Actions& actions) { actions.set_sm_percentage(kFiller, 101); },
                "set 101 % of SMs, allowed are 1 to 100"},
        Illegal{"percentage_of_nobody",
                [](Actions& actions) { actions.set_sm_percentage(kNobody, 50); },
                "set the SMs of client 7 of 3"},
        Illegal{"priority_of_nobody", [](Actions& actions) { actions.set_priority(kNobody, 1); },
                "set the priority of client 7 of 3"},
        Illegal{"empty_slice", [](Actions& actions) { actions.set_time_slice(kFiller, {}); },
                "set a time slice of 0ns, allowed is above 0"},
        Illegal{"slice_without_turns",
                [](Actions& actions) { actions.set_time_slice(kFiller, Duration{5}); },
                "set a time slice, but contexts do not take turns under its sharing", false},
        Illegal{"switch_without_turns",
                [](Actions& actions) { actions.preempt(kFiller, Preemption::kContextSwitch); },
                "switched a context away, but contexts do not take turns under its sharing", false},
        Illegal{"preempt_nobody",
                [](Actions& actions) { actions.preempt(kNobody, Preemption::kAfterKernel); },
                "drove off kernels of client 7 of 3"},
        Illegal{"proceed_nobody", [](Actions& actions) { actions.proceed(kNobody); },
                "let kernels proceed of client 7 of 3"},
        Illegal{"ask_of_nobody", [](Actions& actions) { actions.set_asking(kNobody, true); },
                "set the asking of client 7 of 3"},
        Illegal{"unknown_preemption",
                [](Actions& actions) { actions.preempt(kFiller, static_cast<Preemption>(33)); },
                "drove off kernels in the unknown way 33"},
        Illegal{"faster", [](Actions& actions) { actions.reshape(kFiller, {0, 0.5}); },
                "reshaped a launch to a slowdown of 0.5, allowed are 1 to 1000"},
        Illegal{"endless",
                [](Actions& actions) {
                  actions.reshape(kFiller, {0, std::numeric_limits<double>::infinity()});
                },
                "reshaped a launch to a slowdown of inf, allowed are 1 to 1000"},
        Illegal{"no_number",
                [](Actions& actions) {
                  actions.reshape(kFiller, {0, std::numeric_limits<double>::quiet_NaN()});
                },
                "reshaped a launch to a slowdown of nan, allowed are 1 to 1000"},
        Illegal{"memory",
                [](Actions& actions) { actions.set_resident_memory(kFiller, Bytes{201}); },
                "put 201B of 200B on the device"}),
    [](const auto& illegal) { return illegal.param.name; });

}  // namespace
}  // namespace bubblesim::policy
