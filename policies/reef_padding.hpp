// Decides on how many SMs, and for how long, a filler may run beside training's present kernel: the
// arithmetic of REEF's dynamic kernel padding, without merged kernels. Pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "policies/client_queues.hpp"

namespace bubblesim::policies {

/// SMs that training leaves free until the expected end of its present kernel.
struct PaddingRoom {
  std::uint32_t sms = 0;
  policy::Instant end{};
};

/// The room beside training's present kernel, the oldest outstanding launch, which began at
/// `since`, and beside all of its outstanding collectives. None if the kernel's duration or grid is
/// not known, or if the launch is no kernel. Precondition: the queue is not empty.
[[nodiscard]] PaddingRoom padding_room(const LaunchQueue& training, policy::Instant since,
                                       std::uint32_t gpu_sms);

/// The duration of one wave of a kernel that runs alone; nothing if an argument is not known.
[[nodiscard]] std::optional<Duration> wave_length(std::uint64_t blocks, std::uint64_t sm_blocks,
                                                  Duration profiled);

}  // namespace bubblesim::policies
