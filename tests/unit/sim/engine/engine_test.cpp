// The loop: what runs when, and what handlers may do from inside an event.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "sim/engine/conductor.hpp"
#include "sim/engine/engine.hpp"
#include "tests/unit/sim/instant.hpp"

namespace bubblesim::engine {
namespace {

/// Writes its name down when it runs, then does what the test wants.
class Named final : public EventHandler {
 public:
  Named(std::string name, std::vector<std::string>& log) : name_(std::move(name)), log_(log) {}
  void on_event(SimTime now) override {
    log_.push_back(name_ + "@" + std::to_string(to_ns(now)));
    if (then) then();
  }
  std::function<void()> then;

 private:
  std::string name_;
  std::vector<std::string>& log_;
};

class EngineTest : public testing::Test {
 protected:
  std::vector<std::string> log_;
  Engine engine_;
  Named a_{"a", log_};
  Named b_{"b", log_};
  Named c_{"c", log_};
};

class HostEvents : public EngineTest {
 protected:
  EntityId a = engine_.add_entity(a_, Phase::kHost);
  EntityId b = engine_.add_entity(b_, Phase::kHost);
  EntityId c = engine_.add_entity(c_, Phase::kHost);
};

using Log = std::vector<std::string>;

TEST_F(HostEvents, RunsEventsInOrderOfTime) {
  engine_.schedule(a, at(20)), engine_.schedule(b, at(10));
  engine_.run_until();
  EXPECT_EQ(log_, (Log{"b@10", "a@20"}));
  EXPECT_EQ(engine_.now(), at(20));
  EXPECT_EQ(engine_.events(), 2u);
}

TEST_F(EngineTest, AHandlerMayScheduleItsOwnInstantAgain) {
  const EntityId a = engine_.add_entity(a_, Phase::kDispatch);
  const EntityId b = engine_.add_entity(b_, Phase::kCompletion);
  engine_.schedule(a, at(10));
  // An earlier phase of the same instant runs next; time does not go back.
  a_.then = [&] {
    if (log_.size() == 1) engine_.schedule(b, at(10));
  };
  b_.then = [&] { engine_.schedule(a, at(10)); };
  engine_.run_until();
  EXPECT_EQ(log_, (Log{"a@10", "b@10", "a@10"}));
}

TEST_F(EngineTest, AnEventForItsOwnInstantComesAfterWhatIsBeforeIt) {
  const EntityId a = engine_.add_entity(a_, Phase::kCompletion);
  const EntityId b = engine_.add_entity(b_, Phase::kDispatch);
  const EntityId c = engine_.add_entity(c_, Phase::kDispatch);
  Named d{"d", log_};
  const EntityId host = engine_.add_entity(d, Phase::kHost);
  for (const EntityId id : {a, c, host}) engine_.schedule(id, at(10));
  a_.then = [&] {
    engine_.schedule(b, at(10));
    EXPECT_EQ(engine_.due(b), at(10));
  };
  engine_.run_until();
  EXPECT_EQ(log_, (Log{"a@10", "d@10", "c@10", "b@10"}));  // by phase, then as scheduled
  EXPECT_EQ(engine_.events(), 4u);
}

TEST_F(EngineTest, AnEventForItsOwnInstantMayMoveAndBeCancelled) {
  const EntityId a = engine_.add_entity(a_, Phase::kCompletion);
  const EntityId b = engine_.add_entity(b_, Phase::kDispatch);
  const EntityId c = engine_.add_entity(c_, Phase::kDispatch);
  engine_.schedule(a, at(10));
  a_.then = [&] {
    const bool first = log_.size() == 1;
    for (const EntityId id : {b, c}) engine_.schedule(id, engine_.now());
    engine_.schedule(b, at(20));  // later; then behind c
    if (first) engine_.cancel(c);
    engine_.schedule(a, first ? at(20) : SimTime::max());
  };
  engine_.run_until();
  EXPECT_EQ(log_, (Log{"a@10", "a@20", "c@20", "b@20"}));
}

TEST_F(EngineTest, AStopLeavesAnEventOfItsOwnInstantForLater) {
  const EntityId a = engine_.add_entity(a_, Phase::kCompletion);
  const EntityId b = engine_.add_entity(b_, Phase::kDispatch);
  engine_.schedule(a, at(10));
  a_.then = [&] {
    engine_.schedule(b, at(10));
    engine_.stop();
  };
  engine_.run_until();
  EXPECT_EQ(log_, Log{"a@10"});
  EXPECT_EQ(engine_.next_due(), at(10));
  engine_.run_until();
  EXPECT_EQ(log_, (Log{"a@10", "b@10"}));
}

TEST_F(HostEvents, AHandlerMayCancelAnother) {
  engine_.schedule(a, at(10)), engine_.schedule(b, at(10));
  a_.then = [&] { engine_.cancel(b); };
  engine_.run_until();
  EXPECT_EQ(log_, Log{"a@10"});
}

TEST_F(HostEvents, RunsUpToAndIncludingItsLimit) {
  engine_.schedule(a, at(10)), engine_.schedule(b, at(11));
  engine_.run_until(at(10));
  EXPECT_EQ(log_, Log{"a@10"});
  engine_.run_until(at(11));
  EXPECT_EQ(log_, (Log{"a@10", "b@11"}));
}

// Books that are read after the run count to its end, not to its last event.
TEST_F(HostEvents, StandsAtItsLimitWhileEventsAreLeftForLater) {
  engine_.schedule(a, at(20));
  engine_.run_until(at(15));
  EXPECT_EQ(engine_.now(), at(15));
  engine_.run_until(at(30));
  EXPECT_EQ(engine_.now(), at(20));
}

TEST_F(HostEvents, StopsAfterTheEventThatAsksForIt) {
  engine_.schedule(a, at(10)), engine_.schedule(b, at(10));
  a_.then = [&] { engine_.stop(); };
  engine_.run_until();
  EXPECT_EQ(log_, Log{"a@10"});
  EXPECT_TRUE(engine_.stopped());
  engine_.run_until();
  EXPECT_EQ(log_, (Log{"a@10", "b@10"}));
}

TEST_F(EngineTest, NothingPendingEndsTheRun) {
  engine_.run_until();
  const EntityId a = engine_.add_entity(a_, Phase::kHost);
  engine_.run_until();
  EXPECT_FALSE(engine_.due(a));
  EXPECT_EQ(engine_.events(), 0u);
}

using EngineDeathTest = HostEvents;

TEST_F(EngineDeathTest, AnEventInThePastIsAProgrammerFault) {
  engine_.schedule(a, at(10));
  engine_.run_until();
  EXPECT_DEATH(engine_.schedule(a, at(9)), "in the past");
}

// Domains in one order of time: what runs when, and that windows change nothing.

/// Reaches out at a fixed time.
class Bound final : public ContactBound {
 public:
  explicit Bound(SimTime contact = SimTime::max()) : contact_(contact) {}
  [[nodiscard]] SimTime next_contact(SimTime now) const override { return std::max(now, contact_); }

 private:
  SimTime contact_;
};

class Doing final : public EventHandler {
 public:
  Doing(Engine& engine, Phase phase, std::function<void(SimTime)> what)
      : entity(engine.add_entity(*this, phase)), what_(std::move(what)) {}
  void on_event(SimTime now) override { what_(now); }
  EntityId entity;

 private:
  std::function<void(SimTime)> what_;
};

TEST(Conductor, RunsDomainsByTimeThenPhaseThenDomain) {
  Conductor conductor({Windows::kNever, 1});
  const Bound never;
  Engine& first = conductor.add_domain(never);
  Engine& second = conductor.add_domain(never);
  Log log;
  const auto note = [&log](std::string name) {
    return [&log, name](SimTime now) { log.push_back(name + std::to_string(to_ns(now))); };
  };
  Doing shared(conductor.shared(), Phase::kHost, note("shared@"));
  Doing host(first, Phase::kHost, note("host@"));
  Doing done(second, Phase::kCompletion, note("done@"));
  Doing late(second, Phase::kHost, note("late@"));
  second.schedule(late.entity, at(5));
  second.schedule(done.entity, at(5));
  first.schedule(host.entity, at(5));
  conductor.shared().schedule(shared.entity, at(5));
  conductor.run_until();
  EXPECT_EQ(log, (Log{"done@5", "shared@5", "host@5", "late@5"}));
  EXPECT_EQ(conductor.events(), 4U);
  EXPECT_EQ(conductor.now(), at(5));
}

TEST(Conductor, ACallIntoAnotherDomainFindsItAtTheCallersTime) {
  Conductor conductor({Windows::kNever, 1});
  const Bound never;
  Engine& first = conductor.add_domain(never);
  Engine& second = conductor.add_domain(never);
  Log log;
  Doing answer(second, Phase::kCompletion,
               [&log](SimTime now) { log.push_back("answer@" + std::to_string(to_ns(now))); });
  Doing ask(first, Phase::kHost, [&](SimTime now) {
    EXPECT_EQ(second.now(), now);
    second.schedule(answer.entity, now);
  });
  Doing after(first, Phase::kObserve, [&log](SimTime) { log.push_back("after"); });
  first.schedule(ask.entity, at(7));
  first.schedule(after.entity, at(7));
  conductor.run_until();
  EXPECT_EQ(log, (Log{"answer@7", "after"}));
}

TEST(Conductor, InAWindowEachDomainRunsOnItsOwnUpToTheFirstContact) {
  Conductor conductor({Windows::kAlways, 1});
  const Bound soon(at(20)), never;
  Engine& first = conductor.add_domain(soon);
  Engine& second = conductor.add_domain(never);
  Log log;
  const auto ticks = [&log](Engine& engine, std::string name) {
    auto self = std::make_shared<std::unique_ptr<Doing>>();
    *self = std::make_unique<Doing>(engine, Phase::kHost, [&log, &engine, name,
                                                          raw = self.get()](SimTime now) {
      log.push_back(name + std::to_string(to_ns(now)));
      if (now < at(30)) engine.schedule((*raw)->entity, now + Duration{10});
    });
    engine.schedule((*self)->entity, at(0));
    return self;
  };
  const auto a = ticks(first, "a");
  const auto b = ticks(second, "b");
  conductor.run_until();
  EXPECT_EQ(log, (Log{"a0", "a10", "b0", "b10", "a20", "b20", "a30", "b30"}));
  EXPECT_EQ(conductor.windows(), 1U);
  EXPECT_EQ(conductor.events_in_windows(), 4U);
}

TEST(Conductor, SharedEventsEndAWindow) {
  Conductor conductor({Windows::kAlways, 1});
  const Bound never;
  Engine& first = conductor.add_domain(never);
  Engine& second = conductor.add_domain(never);
  Log log;
  const auto note = [&log](std::string name) {
    return [&log, name](SimTime) { log.push_back(name); };
  };
  Doing shared(conductor.shared(), Phase::kCompletion, note("shared"));
  Doing a(first, Phase::kHost, note("a")), b(second, Phase::kHost, note("b"));
  conductor.shared().schedule(shared.entity, at(3));
  first.schedule(a.entity, at(3));
  second.schedule(b.entity, at(2));
  conductor.run_until();
  EXPECT_EQ(log, (Log{"b", "shared", "a"}));
}

/// What completes at a fixed time; writes down how often a window was over.
class Joint final : public JointContact {
 public:
  explicit Joint(SimTime completion) : completion_(completion) {}
  [[nodiscard]] SimTime next_completion(SimTime now) override { return std::max(now, completion_); }
  void after_window() override { ++windows; }
  int windows = 0;

 private:
  SimTime completion_;
};

TEST(Conductor, AWindowEndsWhereWhatDomainsDoTogetherCanBeComplete) {
  Conductor conductor({Windows::kAlways, 1});
  const Bound never;
  Joint joint(at(20));
  conductor.set_joint(joint);
  Engine& first = conductor.add_domain(never);
  Engine& second = conductor.add_domain(never);
  Log log;
  const auto note = [&](Engine& engine, std::string name) {
    return [&, name](SimTime now) {
      log.push_back(name + (engine.in_order() ? " in order" : " in a window"));
      EXPECT_EQ(joint.windows, now < at(20) ? 0 : 1);
    };
  };
  Doing a(first, Phase::kHost, note(first, "a")), b(second, Phase::kHost, note(second, "b"));
  Doing last(first, Phase::kHost, note(first, "last"));
  second.schedule(b.entity, at(18));
  first.schedule(a.entity, at(19));
  first.schedule(last.entity, at(20));
  conductor.run_until();
  EXPECT_EQ(log, (Log{"a in a window", "b in a window", "last in order"}));
  EXPECT_EQ(joint.windows, 1);
}

/// A domain with an entity of each phase. Each event sets two of them, drawn at random, at its own
/// instant, an earlier phase included, or at the next.
class Busy {
 public:
  struct Ran {
    SimTime time;
    Phase reached;
    std::size_t domain;
    int event;  ///< of the domain
  };

  Busy(Engine& engine, std::size_t domain, unsigned seed, std::vector<Ran>& ran)
      : engine_(engine), domain_(domain), random_(seed), ran_(ran) {
    for (const Phase phase : {Phase::kCompletion, Phase::kArrival, Phase::kHost, Phase::kDispatch,
                              Phase::kPolicy, Phase::kObserve}) {
      parts_.push_back(
          std::make_unique<Doing>(engine, phase, [this](SimTime now) { happen(now); }));
    }
    engine.schedule(parts_[random_() % parts_.size()]->entity, kSimStart);
  }

 private:
  void happen(SimTime now) {
    ran_.push_back({now, engine_.reached_phase(), domain_, event_++});
    for (int i = 0; i < 2 && event_ < 200; ++i) {
      const Duration later{random_() % 3 == 0 ? 1 : 0};
      engine_.schedule(parts_[random_() % parts_.size()]->entity, now + later);
    }
  }

  Engine& engine_;
  std::size_t domain_;
  std::mt19937 random_;
  std::vector<Ran>& ran_;
  std::vector<std::unique_ptr<Doing>> parts_;
  int event_ = 0;
};

std::vector<Busy::Ran> run_busy_domains(Windows windows, unsigned seed) {
  Conductor conductor({windows, 1});
  const Bound never;
  std::vector<Busy::Ran> ran;
  std::vector<std::unique_ptr<Busy>> domains;
  for (unsigned i = 0; i < 3; ++i) {
    domains.push_back(std::make_unique<Busy>(conductor.add_domain(never), i, 3 * seed + i, ran));
  }
  conductor.run_until();
  EXPECT_EQ(conductor.events_in_windows() > 0, windows == Windows::kAlways);
  return ran;
}

TEST(Conductor, EventsOfAWindowSayTheOrderThatTheyWouldHaveHad) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const auto in_order = run_busy_domains(Windows::kNever, seed);
    auto in_windows = run_busy_domains(Windows::kAlways, seed);
    std::ranges::stable_sort(in_windows, {}, [](const Busy::Ran& ran) {
      return std::tuple{ran.time, ran.reached, ran.domain};
    });
    ASSERT_EQ(in_windows.size(), in_order.size());
    for (std::size_t i = 0; i < in_order.size(); ++i) {
      ASSERT_EQ(in_windows[i].time, in_order[i].time);
      ASSERT_EQ(in_windows[i].domain, in_order[i].domain) << "seed " << seed << ", event " << i;
      ASSERT_EQ(in_windows[i].event, in_order[i].event);
    }
  }
}

TEST(Conductor, StopsAtTheLimitAndGoesOn) {
  Conductor conductor({Windows::kAlways, 2});
  const Bound never;
  Engine& first = conductor.add_domain(never);
  Engine& second = conductor.add_domain(never);
  int runs = 0;
  Doing a(first, Phase::kHost, [&runs](SimTime) { ++runs; });
  Doing b(second, Phase::kHost, [&runs](SimTime) { ++runs; });
  first.schedule(a.entity, at(10));
  second.schedule(b.entity, at(11));
  conductor.run_until(at(10));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(conductor.now(), at(10));
  EXPECT_EQ(conductor.next_due(), at(11));
  conductor.run_until(at(11));
  EXPECT_EQ(runs, 2);
  EXPECT_FALSE(conductor.next_due().has_value());
}

TEST(Conductor, AnyDomainMayStopTheRun) {
  for (const Windows windows : {Windows::kNever, Windows::kAlways}) {
    Conductor conductor({windows, 1});
    const Bound never;
    Engine& first = conductor.add_domain(never);
    Engine& second = conductor.add_domain(never);
    Doing stop(first, Phase::kHost, [&](SimTime) { first.stop(); });
    Doing later(second, Phase::kHost, [](SimTime) {});
    first.schedule(stop.entity, at(1));
    second.schedule(later.entity, SimTime::max() - Duration{1});
    conductor.run_until(at(100));
    EXPECT_TRUE(conductor.stopped());
    EXPECT_EQ(conductor.now(), at(1));
  }
}

TEST(Conductor, AnExceptionInAWindowOfThreadsReachesTheCaller) {
  Conductor conductor({Windows::kAlways, 2});
  const Bound never;
  Engine& first = conductor.add_domain(never);
  Engine& second = conductor.add_domain(never);
  Doing fine(first, Phase::kHost, [](SimTime) {});
  Doing throws(second, Phase::kHost, [](SimTime) { throw std::runtime_error("as it must"); });
  first.schedule(fine.entity, at(1));
  second.schedule(throws.entity, at(1));
  EXPECT_THROW(conductor.run_until(), std::runtime_error);
}

TEST(ThreadPool, GivesEachPieceToOneThreadInUnbrokenRanges) {
  ThreadPool pool(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> done(7, 0);
    std::vector<std::thread::id> who(7);
    pool.run(done.size(), [&](std::size_t i) {
      ++done[i];
      who[i] = std::this_thread::get_id();
    });
    EXPECT_EQ(done, std::vector<int>(7, 1));
    EXPECT_EQ(who[0], who[1]);  // 0-1, 2-3, 4-6
    EXPECT_EQ(who[4], who[6]);
  }
}

}  // namespace
}  // namespace bubblesim::engine
