// The device's clock on the host's while the two drift apart.
#include <gtest/gtest.h>

#include <cmath>

#include "capture/replay/cuda/device_clock.hpp"
#include "tests/unit/capture/replay_cuda/cuda_bench.hpp"

namespace bubblesim::capture::cuda {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr double kRate = 13e-6;  // 52 us in 4 s, as on an H100 in a virtual machine
constexpr std::int64_t kNotice = 900;  // from a record to the host's sight of it

/// Offset of 1,000 ns at device time 0, and kRate from there.
std::int64_t truth(std::int64_t device) { return 1'000 + std::llround(kRate * double(device)); }
ClockOffset measured_at(std::int64_t device) {
  const std::int64_t offset = truth(device);
  return {offset - 4'000, offset + kNotice, offset, 32, device};
}
std::int64_t off_by(const ClockTrack& track, std::int64_t device) {
  return to_ns(track.host(static_cast<std::uint64_t>(device))) - device - truth(device);
}

TEST(ClockTrack, TwoMeasurementsSayHowTheOffsetGoesOn) {
  ClockTrack track;
  track.measured(measured_at(0));
  EXPECT_NEAR(double(off_by(track, 4 * kSecond)), -52'000, 10);
  track.measured(measured_at(2 * kSecond));
  EXPECT_NEAR(double(off_by(track, 2 * kSecond)), 0, 1);
  EXPECT_NEAR(double(off_by(track, 6 * kSecond)), 0, 10);
  EXPECT_EQ(track.moved_ns(measured_at(6 * kSecond)), 52'000);
  EXPECT_NEAR(double(track.error_ns(measured_at(6 * kSecond))), 0, 10);
}

TEST(ClockTrack, PingsThatWaitedForTheirTurnMeasureByTheirUpperBound) {
  ClockTrack track;
  track.measured(measured_at(0));
  ClockOffset waited = measured_at(2 * kSecond);
  waited.lowest_ns -= 400'000;
  waited.best_ns -= 200'000;
  track.measured(waited);
  EXPECT_NEAR(double(off_by(track, 2 * kSecond)), 0, 1);
}

TEST(ClockTrack, MeasurementsThatAreCloseSayNothingOfTheRate) {
  ClockTrack track;
  track.measured(measured_at(0));
  ClockOffset soon = measured_at(1'000'000);
  soon.highest_ns += 500;  // 500 ppm, were it drift
  track.measured(soon);
  EXPECT_EQ(to_ns(track.host(static_cast<std::uint64_t>(kSecond))), kSecond + soon.best_ns + 500);
}

TEST(ClockTrack, TheEarliestSightsOfRecordsSayHowTheOffsetGoesOn) {
  for (const double sign : {1.0, -1.0}) {
    ClockTrack track;
    track.measured(measured_at(0));
    std::int64_t worst = 0;
    // Every 400 us a record, seen up to 71 us late.
    for (std::int64_t device = 400'000; device < 4 * kSecond; device += 400'000) {
      const std::int64_t late = device / 400'000 * 37 % 72 * 1'000;
      const std::int64_t offset = 1'000 + std::llround(sign * kRate * double(device));
      if (device > kSecond / 5) {
        const std::int64_t host = to_ns(track.host(static_cast<std::uint64_t>(device)));
        worst = std::max(worst, std::abs(host - device - offset));
      }
      track.saw(HostTime{Duration{device + offset + kNotice + late}},
                static_cast<std::uint64_t>(device));
    }
    EXPECT_LT(worst, 1'000);
  }
}

TEST(ClockTrack, ARateOfTwoMeasurementsIsNotLeftForLateSights) {
  ClockTrack track;
  track.measured(measured_at(0));
  track.measured(measured_at(2 * kSecond));
  for (int i = 1; i < 1'000; ++i) {
    const std::int64_t device = 2 * kSecond + i * 1'000'000;
    track.saw(HostTime{Duration{device + truth(device) + kNotice + 60'000}},
              static_cast<std::uint64_t>(device));
  }
  EXPECT_NEAR(double(off_by(track, 3 * kSecond)), 0, 10);
}

}  // namespace
}  // namespace bubblesim::capture::cuda

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;

TEST_F(CudaBench, ADeviceThatSettlesGoesByTheClockAsItIsThen) {
  const auto op = kernel(100us);
  ASSERT_TRUE(open());
  fake_driver::set_clock_offset(500'000);
  device_->settle();
  expect_times_of_the_host(op);
}

}  // namespace
}  // namespace bubblesim::capture
