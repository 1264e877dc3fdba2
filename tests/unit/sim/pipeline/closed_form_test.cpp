// Idle time and peaks of every schedule against the closed forms of the papers, exactly:
// p in {2, 4, 8, 16, 32}, m in {p .. 8p}, v in {1, 2, 4}.
#include <gtest/gtest.h>

#include "tests/unit/sim/pipeline/plans.hpp"

namespace bubblesim::pipeline {
namespace {

constexpr std::uint32_t kDepths[] = {2, 4, 8, 16, 32};
constexpr std::uint32_t kMultiples[] = {1, 2, 3, 4, 8};

// `m` that is no multiple of p too, where the schedule takes it.
std::vector<std::uint32_t> counts(const std::string& name, std::uint32_t p) {
  std::vector<std::uint32_t> all;
  for (const std::uint32_t k : kMultiples) {
    all.push_back(k * p);
    if (name != "interleaved" && name != "chimera") all.push_back(k * p + 2);
  }
  return all;
}

// Compares wherever there is a closed form; returns how often there was one: 5 depths and 10
// counts make 50, of which 41 have m >= 2p-1 (all but m = p, and m = p + 2 from p = 4).
int compare(const std::string& name, const UnitTimes& unit, std::uint32_t chunks = 0,
            const ActivationUnits& units = {}) {
  int compared = 0;
  for (const std::uint32_t p : kDepths) {
    for (const std::uint32_t m : counts(name, p)) {
      const ScheduleRequest plan = request(p, m, chunks);
      if (name.starts_with("dual") && m < 2 * p) continue;
      const auto form = closed_form(name, plan, unit, units);
      if (!form) continue;
      const Execution run = ran(made(name, plan), unit, units);
      const std::string at = name + " p=" + std::to_string(p) + " m=" + std::to_string(m);
      if (form->measure == BubbleMeasure::kSpan) {
        EXPECT_EQ(run.span_bubble(), form->bubble) << at;
      } else {
        EXPECT_EQ(run.idle, std::vector<std::int64_t>(p, form->bubble)) << at;
      }
      EXPECT_EQ(run.peak_activations, form->peaks) << at;
      ++compared;
    }
  }
  return compared;
}

TEST(ClosedForm, SequentialGpipeAnd1F1BAnyTimes) {
  for (const char* name : {"sequential", "gpipe", "1f1b", "graph"}) {
    EXPECT_EQ(compare(name, times(1, 1, 1)), 50) << name;
    EXPECT_EQ(compare(name, times(10, 12, 8)), 50) << name;
    EXPECT_EQ(compare(name, times(7, 3, 2)), 50) << name;
  }
}

TEST(ClosedForm, InterleavedIdlesOneChunksShare) {
  for (const std::uint32_t v : {1U, 2U, 4U}) {
    EXPECT_EQ(compare("interleaved", times(1, 1, 1), v), 25);
    EXPECT_EQ(compare("interleaved", times(10, 12, 8), v), 25);
  }
}

TEST(ClosedForm, ZeroBubbleH1AndH2) {
  EXPECT_EQ(compare("zb-h1", times(1, 1, 1)), 50);
  EXPECT_EQ(compare("zb-h1", times(10, 12, 8)), 50);
  EXPECT_EQ(compare("zb-h2", times(10, 12, 8)), 41);
  EXPECT_EQ(compare("zb-h2", times(1, 1, 1)), 41);
}

// ZB table 2 counts M_B until I and M_W until W; table 1: 34sbh + 5as^2b and 32sbh.
TEST(ClosedForm, ZeroBubblePeaksWithTheWeightHalfSmaller) {
  EXPECT_EQ(compare("zb-h1", times(10, 12, 8), 0, {34, 32}), 50);
  EXPECT_EQ(compare("zb-h2", times(10, 12, 8), 0, {34, 32}), 41);
  // p = 4, rank 3: 1 M_B + 3 M_W; rank 0: 4 M_B.
  const Execution run = ran(made("zb-h1", request(4, 12)), times(1, 1, 1), {34, 32});
  EXPECT_EQ(run.peak_activations.back(), 34 + 3 * 32);
  EXPECT_EQ(run.peak_activations.front(), 4 * 34);
}

TEST(ClosedForm, ZeroBubbleVHasNoneInASpanOnlyIfAllTimesAreEqual) {
  EXPECT_EQ(compare("zb-v", times(1, 1, 1)), 41);
  EXPECT_EQ(compare("zb-v", times(10, 12, 8)), 0);
  for (const UnitTimes& unit : {times(2, 1, 1), times(1, 2, 1), times(1, 1, 2), times(10, 12, 8)}) {
    EXPECT_GT(ran(made("zb-v", request(4, 12)), unit).span_bubble(), 0);
  }
}

TEST(ClosedForm, DualPipeWhereForwardAndInputGradientAreEqual) {
  for (const char* name : {"dualpipe", "dualpipev"}) {
    EXPECT_EQ(compare(name, times(1, 1, 1)), 41) << name;
    EXPECT_EQ(compare(name, times(5, 5, 3)), 41) << name;
  }
}

TEST(ClosedForm, ChimeraWhereForwardAndBackwardAreEqual) {
  EXPECT_EQ(compare("chimera", times(2, 1, 1)), 25);
  EXPECT_EQ(compare("chimera", times(7, 4, 3)), 25);
}

TEST(ClosedForm, HasNoneForTransfersThatTakeTimeOrStagesThatDiffer) {
  EXPECT_FALSE(closed_form("1f1b", request(4, 8), times(1, 1, 1, 1)));
  UnitTimes uneven = times(1, 1, 1);
  uneven.by_stage.assign(4, {2, 1, 1});
  EXPECT_FALSE(closed_form("1f1b", request(4, 8), uneven));
}

// m F&B + (p-1) F on every rank: the ramp stays, even where a rank's span has no bubble.
TEST(ClosedForm, TheMakespanKeepsTheRampOfZeroBubbleSchedules) {
  const Execution run = ran(made("zb-h2", request(4, 12)), times(1, 1, 1));
  EXPECT_EQ(run.span_bubble(), 0);
  EXPECT_EQ(run.longest_span, 36);
  EXPECT_EQ(run.makespan, 36 + 3);
  EXPECT_DOUBLE_EQ(run.makespan_bubble_fraction(), 3.0 / 39.0);
}

}  // namespace
}  // namespace bubblesim::pipeline
