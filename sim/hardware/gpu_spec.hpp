// A GPU's constants, immutable, read from configs/devices/*.json. Every constant's unit, default
// and source stand in the device file; configs/devices/README.md explains each key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/mig_geometry.hpp"
#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/power_spec.hpp"

namespace bubblesim::hardware {

/// How block resources are rounded when a block becomes resident (CUDA occupancy rules of the
/// compute capability).
struct SmSpec {
  std::uint32_t max_threads = 2048;
  std::uint32_t max_blocks = 32;
  std::uint32_t max_warps = 64;
  std::uint32_t warp_size = 32;
  std::uint32_t registers = 65536;
  std::uint32_t register_unit = 256;           ///< unit of a warp's register allocation
  std::uint32_t warp_allocation_unit = 4;      ///< number of warps by registers is rounded down to
                                               ///< this
  std::uint64_t shared_memory_bytes = 0;       ///< of an SM, usable by blocks
  std::uint64_t shared_memory_unit_bytes = 128;
  std::uint64_t shared_memory_reserved_bytes = 1024;  ///< per block, taken by the driver
};

/// How kernels that run together slow each other (sim/gpu/contention.hpp).
struct ContentionSpec {
  /// Shares of the achievable DRAM bandwidth (GpuSpec::dram_reach).
  double compute_kernel_dram_share = 0.0;   ///< of a compute kernel
  double memory_kernel_dram_share = 0.0;    ///< of a memory-bound kernel
  double unknown_kernel_dram_share = 0.0;   ///< of a kernel of unknown class
  double compute_kernel_issue_share = 0.0;  ///< share of issue slots of its SMs
  double memory_kernel_issue_share = 0.0;
  double unknown_kernel_issue_share = 0.0;
  double compute_kernel_memory_boundness = 0.1;  ///< fraction of its time that DRAM bounds
  double memory_kernel_memory_boundness = 1.0;
  double unknown_kernel_memory_boundness = 0.3;
  double l2_slowdown = 0.0;  ///< slowdown per unit of the neighbours' L2 share
};

/// The order in which blocks of clients are placed that share an MPS server and a priority and wait
/// together.
enum class ClientOrder : std::uint8_t {
  kArrival,  ///< the kernel that arrived first, as within one client
  kEven,     ///< all get equal shares of the room
};

/// The effect of a slice's end while no other context has work.
enum class LoneSlice : std::uint8_t {
  kExpired,  ///< a new context pays the switch and does not wait
  kRenewed,  ///< while its channel has work to fetch the next one begins, and a newcomer waits
             ///< for its end; otherwise kExpired
};

/// The speed of a client that may use only a part of the SMs (sim/gpu/contention.hpp).
struct PartSpec {
  double dram_saturating_sms = 0;  ///< share of the SMs that saturates the DRAM bandwidth; < 0: not
                                   ///< known, traffic is in proportion to the SMs
  double dark_clock_gain = 1;      ///< most that the clock rises by while other SMs are dark
};

struct GpuSpec {
  std::string id;              ///< its file's name without ".json": "h100"; empty: of no file
  std::string name;            ///< as the driver reports it, e.g. "NVIDIA H100 80GB HBM3"
  std::uint32_t compute_major = 0;
  std::uint32_t compute_minor = 0;
  std::uint32_t sm_count = 0;
  std::uint32_t tpc_sms = 2;   ///< SMs of a TPC, which an SM cap takes together
  SmSpec sm;
  Bytes memory;
  BytesPerSecond dram_bandwidth;    ///< peak of the interface
  double dram_reach = 1;            ///< share of dram_bandwidth that kernels and copies reach
  BytesPerSecond host_bandwidth;    ///< of the link to host memory, one direction; 0: not known
  std::uint32_t copy_engines = 2;
  Duration launch_latency{};        ///< from the end of a launch call to an idle stream's start
  Duration stream_gap{};            ///< between kernels that wait in one stream
  std::optional<Duration> graph_gap{};  ///< between kernels of a CUDA graph; nothing: as stream_gap
  Duration sync_latency{};          ///< from a completion to the return of the waiting call
  Duration completion_notice{};     ///< from a completion to a policy's knowledge of it
  Duration time_slice{};            ///< of a context, when contexts share without MPS
  Duration context_switch{};        ///< device idle between two contexts' slices, where both have
                                    ///< blocks on all SMs
  std::optional<Duration> context_switch_empty{};  ///< if neither has blocks on the SMs; nothing:
                                                   ///< context_switch
  LoneSlice lone_slice = LoneSlice::kExpired;
  Duration client_switch{};         ///< of one context: delay of a kernel whose predecessor was
                                    ///< another process's (rule reconstructed)
  ClientOrder client_order = ClientOrder::kArrival;
  ContentionSpec contention;
  PartSpec part;
  MigGeometry mig;
  PowerSpec power;
  double clock = 1;  ///< clock of kernels / full clock, (0, 1]; not in device files: a run may lock
                     ///< the clock
};

[[nodiscard]] inline Duration gap_in_graph(const GpuSpec& gpu) {
  return gpu.graph_gap.value_or(gpu.stream_gap);
}

}  // namespace bubblesim::hardware
