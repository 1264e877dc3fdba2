#include "sim/observe/usage_series.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"

namespace bubblesim::observe {
namespace {

std::uint64_t cut(Duration length, Duration interval) {
  if (length <= Duration::zero()) return 0;
  return static_cast<std::uint64_t>((length - Duration{1}) / interval) + 1;
}

/// Sets a total to what the books say, and returns by how much it grew: rounding never shrinks it.
std::int64_t advance(std::int64_t& total, double books) {
  const std::int64_t before = total;
  total = std::max(total, static_cast<std::int64_t>(std::llround(books)));
  return total - before;
}

Duration advance(Duration& total, Duration now) {
  const Duration before = total;
  total = now;
  return now - before;
}

}  // namespace

SimTime UsageGrid::next_boundary(SimTime boundary) const {
  const SimTime next =
      interval_ < SimTime::max() - boundary ? boundary + interval_ : SimTime::max();
  return boundary < warmup_ ? std::min(next, warmup_) : next;
}

std::uint64_t UsageGrid::count(SimTime end) const {
  return cut(std::min(end, warmup_) - kSimStart, interval_) +
         cut(end - std::max(warmup_, kSimStart), interval_);
}

// The longer the interval, the fewer: halving finds the first that is long enough.
std::optional<Duration> least_usage_interval(Duration length, Duration warmup,
                                             std::uint64_t most) {
  const auto fits = [&](Duration interval) {
    return UsageGrid(interval, kSimStart + warmup).count(kSimStart + length) <= most;
  };
  Duration long_enough = std::max(length, Duration{1});
  if (!fits(long_enough)) return std::nullopt;
  Duration too_short{};
  while (long_enough - too_short > Duration{1}) {
    const Duration middle = too_short + (long_enough - too_short) / 2;
    (fits(middle) ? long_enough : too_short) = middle;
  }
  return long_enough;
}

void UsageSeries::close(SimTime now, const Books& books) {
  BUBBLESIM_CHECK(now >= total_.to, "an interval of usage ends before it begins");
  if (now == total_.to) return;
  meter_.advance(now);
  UsageInterval interval;
  interval.from = total_.to;
  interval.to = total_.to = now;
  interval.busy = advance(total_.busy, meter_.busy());
  interval.training_busy = advance(total_.training_busy, meter_.training_busy());
  interval.filler_busy = advance(total_.filler_busy, meter_.filler_busy());
  interval.training_sm_ns = advance(total_.training_sm_ns, books.training_sm_ns);
  interval.filler_sm_ns = advance(total_.filler_sm_ns, books.filler_sm_ns);
  interval.memory = books.memory;
  interval.power = books.power;
  intervals_.push_back(interval);
}

}  // namespace bubblesim::observe
