// SMs that MPS percentages really give, and the steps in which they are given.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/measure/calibrate/probe.hpp"

namespace bubblesim::measure {

/// Clients of an MPS server with different percentages, one after the other: a kernel of many
/// equal blocks, one on an SM at a time, lasts as many waves as its SMs need for them. With as many
/// waves as there are SMs, each SM more or less shows.
[[nodiscard]] ProbeRun sm_run(const hardware::GpuSpec& spec);

struct SmShare {
  std::uint32_t percentage = 0;
  double length_ns = 0;    ///< median
  std::size_t count = 0;   ///< executions that nothing ran beside
  std::uint32_t sms = 0;   ///< whose waves last nearest to that
};
[[nodiscard]] std::vector<SmShare> sm_shares(const ProbeRun& run, const Records& records,
                                             const hardware::GpuSpec& spec);

/// tpc_sms: the step by which schedule::sm_cap gives all of these; the smallest, if several do.
/// Without one that does for nine of ten, nothing is found.
[[nodiscard]] Finding tpc_finding(const std::vector<SmShare>& shares,
                                  const hardware::GpuSpec& spec);

}  // namespace bubblesim::measure
