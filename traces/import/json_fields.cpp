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

}  // namespace bubblesim::traces
