#include "traces/import/json_fields.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/base/utf8.hpp"

namespace bubblesim::traces {
namespace {

/// A key is short and plain; anything else after a comma is text inside a name.
constexpr std::size_t kLongestKey = 64;

std::size_t past_space(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

bool key_follows(std::string_view text, std::size_t at) {
  if (at >= text.size() || text[at] != '"') return false;
  const std::size_t limit = std::min(text.size(), at + 1 + kLongestKey);
  std::size_t end = at + 1;
  while (end < limit && text[end] != '"' && text[end] != '\\' && text[end] != ',') ++end;
  if (end >= limit || text[end] != '"') return false;
  end = past_space(text, end + 1);
  return end < text.size() && text[end] == ':';
}

/// Whether JSON goes on after a quote at `quote`. `container`: ':' after a key, '{' for a value
/// in an object, '[' for an element.
bool json_continues(std::string_view text, std::size_t quote, char container) {
  const std::size_t next = past_space(text, quote + 1);
  if (next >= text.size()) return false;
  if (container == ':') return text[next] == ':';
  const char close = container == '{' ? '}' : ']';
  if (text[next] == close) {
    const std::size_t after = past_space(text, next + 1);
    return after >= text.size() || text[after] == ',' || text[after] == '}' || text[after] == ']';
  }
  if (text[next] != ',') return false;
  const std::size_t after = past_space(text, next + 1);
  if (container == '{') return key_follows(text, after);
  return after < text.size() && std::strchr("\"{[-0123456789tfnN", text[after]) != nullptr;
}

/// The first quote at or after `at` <= text.size(). Keys and values are short: a call of memchr for
/// each would take a sixth of an import.
std::size_t find_quote(std::string_view text, std::size_t at) {
#if defined(__SSE2__)
  for (; text.size() - at >= 16; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
    const int quotes = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')));
    if (quotes != 0) return at + std::countr_zero(static_cast<unsigned>(quotes));
  }
#endif
  return text.find('"', at);
}

std::size_t strict_end(std::string_view text, std::size_t from) {
  std::size_t at = from;
  while (true) {
    at = find_quote(text, at);
    if (at == std::string_view::npos) return at;
    std::size_t slashes = 0;
    while (at - slashes > from && text[at - slashes - 1] == '\\') ++slashes;
    if (slashes % 2 == 0) return at;
    ++at;
  }
}

std::size_t repaired_end(std::string_view text, std::size_t from, char container) {
  std::size_t at = text.find('"', from);
  while (at != std::string_view::npos && !json_continues(text, at, container)) {
    at = text.find('"', at + 1);
  }
  return at;
}

JsonByte meaning_of(char c) { return kJsonBytes[static_cast<unsigned char>(c)]; }

/// Past the number or word at `at`; nothing if a quote stands in it.
std::optional<std::size_t> scalar_end(std::string_view text, std::size_t at) {
  for (; at < text.size(); ++at) {
    const JsonByte meaning = meaning_of(text[at]);
    if (meaning == JsonByte::kPlain) [[likely]] continue;
    if (meaning == JsonByte::kQuote) return std::nullopt;
    if (meaning != JsonByte::kOpen && meaning != JsonByte::kBad) break;
  }
  return at;
}

std::optional<std::uint32_t> four_hex(std::string_view raw, std::size_t at) {
  if (at + 4 > raw.size()) return std::nullopt;
  std::uint32_t code = 0;
  const auto [end, error] = std::from_chars(raw.data() + at, raw.data() + at + 4, code, 16);
  if (error != std::errc{} || end != raw.data() + at + 4) return std::nullopt;
  return code;
}

/// Appends the character of a \u escape whose digits start at `at`; returns digits consumed.
std::size_t append_unicode(std::string& out, std::string_view raw, std::size_t at) {
  const auto high = four_hex(raw, at);
  if (!high) {
    out += "\\u";
    return 0;
  }
  if (*high >= 0xd800 && *high < 0xdc00 && raw.substr(at + 4, 2) == "\\u") {
    const auto low = four_hex(raw, at + 6);
    if (low && *low >= 0xdc00 && *low < 0xe000) {
      append_character(out, 0x10000 + ((*high - 0xd800) << 10U) + (*low - 0xdc00));
      return 10;
    }
  }
  append_character(out, *high);  // U+FFFD for half of a pair
  return 4;
}

}  // namespace

void FieldReader::skip_space() { at_ = past_space(text_, at_); }

bool FieldReader::next(std::string_view& key, JsonValue& value) {
  if (complete_) return false;
  skip_space();
  if (at_ >= text_.size()) return false;
  if (!started_) {
    if (text_[at_] != '{') return false;
    started_ = true;
    ++at_;
    skip_space();
  } else if (text_[at_] == ',') {
    ++at_;
    skip_space();
  } else if (text_[at_] != '}') {
    return false;
  }
  if (at_ >= text_.size()) return false;
  if (text_[at_] == '}') {
    ++at_;
    complete_ = true;
    return false;
  }
  if (!read_string(key, ':')) return false;
  note(key);
  skip_space();
  if (at_ >= text_.size() || text_[at_] != ':') return false;
  ++at_;
  skip_space();
  return read_value(value);
}

void FieldReader::note(std::string_view key) {
  const auto at = [key](std::size_t i) { return std::size_t{static_cast<unsigned char>(key[i])}; };
  const std::size_t hash = key.empty() ? 0 : 31 * key.size() + 7 * at(0) + at(key.size() - 1);
  const std::uint64_t bit = std::uint64_t{1} << (hash % 64);
  if ((hashes_ & bit) != 0) {
    const auto end = keys_.begin() + static_cast<std::ptrdiff_t>(kept_);
    repeats_ = repeats_ || std::find(keys_.begin(), end, key) != end;
  }
  hashes_ |= bit;
  if (kept_ < kKeysKept) keys_[kept_++] = key;
}

bool FieldReader::read_string(std::string_view& out, char container) {
  if (at_ >= text_.size() || text_[at_] != '"') return false;
  const std::size_t from = at_ + 1;
  const bool strict = rule_ == StringRule::kStrict || container == ':';
  const std::size_t end = strict ? strict_end(text_, from) : repaired_end(text_, from, container);
  if (end == std::string_view::npos) return false;
  out = text_.substr(from, end - from);
  at_ = end + 1;
  return true;
}

bool FieldReader::read_value(JsonValue& value) {
  if (at_ >= text_.size()) return false;
  const std::size_t from = at_;
  const char first = text_[at_];
  if (first == '"') {
    value.kind = JsonTextKind::kString;
    return read_string(value.text, '{');
  }
  if (first == '{' || first == '[') {
    value.kind = first == '{' ? JsonTextKind::kObject : JsonTextKind::kArray;
    if (!skip_nested()) return false;
  } else {
    value.kind = JsonTextKind::kScalar;
    const auto end = scalar_end(text_, from);
    if (!end || *end == from) return false;
    at_ = *end;
  }
  value.text = text_.substr(from, at_ - from);
  return true;
}

bool FieldReader::skip_nested() {
  const std::size_t length =
      rule_ == StringRule::kStrict ? match_brackets(text_.substr(at_)) : 0;
  if (length > 0) {
    at_ += length;
    return true;
  }
  char open[kMaxDepth];
  std::size_t depth = 0;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '"') {
      std::string_view ignored;
      const bool is_key = open[depth - 1] == '{' && text_[at_ - 1] != ':' &&
                          key_follows(text_, at_);
      if (!read_string(ignored, is_key ? ':' : open[depth - 1])) return false;
      continue;
    }
    ++at_;
    if (c == '{' || c == '[') {
      if (depth == kMaxDepth) return false;
      open[depth++] = c;
    } else if (c == '}' || c == ']') {
      if (depth == 0 || open[depth - 1] != (c == '}' ? '{' : '[')) return false;
      if (--depth == 0) return true;
    }
  }
  return false;
}

std::string unescape(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 >= raw.size()) {
      out.push_back(raw[i]);
      continue;
    }
    const char escape = raw[++i];
    switch (escape) {
      case '"':
      case '\\':
      case '/': out.push_back(escape); break;
      case 'b': out.push_back('\b'); break;
      case 'f': out.push_back('\f'); break;
      case 'n': out.push_back('\n'); break;
      case 'r': out.push_back('\r'); break;
      case 't': out.push_back('\t'); break;
      case 'u': i += append_unicode(out, raw, i + 1); break;
      default:
        out.push_back('\\');
        out.push_back(escape);
    }
  }
  return out;
}

// Numbers of JSON texts, exact: counts, and microseconds as nanoseconds.

std::optional<std::uint64_t> to_unsigned(const JsonValue& value) {
  if (value.kind != JsonTextKind::kScalar && value.kind != JsonTextKind::kString)
    return std::nullopt;
  std::string_view digits = value.text;
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    digits.remove_prefix(2);
    base = 16;
  }
  std::uint64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number, base);
  if (error != std::errc{}) return std::nullopt;
  if (stop == end) return number;
  // "4.0" from writers that know only floating point; a true fraction is not a count.
  const std::string_view rest(stop, static_cast<std::size_t>(end - stop));
  const bool zeros = rest.starts_with('.') && rest.find_first_not_of('0', 1) == rest.npos;
  return zeros ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> to_signed(const JsonValue& value) {
  JsonValue magnitude = value;
  const bool negative = value.text.starts_with('-');
  if (negative) magnitude.text.remove_prefix(1);
  const auto number = to_unsigned(magnitude);
  if (!number || *number > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  const auto positive = static_cast<std::int64_t>(*number);
  return negative ? -positive : positive;
}

namespace {

constexpr std::int64_t kMaxNs = std::int64_t{1} << 61U;

/// Digits of a decimal number and where its point is: value = digits * 10^exponent.
struct Decimal {
  std::string digits;
  std::int64_t exponent = 0;
  bool negative = false;
};

std::optional<Decimal> split_decimal(std::string_view text) {
  Decimal out;
  if (text.starts_with('-')) out.negative = true;
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t mantissa_end = std::min(text.find_first_of("eE"), text.size());
  bool point = false;
  for (const char c : text.substr(0, mantissa_end)) {
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      out.digits.push_back(c);
      if (point) --out.exponent;
    } else {
      return std::nullopt;
    }
  }
  if (out.digits.empty()) return std::nullopt;
  if (mantissa_end == text.size()) return out;
  std::string_view power = text.substr(mantissa_end + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  int exponent = 0;
  const char* end = power.data() + power.size();
  const auto [stop, error] = std::from_chars(power.data(), end, exponent);
  if (error != std::errc{} || stop != end || exponent > 400 || exponent < -400) {
    return std::nullopt;
  }
  out.exponent += exponent;
  return out;
}

/// The general case: exponents, more than three digits after the point, times out of range.
std::optional<Nanoseconds> slow_microseconds(std::string_view text) {
  const auto decimal = split_decimal(text);
  if (!decimal) return std::nullopt;
  Nanoseconds out;
  out.has_fraction = decimal->exponent < 0;
  // Digits kept are those at or above 10^-3 us.
  const std::int64_t kept = static_cast<std::int64_t>(decimal->digits.size()) +
                            decimal->exponent + 3;
  std::int64_t value = 0;
  for (std::int64_t i = 0; i < kept; ++i) {
    const bool given = i < static_cast<std::int64_t>(decimal->digits.size());
    const int digit = given ? decimal->digits[static_cast<std::size_t>(i)] - '0' : 0;
    if (value > kMaxNs / 10) return std::nullopt;
    value = value * 10 + digit;
    if (value == 0 && !given) break;
  }
  const auto first_dropped = static_cast<std::size_t>(std::max<std::int64_t>(kept, 0));
  if (kept < static_cast<std::int64_t>(decimal->digits.size())) {
    const std::string_view dropped = std::string_view(decimal->digits).substr(first_dropped);
    out.rounded = dropped.find_first_not_of('0') != dropped.npos;
    if (kept >= 0 && dropped.front() >= '5') ++value;
  }
  if (value >= kMaxNs) return std::nullopt;
  out.value = decimal->negative ? -value : value;
  return out;
}

}  // namespace

// Up to 16 digits before the point, as microseconds since 1970 have, fit 64 bits with three more.
std::optional<Nanoseconds> microseconds_to_ns(std::string_view digits) {
  const char* at = digits.data();
  const char* const end = at + digits.size();
  const bool negative = at < end && *at == '-';
  if (negative) ++at;
  const char* const whole = at;
  std::uint64_t value = 0;
  while (at < end && end - whole <= 20 && *at >= '0' && *at <= '9') {
    value = value * 10 + static_cast<std::uint64_t>(*at++ - '0');
  }
  if (at == whole || at - whole > 16) return slow_microseconds(digits);
  Nanoseconds out;
  std::uint64_t scale = 1000;
  if (at < end && *at == '.') {
    out.has_fraction = true;
    ++at;
    while (at < end && scale > 1 && *at >= '0' && *at <= '9') {
      value = value * 10 + static_cast<std::uint64_t>(*at++ - '0');
      scale /= 10;
    }
  }
  value *= scale;
  const bool odd = at != end || digits.back() == '.' || value >= std::uint64_t{kMaxNs};
  if (odd) return slow_microseconds(digits);
  const auto magnitude = static_cast<std::int64_t>(value);
  out.value = negative ? -magnitude : magnitude;
  return out;
}

}  // namespace bubblesim::traces
