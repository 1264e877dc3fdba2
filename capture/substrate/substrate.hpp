// The ways in which processes come to share one GPU.
#pragma once

#include <cstdint>

namespace bubblesim::capture {

/// How processes come to share the GPU.
enum class Substrate : std::uint8_t {
  kAlone,       ///< one process
  kTimeSliced,  ///< processes without MPS: the driver's time slices
  kMps,         ///< clients of a private MPS daemon
  kStreams,     ///< threads of one process: stream priorities and green contexts
};
[[nodiscard]] const char* substrate_name(Substrate substrate);

}  // namespace bubblesim::capture
