// The kinds of work that a program gives to a GPU: the words that programs, the GPU model, policies
// and real replays share. Part of the policy contract (sim/policy/contract_version.hpp).
#pragma once

#include <cstdint>

namespace bubblesim::program {

/// The kind of a device operation.
enum class WorkKind : std::uint8_t {
  kKernel,      ///< blocks on SMs
  kCollective,  ///< blocks on SMs from its start until its end is known (Gpu::finish_collective)
  kCopy,        ///< a copy engine, first come first served
  kMemset,      ///< occupies neither SMs nor copy engines; lasts its solo duration
};

/// Whether it has blocks on SMs.
[[nodiscard]] constexpr bool is_kernel(WorkKind kind) {
  return kind == WorkKind::kKernel || kind == WorkKind::kCollective;
}

/// The resource that bounds a kernel, by its name or a profile.
enum class KernelClass : std::uint8_t { kUnknown, kCompute, kMemory };

/// Whether kernels of one client, on different streams, compete with each other for room.
enum class OwnKernels : std::uint8_t {
  kCompete,     ///< placed like other clients' kernels
  kAsRecorded,  ///< no: their recorded starts and durations already include each other's effect.
                ///< Applies while the client has no SM cap
};

/// How clients share the GPU.
enum class SharingMode : std::uint8_t {
  kSpatial,      ///< one context: streams of one process
  kMps,          ///< one context of an MPS server's processes: a change from one process's kernel
                 ///< to another's costs GpuSpec::client_switch
  kTimeSliced,   ///< a context for each client, each in its time slices
  kPartitioned,  ///< MIG: a context for each client, all at once, each with its own SMs and memory
                 ///< bandwidth
  kIdleOnly,     ///< a bound, for oracles only: clients after the first do not slow it, and run on
                 ///< the SMs that its collectives leave free while it has no other kernel
  kLeftover,     ///< a bound, for oracles only: as kIdleOnly, but also beside its kernels, on the
                 ///< SMs that those leave free
};

/// How running work of a client is driven off the GPU.
enum class Preemption : std::uint8_t {
  kAfterKernel,    ///< kernels with resident blocks end, the next ones wait
  kAfterBlocks,    ///< resident blocks end, the rest of the grid waits
  kReset,          ///< resident blocks are killed; their kernels start over
  kContextSwitch,  ///< kTimeSliced only: blocks are saved, the context gets no slice
};

/// Another form of a launch's kernels, made by a system that rewrites kernels before their launch.
struct LaunchForm {
  std::uint64_t most_blocks = 0;  ///< resident at once (persistent workers, a slice of the grid);
                                  ///< 0: as many as fit
  double slowdown = 1;            ///< factor on their durations, 1 to 1000
};

}  // namespace bubblesim::program
