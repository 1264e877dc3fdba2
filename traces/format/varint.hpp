// Variable-length integers (LEB128: seven bits a byte, lowest first, high bit = more) and the
// zigzag map of signed to unsigned (0, -1, 1, -2 -> 0, 1, 2, 3).
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bubblesim::traces::format {

static_assert(std::endian::native == std::endian::little,
              "read_varint loads eight bytes as one little-endian word");

/// Length of the longest encoding of 64 bits.
inline constexpr std::size_t kMaxVarintBytes = 10;

/// Readable bytes that must follow the last byte given to read_varint.
inline constexpr std::size_t kVarintPadding = 16;

[[nodiscard]] constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63);
}
[[nodiscard]] constexpr std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1U) ^ (~(value & 1U) + 1U));
}

/// Writes at most kMaxVarintBytes bytes; returns the place after the last one.
inline std::uint8_t* write_varint(std::uint8_t* place, std::uint64_t value) {
  while (value >= 0x80) {
    *place++ = static_cast<std::uint8_t>(value | 0x80U);
    value >>= 7U;
  }
  *place++ = static_cast<std::uint8_t>(value);
  return place;
}

/// Reads values of more than eight bytes. Returns nullptr if they exceed 64 bits.
inline const std::uint8_t* read_long_varint(const std::uint8_t* place, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    const std::uint64_t byte = *place++;
    if (shift == 63 && byte > 1) return nullptr;
    value |= (byte & 0x7FU) << shift;
    if (byte < 0x80) return place;
  }
  return nullptr;
}

/// Concatenates the seven low bits of each of eight bytes.
constexpr std::uint64_t squeeze(std::uint64_t word) {
  word = (word & 0x007F007F007F007FU) | ((word & 0x7F007F007F007F00U) >> 1U);
  word = (word & 0x00003FFF00003FFFU) | ((word & 0x3FFF00003FFF0000U) >> 2U);
  return (word & 0x0FFFFFFFU) | ((word & 0x0FFFFFFF00000000U) >> 4U);
}

/// Reads one value; returns the place after it, nullptr if it exceeds 64 bits. Reads up to
/// kVarintPadding bytes, so that the caller must compare the place returned with the end of its
/// data. Up to eight bytes are decoded without a branch on their number, which would be
/// mispredicted: the lengths of kernel gaps vary.
inline const std::uint8_t* read_varint(const std::uint8_t* place, std::uint64_t& value) {
  std::uint64_t word = 0;
  std::memcpy(&word, place, sizeof(word));
  const std::uint64_t stops = ~word & 0x8080808080808080U;
  if (stops == 0) [[unlikely]] return read_long_varint(place, value);
  value = squeeze(word & (stops ^ (stops - 1)));
  return place + (static_cast<unsigned>(std::countr_zero(stops)) / 8 + 1);
}

/// A mask of 64 bytes: bit i is set if byte i is the last of a value.
inline std::uint64_t value_ends(const std::uint8_t* place) {
  std::uint64_t more = 0;
  for (unsigned part = 0; part < 64; part += 16) {
#if defined(__SSE2__)
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(place + part));
    more |= std::uint64_t{static_cast<std::uint32_t>(_mm_movemask_epi8(bytes))} << part;
#else
    for (unsigned i = part; i < part + 16; ++i) {
      more |= static_cast<std::uint64_t>(place[i] >> 7U) << i;
    }
#endif
  }
  return ~more;
}

/// Reads `count` values and hands each to take(i, value); returns the place after the last, nullptr
/// if there are fewer before `end` or one exceeds 64 bits. kVarintPadding bytes follow `end`.
///
/// A value's start depends on the previous length, so that decoding one at a time is a chain of
/// dependencies. The function breaks the chain: it finds the ends of all values in 64 bytes at
/// once.
inline const std::uint8_t* read_varints(const std::uint8_t* place, const std::uint8_t* end,
                                        std::size_t count, auto take) {
  std::size_t i = 0;
  while (i < count && end - place >= 64) {
    const std::uint8_t* const first = place;
    std::uint64_t ends = value_ends(first);
    for (; ends != 0 && i < count; ends &= ends - 1, ++i) {
      const std::uint8_t* const after = first + std::countr_zero(ends) + 1;
      const auto bits = static_cast<unsigned>(after - place) * 8;
      std::uint64_t value = 0;
      if (bits <= 64) [[likely]] {
        std::memcpy(&value, place, sizeof(value));
        value = squeeze(value & (~std::uint64_t{0} >> (64 - bits)));
      } else if (read_long_varint(place, value) == nullptr) {
        return nullptr;
      }
      take(i, value);
      place = after;
    }
    if (place == first) return nullptr;
  }
  for (; i < count; ++i) {
    std::uint64_t value = 0;
    if (place >= end) return nullptr;
    place = read_varint(place, value);
    if (place == nullptr || place > end) return nullptr;
    take(i, value);
  }
  return place;
}

}  // namespace bubblesim::traces::format
