// When requests come to a service that is measured beside a job.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"

namespace bubblesim::validate {

/// When requests come: one at random within each of equally many expected arrivals (jittered
/// sampling: random between neighbours, even over the run). Those within a span `burst` come
/// together, at a random instant of it: a day's trace that is scaled to minutes has bursts.
struct ArrivalSetting {
  double load = 0.5;  ///< requests' solo time over all time, in (0, 1]
  std::uint64_t seed = 1;
  Duration burst{};  ///< 0: each comes alone
};

/// Ascending, all before `length`. `solo`: a request's time alone.
[[nodiscard]] std::vector<SimTime> pair_arrivals(const ArrivalSetting& setting, Duration solo,
                                                 Duration length);

}  // namespace bubblesim::validate
