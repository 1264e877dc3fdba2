// Numbers of JSON texts, exact: counts, and microseconds as nanoseconds.
#include <algorithm>
#include <charconv>

#include "traces/import/json_fields.hpp"

namespace bubblesim::traces {

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
