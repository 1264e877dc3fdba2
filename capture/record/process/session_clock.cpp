#include "capture/record/process/session_clock.hpp"

#include <ctime>
#include <limits>

namespace bubblesim::capture {
namespace {

constexpr int kReadings = 5;

std::int64_t read(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::int64_t cupti_now(const CuptiApi& api) noexcept {
  std::uint64_t now = 0;
  const bool good =
      api.get_timestamp != nullptr && api.get_timestamp(&now) == cupti::Result::kSuccess;
  return good ? static_cast<std::int64_t>(now) : read(CLOCK_REALTIME);
}

}  // namespace

std::int64_t realtime_ns() noexcept { return read(CLOCK_REALTIME); }
std::int64_t monotonic_ns() noexcept { return read(CLOCK_MONOTONIC); }

ClockReading read_clocks(const CuptiApi& api) noexcept {
  ClockReading best;
  std::int64_t tightest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kReadings; ++i) {
    const std::int64_t before = read(CLOCK_REALTIME);
    const std::int64_t cupti = cupti_now(api);
    const std::int64_t monotonic = read(CLOCK_MONOTONIC);
    const std::int64_t after = read(CLOCK_REALTIME);
    // A step of the clock in between gives a span below zero: not a reading.
    if (after < before || after - before >= tightest) continue;
    tightest = after - before;
    const std::int64_t middle = before + (after - before) / 2;
    best.pair = {TraceTime{Duration{cupti}}, middle, monotonic};
    best.offset = Duration{cupti >= before && cupti <= after ? 0 : cupti - middle};
  }
  return best;
}

}  // namespace bubblesim::capture
