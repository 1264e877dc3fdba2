// Which kernels are NCCL's: the driver is asked for a function's name once.
#pragma once

#include "capture/live/interpose/driver_types.hpp"

namespace bubblesim::capture::interpose {

/// Whether the kernel's name is one of NCCL's. False where the driver cannot name it (before CUDA
/// 12.3). A look into a table for functions that have been asked for before.
[[nodiscard]] bool is_collective(Handle function) noexcept;

}  // namespace bubblesim::capture::interpose
