#include "sim/workload/arrivals/decimal.hpp"

#include <charconv>
#include <cstdint>
#include <optional>

#include "sim/base/nearest.hpp"

namespace bubblesim::workload {
namespace {

constexpr std::int64_t kLongest = std::int64_t{100} * 365 * 24 * 3600 * 1'000'000'000;
constexpr int kExponentLimit = 10'000;  ///< beyond it the value is zero or out of range anyway

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// The digits at the front of `text`, which loses them.
std::string_view take_digits(std::string_view& text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

/// "e-05" at the front of `text`; 0 if there is none, nothing if it has no digits.
std::optional<int> take_exponent(std::string_view& text) {
  if (text.empty() || (text[0] != 'e' && text[0] != 'E')) return 0;
  text.remove_prefix(1);
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  const std::string_view digits = take_digits(text);
  if (digits.empty()) return std::nullopt;
  int value = 0;
  for (const char digit : digits) {
    if (value < kExponentLimit) value = value * 10 + (digit - '0');
  }
  return negative ? -value : value;
}

/// `digits` times 10^shift as a whole number, cut off towards zero; nothing if it is too large.
std::optional<std::int64_t> shifted(std::string digits, std::int64_t shift) {
  digits.erase(0, digits.find_first_not_of('0'));
  if (digits.empty()) return 0;
  const std::int64_t length = static_cast<std::int64_t>(digits.size()) + shift;
  if (length <= 0) return 0;
  if (length > 19) return std::nullopt;
  digits.resize(static_cast<std::size_t>(length), '0');
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || value > kLongest) return std::nullopt;
  return value;
}

}  // namespace

ParsedDecimal<Duration> parse_decimal(std::string_view text, int unit_digits) {
  const auto refuse = [whole = text](const char* why) {
    return tl::make_unexpected("found " + quote_found(whole) + ", " + why +
                               "; expected a decimal number that is not negative");
  };
  const std::string_view whole = take_digits(text);
  if (whole.empty()) return refuse("which does not begin with a digit");
  std::string_view fraction;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    fraction = take_digits(text);
  }
  const auto exponent = take_exponent(text);
  if (!exponent) return refuse("which has an exponent without digits");
  if (!text.empty()) return refuse("which has more behind the number");
  const std::int64_t shift =
      unit_digits + *exponent - static_cast<std::int64_t>(fraction.size());
  const auto value = shifted(std::string(whole) + std::string(fraction), shift);
  if (!value) return refuse("which is more than 100 years");
  return Duration{*value};
}

}  // namespace bubblesim::workload
