// Reads the fields of one JSON object in memory, in file order, without copying.
//
// Two rules for the end of a string. Strict: at the first quote that no backslash escapes. Repair,
// for names written without escaping: at the first quote after which JSON continues (a comma and a
// key, or a closing bracket), ignoring backslashes.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "traces/import/json_scan.hpp"

namespace bubblesim::traces {

enum class StringRule { kStrict, kRepair };

enum class JsonTextKind : std::uint8_t { kNothing, kString, kScalar, kArray, kObject };

/// A value as written in the text. A string has neither quotes nor resolved escapes.
struct JsonValue {
  JsonTextKind kind = JsonTextKind::kNothing;
  std::string_view text;
};

/// Iterates over `"key": value` pairs of an object that starts at `text[0]`.
class FieldReader {
 public:
  FieldReader(std::string_view text, StringRule rule) : text_(text), rule_(rule) {}

  /// The next field; false after the last one or at damage.
  [[nodiscard]] bool next(std::string_view& key, JsonValue& value);
  /// Whether one of the first kKeysKept keys occurred twice.
  [[nodiscard]] bool repeats() const { return repeats_; }
  /// True if the object was read to its closing bracket without damage.
  [[nodiscard]] bool complete() const { return complete_; }
  /// Bytes of `text` read so far; the object's length once complete.
  [[nodiscard]] std::size_t consumed() const { return at_; }

 private:
  static constexpr std::size_t kKeysKept = 32;

  void note(std::string_view key);
  [[nodiscard]] bool read_string(std::string_view& out, char container);
  [[nodiscard]] bool read_value(JsonValue& value);
  [[nodiscard]] bool skip_nested();
  void skip_space();

  std::string_view text_;
  StringRule rule_;
  std::size_t at_ = 0;
  bool started_ = false;
  bool complete_ = false;
  bool repeats_ = false;
  std::uint64_t hashes_ = 0;  ///< a bit by the hash of each key so far: most keys need no
                              ///< comparison
  std::size_t kept_ = 0;
  std::array<std::string_view, kKeysKept> keys_;
};

/// Passes the fields of an object to visit(key, value), in file order; returns the spent reader.
template <class Visit>
FieldReader each_field(std::string_view object, Visit visit,
                       StringRule rule = StringRule::kStrict) {
  FieldReader fields(object, rule);
  std::string_view key;
  JsonValue value;
  while (fields.next(key, value)) visit(key, value);
  return fields;
}

/// The text with JSON escapes resolved; a wrong escape is kept as it is.
[[nodiscard]] std::string unescape(std::string_view raw);

/// Numbers, whether written bare or as a string; decimal, or "0x..." for unsigned ones.
[[nodiscard]] std::optional<std::uint64_t> to_unsigned(const JsonValue& value);
[[nodiscard]] std::optional<std::int64_t> to_signed(const JsonValue& value);

/// Passes the numbers of a list to `take`: "[8, 1, 1]", an array or the text of one, with any JSON
/// white space. False: `take` returned false, or the text is not such a list ("[0, 1, ...]").
template <class Take>
[[nodiscard]] bool for_each_in_list(std::string_view text, Take take) {
  const auto next = [&text] {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    return text.empty() ? '\0' : text.front();
  };
  if (next() != '[') return false;
  text.remove_prefix(1);
  if (next() == ']') return true;
  while (next() != '\0') {
    std::uint32_t number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || !take(number)) return false;
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    const char end = next();
    if (end == ']') return true;
    if (end != ',') return false;
    text.remove_prefix(1);
  }
  return false;
}

/// A decimal number of microseconds as nanoseconds, digit by digit (no floating point).
struct Nanoseconds {
  std::int64_t value = 0;
  bool rounded = false;      ///< digits below 1 ns were rounded half up
  bool has_fraction = false;
};
/// Nothing for NaN, words, and magnitudes of 2^61 ns (73 years) and more.
[[nodiscard]] std::optional<Nanoseconds> microseconds_to_ns(std::string_view digits);

}  // namespace bubblesim::traces
