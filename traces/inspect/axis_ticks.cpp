#include "traces/inspect/axis_ticks.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace bubblesim::traces {
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
