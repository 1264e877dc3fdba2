// Hashes that results depend on: the same on every machine.
#pragma once

#include <cstdint>

namespace bubblesim {

/// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// OOPSLA 2014): each bit of the value changes about half of the bits of the result.
[[nodiscard]] constexpr std::uint64_t splitmix64(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31U);
}

/// FNV-1a with 64 bits: the initial hash, and the hash after one more byte.
inline constexpr std::uint64_t kFnvBasis = 14695981039346656037ULL;
[[nodiscard]] constexpr std::uint64_t fnv1a(std::uint64_t hash, unsigned char byte) {
  return (hash ^ byte) * 1099511628211ULL;
}

}  // namespace bubblesim
