// The calls of the CUDA runtime and driver that are recorded, by CUPTI's number (cbid).
//
// They put work on the device, wait for it, or take memory: all that replay needs. Queries and the
// many small calls between are left out, since each record costs the job's thread time.
#pragma once

#include <cstdint>
#include <span>

namespace bubblesim::capture {

struct TracedCall {
  std::uint32_t id;
  const char* name;  ///< without version and stream variant (_v7000, _ptsz), like Kineto's
};

/// Every number of a call is below this: in CUDA 13.0 they end at 521 (runtime) and 804 (driver).
inline constexpr std::uint32_t kCallNumbers = 1024;

/// Calls in rising order of id. Later CUDA releases number new calls behind those of earlier ones,
/// so an older CUPTI does not know the last of them.
[[nodiscard]] std::span<const TracedCall> traced_runtime_calls();
[[nodiscard]] std::span<const TracedCall> traced_driver_calls();
/// The driver's calls by which NCCL launches (from 2.18 on), and hardly any other library.
[[nodiscard]] std::span<const TracedCall> traced_nccl_launches();

}  // namespace bubblesim::capture
