#include "traces/import/json_scan.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
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
  std::uint64_t odd = 0;  ///< damage, where a string does not hold it; perhaps other bytes as well
};

#if defined(__SSE2__)

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

#else

BlockBits classify(const char* text) {
  BlockBits out;
  for (unsigned i = 0; i < kBlock; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    const JsonByte meaning = kJsonBytes[static_cast<unsigned char>(text[i])];
    if (meaning == JsonByte::kQuote) out.quotes |= bit;
    if (meaning == JsonByte::kOpen || meaning == JsonByte::kClose) out.brackets |= bit;
    if (meaning == JsonByte::kBad) out.odd |= bit;
    if (text[i] == '\\') out.slashes |= bit;
  }
  return out;
}

#endif

/// Bit i is the parity of bits 0 to i: set from an opening quote to before the closing one.
std::uint64_t running_parity(std::uint64_t word) {
  for (unsigned step = 1; step < kBlock; step *= 2) word ^= word << step;
  return word;
}

/// Which of 64 bytes are strings or escaped, block after block.
class StringTracker {
 public:
  /// Bytes of strings, the opening quote included, the closing one not. Takes the quotes that
  /// backslashes escape out of `block`.
  std::uint64_t inside(BlockBits& block) {
    block.quotes &= ~escaped(block.slashes);
    const std::uint64_t inside =
        running_parity(block.quotes) ^ (in_string_ ? ~std::uint64_t{0} : 0);
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

/// Finds the end of a value, block by block and across refills of the window: all state is offsets
/// from its start.
class Matcher {
 public:
  /// `text`: what there is of the value, which was shorter in the call before. Nothing: it goes on.
  std::optional<Scan> run(std::string_view text) {
    if (text.empty()) return std::nullopt;
    const JsonByte first = kJsonBytes[static_cast<unsigned char>(text.front())];
    if (first != JsonByte::kQuote && first != JsonByte::kOpen) return run_word(text);
    const bool is_string = first == JsonByte::kQuote;
    for (; text.size() - at_ >= kBlock; at_ += kBlock) {
      if (const auto found = take(text.data() + at_, is_string)) return found;
    }
    char last[kBlock];
    std::memset(last, ' ', kBlock);
    std::memcpy(last, text.data() + at_, text.size() - at_);
    return Matcher(*this).take(last, is_string);  // a copy: other bytes may come for the spaces
  }

 private:
  /// A number or a word; also what begins with a separator, which is none.
  std::optional<Scan> run_word(std::string_view text) {
    for (; at_ < text.size(); ++at_) {
      switch (kJsonBytes[static_cast<unsigned char>(text[at_])]) {
        case JsonByte::kPlain: continue;
        case JsonByte::kSpace:
        case JsonByte::kComma:
          if (at_ == 0) continue;
          [[fallthrough]];
        case JsonByte::kClose: return Scan{ScanStatus::kComplete, at_};
        default: return Scan{ScanStatus::kDamaged, at_};
      }
    }
    return std::nullopt;
  }

  std::optional<Scan> take(const char* block, bool is_string) {
    BlockBits found = classify(block);
    const std::uint64_t inside = strings_.inside(found);
    const auto end = [this](std::uint64_t mask) {
      return at_ + static_cast<unsigned>(std::countr_zero(mask));
    };
    if (is_string) {
      const std::uint64_t closing = found.quotes & ~inside;
      if (closing == 0) return std::nullopt;
      return Scan{ScanStatus::kComplete, end(closing) + 1};
    }
    std::uint64_t wanted = (found.brackets | found.odd) & ~inside;
    for (; wanted != 0; wanted &= wanted - 1) {
      if (!take(block[end(wanted) - at_])) return Scan{ScanStatus::kDamaged, end(wanted)};
      if (depth_ == 0) return Scan{ScanStatus::kComplete, end(wanted) + 1};
    }
    return std::nullopt;
  }

  /// A byte outside strings; false: damage.
  bool take(char c) {
    const JsonByte meaning = kJsonBytes[static_cast<unsigned char>(c)];
    if (meaning == JsonByte::kOpen) {
      if (depth_ >= kMaxDepth) return false;
      open_ = (open_ << 1U) | (c == '{' ? 1U : 0U);
      ++depth_;
    } else if (meaning == JsonByte::kClose) {
      if ((open_ & 1U) != (c == '}' ? 1U : 0U)) return false;
      open_ >>= 1U;
      --depth_;
    }
    return meaning != JsonByte::kBad;
  }

  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::uint64_t open_ = 0;  ///< one bit a level, lowest is innermost: 1 object, 0 array
  StringTracker strings_;
};

enum class Fit { kYes, kNo, kMoreText };

/// Whether `"key" :` starts at `text[at]`, after white space.
Fit key_at(std::string_view text, std::size_t at, std::string_view key) {
  while (at < text.size() && is_space(text[at])) ++at;
  const std::string_view have = text.substr(std::min(at, text.size()), key.size() + 2);
  for (std::size_t i = 0; i < have.size(); ++i) {
    const char want = i == 0 || i == key.size() + 1 ? '"' : key[i - 1];
    if (have[i] != want) return Fit::kNo;
  }
  if (have.size() < key.size() + 2) return Fit::kMoreText;
  at += key.size() + 2;
  while (at < text.size() && is_space(text[at])) ++at;
  if (at >= text.size()) return Fit::kMoreText;
  return text[at] == ':' ? Fit::kYes : Fit::kNo;
}

bool follows_separator(std::string_view text, std::size_t brace) {
  while (brace > 0 && is_space(text[brace - 1])) --brace;
  return brace > 0 && (text[brace - 1] == ',' || text[brace - 1] == '[');
}

Fit event_at(std::string_view text, std::size_t brace) {
  Fit fit = key_at(text, brace + 1, "ph");
  if (fit != Fit::kNo) return fit;
  if (!follows_separator(text, brace)) return Fit::kNo;
  for (const std::string_view key : {"name", "cat", "pid", "tid", "ts", "dur", "args", "id"}) {
    fit = key_at(text, brace + 1, key);
    if (fit != Fit::kNo) return fit;
  }
  return Fit::kNo;
}

}  // namespace

Scan scan_value(TextWindow& window) {
  Matcher matcher;
  while (true) {
    if (const auto found = matcher.run(window.text())) return *found;
    if (window.more()) continue;
    const std::size_t length = window.text().size();
    return {window.at_end() ? ScanStatus::kTruncated : ScanStatus::kDamaged, length};
  }
}

std::size_t match_brackets(std::string_view text) {
  const Scan scan = Matcher().run(text).value_or(Scan{});
  return scan.status == ScanStatus::kComplete ? scan.length : 0;
}

bool skip_space(TextWindow& window) {
  while (true) {
    const std::string_view text = window.text();
    std::size_t at = 0;
    while (at < text.size() && is_space(text[at])) ++at;
    const bool found = at < text.size();
    window.advance(at);
    if (found) return true;
    if (!window.more()) return false;
  }
}

std::optional<std::size_t> find_event_start(TextWindow& window, std::size_t from) {
  while (true) {
    const std::string_view text = window.text();
    const std::size_t brace = text.find('{', std::min(from, text.size()));
    if (brace == std::string_view::npos) {
      from = text.size();
      if (!window.more()) return std::nullopt;
      continue;
    }
    const Fit fit = event_at(text, brace);
    if (fit == Fit::kYes) return brace;
    from = brace;
    if (fit == Fit::kNo) ++from;
    else if (!window.more()) return std::nullopt;
  }
}

std::optional<std::size_t> find_events_array(TextWindow& window, std::size_t from) {
  constexpr std::string_view kKey = "\"traceEvents\"";
  std::size_t at = 0;  // up to here there are but spaces behind the key
  while (true) {
    const std::string_view text = window.text();
    const std::size_t key = text.find(kKey, std::min(from, text.size()));
    if (key == std::string_view::npos) {
      from = text.size() > kKey.size() ? std::max(from, text.size() - kKey.size()) : from;
      if (!window.more()) return std::nullopt;
      continue;
    }
    at = std::max(at, key + kKey.size());
    while (at < text.size() && (is_space(text[at]) || text[at] == ':')) ++at;
    if (at >= text.size()) {
      if (!window.more()) return std::nullopt;
      continue;
    }
    if (text[at] == '[') return at + 1;
    from = at;
  }
}

}  // namespace bubblesim::traces
