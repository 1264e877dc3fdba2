// The loop: what runs when, and what handlers may do from inside an event.
#include "sim/engine/engine.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

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

TEST_F(EngineTest, TiesOfAnInstantRunInPhaseOrder) {
  const EntityId a = engine_.add_entity(a_, Phase::kObserve);
  const EntityId b = engine_.add_entity(b_, Phase::kDispatch);
  const EntityId c = engine_.add_entity(c_, Phase::kCompletion);
  for (const EntityId id : {a, b, c}) engine_.schedule(id, at(5));
  engine_.run_until();
  EXPECT_EQ(log_, (Log{"c@5", "b@5", "a@5"}));
}

TEST_F(HostEvents, TiesOfAPhaseRunInScheduleOrder) {
  engine_.schedule(c, at(5)), engine_.schedule(a, at(5)), engine_.schedule(b, at(5));
  engine_.schedule(c, at(5));  // scheduled anew: now the last
  engine_.run_until();
  EXPECT_EQ(log_, (Log{"a@5", "b@5", "c@5"}));
}

TEST_F(HostEvents, AnEntityHasOneEventThatMoves) {
  engine_.schedule(a, at(50)), engine_.schedule(a, at(10)), engine_.schedule(a, at(30));
  EXPECT_EQ(engine_.due(a), at(30));
  engine_.run_until();
  EXPECT_EQ(log_, Log{"a@30"});
  EXPECT_FALSE(engine_.due(a));
}

TEST_F(HostEvents, ACancelledEventDoesNotRun) {
  engine_.schedule(a, at(10)), engine_.schedule(b, at(10));
  engine_.cancel(a);
  engine_.cancel(a);  // again: no effect
  engine_.run_until();
  EXPECT_EQ(log_, Log{"b@10"});
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

TEST_F(HostEvents, TheEndOfTimeMeansNever) {
  engine_.schedule(a, SimTime::max());
  EXPECT_FALSE(engine_.due(a));
  engine_.run_until();
  EXPECT_TRUE(log_.empty());
}

using EngineDeathTest = HostEvents;

TEST_F(EngineDeathTest, AnEventInThePastIsAProgrammerFault) {
  engine_.schedule(a, at(10));
  engine_.run_until();
  EXPECT_DEATH(engine_.schedule(a, at(9)), "in the past");
}

}  // namespace
}  // namespace bubblesim::engine
