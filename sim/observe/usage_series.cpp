#include "sim/observe/usage_series.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/observe/report.hpp"
#include "sim/observe/result_rows.hpp"
#include "sim/text/escaped_text.hpp"

namespace bubblesim::observe {

void ActivityMeter::advance(SimTime now) {
  const SimTime from = std::max(last_, warmup_);
  if (now > from) in_state_[state_] += now - from;
  last_ = std::max(last_, now);
}

void ActivityMeter::started(Activity activity, SimTime now) {
  advance(now);
  ++running_[static_cast<std::size_t>(activity)];
  state_ |= bit_of(activity);
}

void ActivityMeter::ended(Activity activity, SimTime now) {
  std::uint32_t& running = running_[static_cast<std::size_t>(activity)];
  BUBBLESIM_CHECK(running > 0, "an activity ended that had not started");
  advance(now);
  if (--running == 0) state_ &= ~bit_of(activity);
}

Duration ActivityMeter::any_of(unsigned activities) const {
  Duration total{};
  for (unsigned bits = 0; bits < in_state_.size(); ++bits) {
    if ((bits & activities) != 0) total += in_state_[bits];
  }
  return total;
}

Duration ActivityMeter::only(unsigned activities, unsigned among) const {
  Duration total{};
  for (unsigned bits = 0; bits < in_state_.size(); ++bits) {
    if ((bits & among) == activities) total += in_state_[bits];
  }
  return total;
}

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

// Usage over time as CSV: a line an interval. OUTPUTS.md, "Usage over time".

namespace {

constexpr std::array<std::string_view, 14> kUsageColumns{
    "config",        "policy",
    "policy_index",  "gpu",
    "from_ms",       "to_ms",
    "busy_fraction", "training_busy_fraction",
    "filler_busy_fraction", "training_sm_fraction",
    "filler_sm_fraction",   "memory_bytes",
    "power_w",              "clock_mhz"};

}  // namespace

std::string usage_header() { return fmt::format("{}\n", fmt::join(kUsageColumns, ",")); }

std::string usage_rows(const RunReport& report) {
  std::string text;
  for (std::size_t policy = 0; policy < report.policies.size(); ++policy) {
    for (const GpuUsage& gpu : report.policies[policy].usage) {
      for (const UsageInterval& interval : gpu.intervals) {
        const auto length = static_cast<double>((interval.to - interval.from).count());
        const auto share = [length](Duration part) {
          return shortest_text(static_cast<double>(part.count()) / length);
        };
        const auto sm_share = [&](std::int64_t sm_ns) {
          const double whole = length * gpu.sm_count;
          return shortest_text(whole > 0 ? static_cast<double>(sm_ns) / whole : 0);
        };
        const auto& power = interval.power;
        append_csv_line(
            text, std::array<std::string, kUsageColumns.size()>{
                      report.config, report.policies[policy].policy, std::to_string(policy),
                      std::to_string(gpu.gpu.value), decimal(interval.from - kSimStart, 6),
                      decimal(interval.to - kSimStart, 6), share(interval.busy),
                      share(interval.training_busy), share(interval.filler_busy),
                      sm_share(interval.training_sm_ns), sm_share(interval.filler_sm_ns),
                      std::to_string(interval.memory.value),
                      power ? shortest_text(power->watts) : "",
                      power ? shortest_text(power->clock_mhz) : ""});
      }
    }
  }
  return text;
}

}  // namespace bubblesim::observe
