// The environment in which a worker of a rig runs, so that it shares the GPU as its substrate says,
// whatever shell started it.
#pragma once

#include <cstdint>
#include <string>

#include "capture/control/job_environment.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

// The ways in which processes come to share one GPU.

/// How processes come to share the GPU.
enum class Substrate : std::uint8_t {
  kAlone,       ///< one process
  kTimeSliced,  ///< processes without MPS: the driver's time slices
  kMps,         ///< clients of a private MPS daemon
  kStreams,     ///< threads of one process: stream priorities and green contexts
};
[[nodiscard]] const char* substrate_name(Substrate substrate);

/// The priorities of MPS: CUDA_MPS_CLIENT_PRIORITY 0 and 1.
enum class MpsPriority : std::uint8_t { kNormal, kBelowNormal };

/// A process's share of the GPUs that it sees.
struct GpuShare {
  /// UUIDs ("GPU-...", CardState::uuid) or indices; empty: as CUDA_VISIBLE_DEVICES says. The
  /// process numbers them from 0. A client of MPS takes them from MpsSettings::device.
  std::string device;
  std::size_t place = 0;      ///< of the first of these GPUs among MpsSettings::device
  std::string mps_directory;  ///< MpsDaemon::pipe_directory(); empty: no daemon is in reach
  std::uint32_t sm_percentage = 100;  ///< of a client of MPS: [1, 100]
  MpsPriority priority = MpsPriority::kNormal;
};

/// A path that does not exist. Without CUDA_MPS_PIPE_DIRECTORY a process would join whatever daemon
/// listens at /tmp/nvidia-mps.
inline constexpr const char* kNoMps = "/nonexistent/bubblesim-no-mps";

/// Removes every CUDA_MPS_ variable and sets those of the share. A daemon numbers the GPUs that its
/// CUDA_VISIBLE_DEVICES shows it from 0, and its clients use these numbers: if the daemon sees
/// "2,3", its client's "2,3" becomes "0,1", and "3" becomes "1". UUIDs stay.
void set_share(Variables& variables, const GpuShare& share);

/// "0,1" if CUDA_VISIBLE_DEVICES names two GPUs, each with the suffix; unset: as for one GPU.
[[nodiscard]] std::string numbered_gpus(const Variables& variables, const std::string& suffix = {},
                                        std::size_t first = 0);

struct WorkerSettings : GpuShare {
  Substrate substrate = Substrate::kAlone;
  std::uint32_t clients = 1;  ///< kMps: of the daemon's server, this one included
};

/// CUDA_DEVICE_MAX_CONNECTIONS: 32, so that as few streams as possible share a hardware queue. All
/// clients of an MPS server take connections from one pool: 60 clients of 2 fill it (NVIDIA,
/// Multi-Process Service, "Client-Server Connection Limits"), and the next client gets error 809.
/// Under kMps the clients share half of that pool.
[[nodiscard]] std::uint32_t device_connections(const WorkerSettings& settings);

/// `inherited` with the share, and with the substrate's needs: device_connections();
/// CUDA_MODULE_LOADING is EAGER (no kernel is loaded while times are taken). Faults: a percentage
/// outside [1, 100]; kMps without a directory.
[[nodiscard]] Result<Variables> worker_environment(const Variables& inherited,
                                                   const WorkerSettings& settings);

}  // namespace bubblesim::capture
