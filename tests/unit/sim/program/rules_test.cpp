// When things happen, by hand: spans in nanoseconds, instants since the start.
#include "sim/program/rules.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>

namespace bubblesim::program {
namespace {

SimTime at(std::int64_t nanoseconds) { return kSimStart + Duration{nanoseconds}; }

/// Operation 2 follows operations 0 and 1 by edges of 3 and 40 ns, and its stream by a gap of 5 ns.
class StartOfAnOperation : public testing::Test {
 protected:
  StartOfAnOperation() {
    program_.ops.resize(3);
    program_.edges = {{0, {3}}, {1, {40}}};
    program_.ops[2].gap = {5};
    program_.ops[2].edge_count = 2;
  }
  OpStart<SimTime> start(SimTime ready, std::optional<SimTime> stream_end) const {
    return start_of(program_, program_.ops[2], ready, stream_end, [this](const OpEdge& edge) {
      return ends_.contains(edge.before) ? ends_.at(edge.before) : SimTime::max();
    });
  }

  Program program_;
  std::map<std::uint32_t, SimTime> ends_;
};

TEST_F(StartOfAnOperation, IsTheLatestOfLaunchStreamAndEdges) {
  ends_ = {{0, at(100)}, {1, at(50)}};
  EXPECT_EQ(start(at(80), at(90)).at, at(103));    // 100 + 3 against 80, 90 + 5, 50 + 40
  EXPECT_EQ(start(at(120), at(90)).at, at(120));   // its launch
  EXPECT_EQ(start(at(80), at(110)).at, at(115));   // 110 + 5
  ends_[1] = at(70);
  EXPECT_EQ(start(at(80), at(90)).at, at(110));    // 70 + 40
}

TEST_F(StartOfAnOperation, HasNoGapAsTheFirstOfItsStream) {
  ends_ = {{0, at(0)}, {1, at(0)}};
  EXPECT_EQ(start(at(41), std::nullopt).at, at(41));
}

TEST_F(StartOfAnOperation, IsUnknownUntilTheLastEdgeHasEnded) {
  ends_ = {{0, at(100)}};
  const OpStart<SimTime> start = this->start(at(80), std::nullopt);
  EXPECT_EQ(start.at, SimTime::max());
  ASSERT_NE(start.open, nullptr);
  EXPECT_EQ(start.open->before, 1U);
}

TEST(Rules, ASlowedCollectiveLastsItsOwnSpan) {
  Op op;
  op.duration = Duration{100};
  EXPECT_EQ(duration_of(op, 1.5), Duration{150});
  op.kind = WorkKind::kCollective;
  EXPECT_EQ(duration_of(op, 1.5), Duration{100});
}

TEST(Rules, ALaunchWithoutCostTakesNoPlaceInTheQueue) {
  Step step;
  EXPECT_FALSE(takes_place(step));
  step.cost = {1};
  EXPECT_TRUE(takes_place(step));
}

Step step_of(StepKind kind, std::uint32_t target, std::uint16_t count = 0) {
  Step step;
  step.kind = kind;
  step.target = target;
  step.count = count;
  return step;
}

TEST(Rules, ACallWaitsForAStreamTheDeviceOrAnOperation) {
  Program program;
  program.ops.resize(4);
  program.ops[3].stream = 7;
  const Awaited graph = awaited_by(program, step_of(StepKind::kLaunchAndWait, 2, 2));
  EXPECT_EQ(graph.kind, AwaitedKind::kStream);
  EXPECT_EQ(graph.index, 7U);  // of operation 3, the last of 2 from 2 on
  EXPECT_EQ(awaited_by(program, step_of(StepKind::kWaitStream, 5)).index, 5U);
  EXPECT_EQ(awaited_by(program, step_of(StepKind::kWaitDevice, 0)).kind, AwaitedKind::kDevice);
  EXPECT_EQ(awaited_by(program, step_of(StepKind::kLaunch, 0, 1)).kind, AwaitedKind::kNothing);
}

TEST(Rules, AWaitForAnEarlierPassNeedsFewerEnds) {
  Program program;
  program.ops.resize(2);
  program.details.resize(1);
  program.details[0].passes_back = 2;
  Step step = step_of(StepKind::kWaitOp, 1);
  EXPECT_EQ(ends_needed(awaited_by(program, step).passes_back, 4), 5U);  // of this pass, the fifth
  step.detail = 0;
  EXPECT_EQ(ends_needed(awaited_by(program, step).passes_back, 4), 3U);
  EXPECT_EQ(ends_needed(awaited_by(program, step).passes_back, 1), 0U);  // before the first
}

TEST(Rules, AHandOverCountsTheStepsOfAllPasses) {
  Program program;
  program.threads.resize(2);
  program.threads[1].steps.resize(10);
  program.details.resize(2);
  program.details[1].after_thread = 1;
  program.details[1].after_step = 3;
  Step step;
  EXPECT_EQ(hand_over(program, step), nullptr);
  step.detail = 0;
  EXPECT_EQ(hand_over(program, step), nullptr);
  step.detail = 1;
  ASSERT_NE(hand_over(program, step), nullptr);
  EXPECT_EQ(steps_needed(program, *hand_over(program, step), 2), 24U);  // 2 passes of 10, and 4
}

TEST(Rules, APassTakesTime) {
  EXPECT_EQ(next_pass(at(5), at(5)), at(6));
  EXPECT_EQ(next_pass(at(5), at(9)), at(9));
}

}  // namespace
}  // namespace bubblesim::program
