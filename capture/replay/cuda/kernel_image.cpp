#include "capture/replay/cuda/kernel_image.hpp"

// The assembler includes the file: as C++ text it would be five times as long, and slow to compile.
asm(".section .rodata\n"
    ".balign 16\n"
    ".local bubblesim_kernel_image\n"
    "bubblesim_kernel_image:\n"
    ".incbin \"" BUBBLESIM_KERNEL_IMAGE "\"\n"
    ".local bubblesim_kernel_image_end\n"
    "bubblesim_kernel_image_end:\n"
    ".byte 0\n"
    ".previous\n");

namespace {
extern "C" const std::byte bubblesim_kernel_image[];
extern "C" const std::byte bubblesim_kernel_image_end[];
}  // namespace

namespace bubblesim::capture::cuda {

std::span<const std::byte> kernel_image() {
  return {bubblesim_kernel_image, bubblesim_kernel_image_end};
}

}  // namespace bubblesim::capture::cuda
