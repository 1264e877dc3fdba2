// The GPU of the machine, by CUDA's driver interface, which is looked for at run time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "capture/clock/host_clock.hpp"
#include "capture/replay/device.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

struct CudaOptions {
  std::string library = "libcuda.so.1";
  std::string fit_cache;        ///< file in which fits of stand-ins are kept; empty: none
  /// Folder of a lock that lets processes prepare one after the other, since each measures as if it
  /// were alone; empty: none.
  std::string lock_folder = "/tmp";
  /// False: the process has a part of the GPU (an MPS percentage), so nothing is measured, and a
  /// stand-in that fit_cache does not have is a fault.
  bool whole_gpu = true;
  Duration fit_budget = std::chrono::minutes(5);  ///< after this time stand-ins are measured less
                                                  ///< precisely
  Duration warm_up = std::chrono::milliseconds(200);  ///< device time before anything is measured
  Duration hang_limit = std::chrono::seconds(30);     ///< no operation starts or ends: device hangs
  Duration edge_limit = std::chrono::seconds(10);     ///< of waits for another thread's launch
};

/// `clock` outlives the device, and is a WallClock, since a real GPU cannot take turns. Fault: no
/// driver, no such GPU, or a build without stand-in kernels (no CUDA compiler).
[[nodiscard]] Result<std::unique_ptr<Device>> open_cuda_device(std::uint32_t index,
                                                               HostClock& clock,
                                                               const CudaOptions& options = {});

}  // namespace bubblesim::capture
