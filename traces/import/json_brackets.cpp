#include "traces/import/json_scan.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>

#include <bit>
#include <cstring>

namespace bubblesim::traces {
namespace {

constexpr std::size_t kBlock = 64;

/// A bit for each of 64 bytes, the first lowest.
struct BlockBits {
  std::uint64_t quotes = 0;
  std::uint64_t slashes = 0;
  std::uint64_t brackets = 0;
  std::uint64_t odd = 0;  ///< not quote, bracket, digit, sign, point, comma, colon, space, newline
};

__m128i equal(__m128i bytes, char c) { return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c)); }

std::uint64_t bits(__m128i bytes) { return static_cast<std::uint32_t>(_mm_movemask_epi8(bytes)); }

BlockBits classify(const char* text) {
  BlockBits out;
  for (unsigned part = 0; part < kBlock; part += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + part));
    // Bit 5 is all that tells a square bracket from a curly one.
    const __m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
    const __m128i brackets = _mm_or_si128(equal(folded, '{'), equal(folded, '}'));
    const __m128i quotes = equal(bytes, '"');
    // '+' to ':' are + , - . / digits and the colon; the slash among them is damage.
    const __m128i from_plus = _mm_sub_epi8(bytes, _mm_set1_epi8('+'));
    const __m128i in_range =
        _mm_cmpeq_epi8(_mm_min_epu8(from_plus, _mm_set1_epi8(':' - '+')), from_plus);
    const __m128i usual =
        _mm_or_si128(_mm_or_si128(_mm_andnot_si128(equal(bytes, '/'), in_range), brackets),
                     _mm_or_si128(_mm_or_si128(equal(bytes, ' '), equal(bytes, '\n')), quotes));
    out.quotes |= bits(quotes) << part;
    out.slashes |= bits(equal(bytes, '\\')) << part;
    out.brackets |= bits(brackets) << part;
    out.odd |= (bits(usual) ^ 0xFFFFU) << part;
  }
  return out;
}

/// Bit i is the parity of bits 0 to i: set from an opening quote to before the closing one.
std::uint64_t running_parity(std::uint64_t word) {
  for (unsigned step = 1; step < kBlock; step *= 2) word ^= word << step;
  return word;
}

/// Which of 64 bytes are strings or escaped, block after block.
class StringTracker {
 public:
  /// Bytes of strings, the opening quote included, the closing one not.
  std::uint64_t inside(const BlockBits& block) {
    const std::uint64_t quotes = block.quotes & ~escaped(block.slashes);
    const std::uint64_t inside = running_parity(quotes) ^ (in_string_ ? ~std::uint64_t{0} : 0);
    in_string_ = inside >> 63U != 0;
    return inside;
  }

 private:
  /// Bytes behind an odd run of backslashes. Runs are rare: one by one.
  std::uint64_t escaped(std::uint64_t slashes) {
    std::uint64_t out = escape_next_ ? 1 : 0;
    slashes &= ~out;
    escape_next_ = false;
    while (slashes != 0) {
      const auto at = static_cast<unsigned>(std::countr_zero(slashes));
      if (at == 63) {
        escape_next_ = true;
        break;
      }
      out |= std::uint64_t{2} << at;
      slashes &= ~(std::uint64_t{3} << at);
    }
    return out;
  }

  bool in_string_ = false;
  bool escape_next_ = false;
};

enum class Match { kOpen, kDone, kUnsettled };

/// Brackets that are open, and what a further byte outside strings makes of them.
class BracketStack {
 public:
  Match take(char c) {
    const JsonByte meaning = kJsonBytes[static_cast<unsigned char>(c)];
    if (meaning == JsonByte::kOpen) {
      if (depth_ >= kMaxDepth) return Match::kUnsettled;
      open_ = (open_ << 1U) | (c == '{' ? 1U : 0U);
      ++depth_;
    } else if (meaning == JsonByte::kClose) {
      if ((open_ & 1U) != (c == '}' ? 1U : 0U)) return Match::kUnsettled;
      open_ >>= 1U;
      if (--depth_ == 0) return Match::kDone;
    } else if (meaning == JsonByte::kBad) {
      return Match::kUnsettled;
    }
    return Match::kOpen;
  }

 private:
  std::uint64_t open_ = 0;  ///< one bit a level, lowest is innermost: 1 object, 0 array
  std::size_t depth_ = 0;
};

}  // namespace

std::size_t match_brackets(std::string_view text) {
  StringTracker strings;
  BracketStack stack;
  char last[kBlock];
  for (std::size_t start = 0; start < text.size(); start += kBlock) {
    const char* block = text.data() + start;
    if (text.size() - start < kBlock) {
      std::memset(last, ' ', kBlock);
      std::memcpy(last, block, text.size() - start);
      block = last;
    }
    const BlockBits found = classify(block);
    std::uint64_t wanted = (found.brackets | found.odd) & ~strings.inside(found);
    for (; wanted != 0; wanted &= wanted - 1) {
      const auto at = static_cast<unsigned>(std::countr_zero(wanted));
      const Match match = stack.take(block[at]);
      if (match == Match::kDone) return start + at + 1;
      if (match == Match::kUnsettled) return 0;
    }
  }
  return 0;
}

}  // namespace bubblesim::traces

#else

namespace bubblesim::traces {

std::size_t match_brackets(std::string_view) { return 0; }

}  // namespace bubblesim::traces

#endif
