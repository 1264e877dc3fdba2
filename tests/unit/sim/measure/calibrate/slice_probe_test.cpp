#include <gtest/gtest.h>

#include "sim/measure/calibrate/probes.hpp"

namespace bubblesim::measure {
namespace {

constexpr std::int64_t kKernel = 101'000;  ///< 100 us and a gap of 1 us
constexpr std::int64_t kSlice = 1'000'000;
constexpr std::int64_t kSwitch = 40'000;

/// Two processes in turn, `turns` each: slices, then the switch, the other's slice, the switch
/// back. On a process's own time kernels end every 101 us and absences begin every 1 ms.
capture::JobRecord row(int first, int turns) {
  capture::JobRecord record;
  const std::int64_t away = kSlice + 2 * kSwitch;
  const std::int64_t own_end = turns * kSlice;
  const std::int64_t origin = first * (kSlice + kSwitch);
  std::uint32_t op = 0;
  const auto on_device = [&](std::int64_t own) { return origin + own + own / kSlice * away; };
  for (std::int64_t own = 0; own + kKernel < own_end; own += kKernel) {
    const std::int64_t start = on_device(own);
    const std::int64_t end = on_device(own + kKernel - 1000);
    record.operations.push_back({op++, 0, Duration{0}, Duration{start}, Duration{end}, {}, {}});
  }
  return record;
}

TEST(SliceProbe, AbsencesAndTheirDistanceOnTheProcessOwnTime) {
  const Turns turns = turns_of(row(0, 40));
  EXPECT_EQ(turns.kernel, kKernel);
  ASSERT_EQ(turns.away.size(), 39U);
  // 1,080 us each: the other's slice and two switches.
  for (const double away : turns.away) EXPECT_NEAR(away, 1'080'000, 1);
  EXPECT_NEAR(turns.slice, 1'000'000, 1'000);
}

TEST(SliceProbe, SliceAndSwitchOfTwoProcesses) {
  const auto found = slice_findings({row(0, 200), row(1, 200)});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].missing, "");
  EXPECT_NEAR(found[0].spread.middle, kSlice, 100);
  EXPECT_EQ(found[1].missing, "");
  EXPECT_NEAR(found[1].spread.middle, kSwitch, 100);
}

TEST(SliceProbe, KernelsSideBySideHaveNoSlices) {
  capture::JobRecord record;
  for (std::uint32_t i = 0; i < 500; ++i) {
    record.operations.push_back(
        {i, 0, {}, Duration{i * 200'000}, Duration{i * 200'000 + 199'000}, {}, {}});
  }
  for (const Finding& finding : slice_findings({record, record})) {
    EXPECT_NE(finding.missing, "") << finding.key;
  }
}

TEST(SliceProbe, OneProcessAloneSaysNothing) {
  for (const Finding& finding : slice_findings({row(0, 200)})) {
    if (finding.key == "context_switch") {
      EXPECT_NE(finding.missing, "");
    }
  }
}

}  // namespace
}  // namespace bubblesim::measure
