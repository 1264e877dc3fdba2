// The environment in which a worker of a rig runs, so that it shares the GPU as its substrate says
// and by no accident of the shell that started it.
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

/// MPS knows two: CUDA_MPS_CLIENT_PRIORITY 0 and 1.
enum class MpsPriority : std::uint8_t { kNormal, kBelowNormal };

struct WorkerSettings {
  Substrate substrate = Substrate::kAlone;
  /// UUID ("GPU-...", CardState::uuid) or index; empty: what CUDA_VISIBLE_DEVICES says already.
  /// The worker then sees this GPU as its number 0. kMps: the daemon's MpsSettings::device.
  std::string device;
  std::string mps_directory;          ///< kMps: MpsDaemon::pipe_directory()
  std::uint32_t sm_percentage = 100;  ///< kMps: [1, 100]
  std::uint32_t clients = 1;          ///< kMps: of the daemon's server, this one included
  MpsPriority priority = MpsPriority::kNormal;  ///< kMps
  /// Other substrates: a path at which nothing is. Without CUDA_MPS_PIPE_DIRECTORY a process would
  /// join whatever daemon listens at /tmp/nvidia-mps.
  std::string no_mps_directory = "/nonexistent/bubblesim-no-mps";
};

/// CUDA_DEVICE_MAX_CONNECTIONS: 32, so that streams share hardware queues, and wait for each other,
/// as late as can be. All clients of an MPS server have theirs from one pool, each for itself: 60
/// clients of 2 fill it (NVIDIA, Multi-Process Service, "Client-Server Connection Limits"), and
/// whoever then comes gets error 809. Under kMps the clients share half of that pool.
[[nodiscard]] std::uint32_t device_connections(const WorkerSettings& settings);

/// `inherited` without any CUDA_MPS_ variable, and with what the substrate needs:
/// device_connections(); CUDA_MODULE_LOADING is EAGER (no kernel is loaded while times are taken).
/// Faults: a percentage outside [1, 100]; kMps without a directory.
[[nodiscard]] Result<Variables> worker_environment(const Variables& inherited,
                                                   const WorkerSettings& settings);

}  // namespace bubblesim::capture
