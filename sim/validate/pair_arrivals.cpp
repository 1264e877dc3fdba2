#include "sim/validate/pair_arrivals.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sim/base/random.hpp"

namespace bubblesim::validate {
namespace {

// Arrivals within one span have one instant, random within what of the span lies in the run.
void gather(std::vector<SimTime>& arrivals, Duration span, Duration length, RandomStream& random) {
  std::int64_t gathered = -1;
  SimTime together{};
  for (SimTime& at : arrivals) {
    const std::int64_t index = (at - kSimStart) / span;
    if (index != gathered) {
      const Duration begin = index * span;
      together = kSimStart + begin + scale(std::min(span, length - begin), random.uniform());
      gathered = index;
    }
    at = together;
  }
}

}  // namespace

std::vector<SimTime> pair_arrivals(const ArrivalSetting& setting, Duration solo, Duration length) {
  RandomStream random(setting.seed, "arrivals of a pair");
  const double expected = setting.load * to_seconds(length) / to_seconds(solo);
  const auto count = static_cast<std::uint64_t>(std::llround(expected));
  std::vector<SimTime> out;
  out.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const double at = (static_cast<double>(i) + random.uniform()) / static_cast<double>(count);
    out.push_back(kSimStart + scale(length, at));
  }
  if (setting.burst > Duration::zero()) gather(out, setting.burst, length, random);
  return out;
}

}  // namespace bubblesim::validate
