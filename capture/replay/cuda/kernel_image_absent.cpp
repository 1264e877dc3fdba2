#include "capture/replay/cuda/kernel_image.hpp"

namespace bubblesim::capture::cuda {

std::span<const std::byte> kernel_image() { return {}; }

}  // namespace bubblesim::capture::cuda
