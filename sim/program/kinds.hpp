// The kinds of work that a program gives to a GPU: the words that programs, the GPU model, policies
// and real replays share. Part of the policy contract (sim/policy/contract_version.hpp).
#pragma once

#include <cstdint>

namespace bubblesim::program {

/// What a device operation is.
enum class WorkKind : std::uint8_t {
  kKernel,      ///< blocks on SMs
  kCollective,  ///< blocks on SMs from its start until finish_collective's time
  kCopy,        ///< a copy engine, first come first served
  kMemset,      ///< occupies neither SMs nor copy engines; lasts its solo duration
};

/// Which resource a kernel is bound by, as far as its name or a profile tells.
enum class KernelClass : std::uint8_t { kUnknown, kCompute, kMemory };

/// Whether kernels of one client, on different streams, compete with each other for room.
enum class OwnKernels : std::uint8_t {
  kCompete,     ///< placed like anybody's
  kAsRecorded,  ///< no: their recorded starts and durations already contain it. Applies while
                ///< the client has no SM cap
};

}  // namespace bubblesim::program
