// Sizes of memory as tests write them.
#pragma once

#include <cstdint>

#include "sim/base/quantities.hpp"

namespace bubblesim {

constexpr Bytes gb(std::uint64_t count) { return {count * 1'000'000'000}; }
constexpr Bytes gib(std::uint64_t count) { return {count << 30}; }

}  // namespace bubblesim
