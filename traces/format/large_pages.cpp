#include "traces/format/large_pages.hpp"

#include <sys/mman.h>

#include <cstdint>

namespace bubblesim::traces::format {
namespace {

/// Of x86-64, and of most AArch64 systems.
constexpr std::uintptr_t kLargePage = std::uintptr_t{2} << 20U;

}  // namespace

void prefer_large_pages(void* start, std::size_t bytes) {
#if defined(MADV_HUGEPAGE)
  const auto from = reinterpret_cast<std::uintptr_t>(start);
  const std::uintptr_t first = (from + kLargePage - 1) / kLargePage * kLargePage;
  const std::uintptr_t last = (from + bytes) / kLargePage * kLargePage;
  // A refusal changes nothing but speed.
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#else
  static_cast<void>(start);
  static_cast<void>(bytes);
#endif
}

}  // namespace bubblesim::traces::format
