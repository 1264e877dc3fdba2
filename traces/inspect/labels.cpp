// Words and numbers for people.
#include "traces/inspect/labels.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>

#include "sim/base/utf8.hpp"

namespace bubblesim::traces {
namespace {

constexpr std::array<std::string_view, kLengthBucketCount> kBuckets{
    "<10 us", "10-100 us", "100 us-1 ms", "1-10 ms", "10-100 ms", ">=100 ms"};

/// At most four digits before the point, three significant after rounding.
std::string three_digits(double value) {
  const double size = std::abs(value);
  const int decimals = size < 9.995 ? 2 : (size < 99.95 ? 1 : 0);
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string short_duration(Duration span) {
  const double ns = static_cast<double>(to_ns(span));
  const double size = std::abs(ns);
  if (size < 1e3) return fmt::format("{:.0f} ns", ns);
  if (size < 999.5e3) return three_digits(ns * 1e-3) + " us";
  if (size < 9999.5e6) return three_digits(ns * 1e-6) + " ms";
  return three_digits(ns * 1e-9) + " s";
}

std::string short_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value *= 1e-3;
  if (unit == 0) return fmt::format("{} B", bytes);
  return three_digits(value) + " " + std::string(kUnits[unit]);
}

double fraction(Duration part, Duration whole) {
  if (whole <= Duration{}) return 0;
  return static_cast<double>(to_ns(part)) / static_cast<double>(to_ns(whole));
}

std::string percent(Duration part, Duration whole) {
  if (whole <= Duration{}) return "-";
  return fmt::format("{:.1f} %", 100 * fraction(part, whole));
}

std::string_view length_bucket_label(std::size_t bucket) {
  return bucket < kBuckets.size() ? kBuckets[bucket] : std::string_view{"unknown"};
}

std::string shortened(std::string_view text, std::size_t columns) {
  if (text.size() <= columns || columns < 4) return std::string(text);
  std::size_t head = (columns - 2) * 2 / 3;
  std::size_t tail = text.size() - (columns - 2 - head);
  while (head > 0 && continues_character(text[head])) --head;
  while (tail < text.size() && continues_character(text[tail])) ++tail;
  return std::string(text.substr(0, head)) + ".." + std::string(text.substr(tail));
}

std::string device_label(const DeviceInfo& device) {
  if (device.name.empty()) return "device not recorded";
  if (device.sm_count == 0) return device.name;
  return fmt::format("{} ({} SMs)", device.name, device.sm_count);
}

namespace {

constexpr std::int64_t kTicksAtMost = 12;

Duration tick_step(Duration length) {
  std::int64_t power = 1;
  while (true) {
    for (const std::int64_t factor : {1, 2, 5}) {
      if (to_ns(length) / (factor * power) <= kTicksAtMost) return Duration{factor * power};
    }
    power *= 10;
  }
}

struct Unit {
  std::int64_t ns;
  std::string_view name;
};

Unit unit_for(Duration step) {
  const std::int64_t ns = to_ns(step);
  if (ns >= 100'000'000) return {1'000'000'000, "s"};
  if (ns >= 100'000) return {1'000'000, "ms"};
  if (ns >= 100) return {1'000, "us"};
  return {1, "ns"};
}

}  // namespace

std::vector<AxisTick> axis_ticks(Duration length) {
  const Duration step = tick_step(length);
  const Unit unit = unit_for(step);
  std::vector<AxisTick> ticks;
  for (Duration at{}; at <= length; at += step) {
    const double value = static_cast<double>(to_ns(at)) / static_cast<double>(unit.ns);
    ticks.push_back({at, fmt::format("{:g} {}", value, unit.name)});
  }
  return ticks;
}

}  // namespace bubblesim::traces
