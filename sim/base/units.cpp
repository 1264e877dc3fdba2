#include "sim/base/units.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <span>

#include "sim/base/nearest.hpp"

namespace bubblesim {
namespace {

__extension__ using Wide = unsigned __int128;

struct Unit {
  std::string_view name;
  std::uint64_t scale;  // in ns, bytes or bytes a second
};

// What a kind of quantity is called, an example of it, and its units.
struct Kind {
  std::string_view name;
  std::string_view example;
  std::string_view base;  // the plural of what must be whole
  std::span<const Unit> units;
};

constexpr std::uint64_t kKibi = 1024;

constexpr std::array kDurationUnits{
    Unit{"ns", 1},
    Unit{"us", 1000},
    Unit{"ms", 1000000},
    Unit{"s", 1000000000},
    Unit{"min", 60000000000},
    Unit{"h", 3600000000000},
};
constexpr std::array kByteUnits{
    Unit{"B", 1},
    Unit{"kB", 1000},
    Unit{"MB", 1000000},
    Unit{"GB", 1000000000},
    Unit{"TB", 1000000000000},
    Unit{"KiB", kKibi},
    Unit{"MiB", kKibi* kKibi},
    Unit{"GiB", kKibi* kKibi* kKibi},
    Unit{"TiB", kKibi* kKibi* kKibi* kKibi},
};
constexpr std::array kRateUnits{
    Unit{"B/s", 1},
    Unit{"kB/s", 1000},
    Unit{"MB/s", 1000000},
    Unit{"GB/s", 1000000000},
    Unit{"TB/s", 1000000000000},
    Unit{"KiB/s", kKibi},
    Unit{"MiB/s", kKibi* kKibi},
    Unit{"GiB/s", kKibi* kKibi* kKibi},
    Unit{"TiB/s", kKibi* kKibi* kKibi* kKibi},
    Unit{"Mbit/s", 1000000 / 8},
    Unit{"Gbit/s", 1000000000 / 8},
};

constexpr Kind kDuration{"a duration", "1.024ms", "nanoseconds", kDurationUnits};
constexpr Kind kBytes{"a number of bytes", "40GiB", "bytes", kByteUnits};
constexpr Kind kRate{"a rate", "900GB/s", "bytes a second", kRateUnits};

std::vector<std::string_view> names_of(const Kind& kind) {
  std::vector<std::string_view> names;
  for (const Unit& unit : kind.units) names.push_back(unit.name);
  return names;
}

tl::unexpected<Error> refuse(const Kind& kind, std::string_view text, std::string_view why) {
  return fail("found " + quote_found(text) + ": " + std::string(why) + "; expected " +
              std::string(kind.name) + " such as \"" + std::string(kind.example) +
              "\" (units: " + list_names(names_of(kind)) + ")");
}

// "12.50ms": digits "12", fraction "5" (no zeros at its end), number "12.50", unit of "ms".
struct Parts {
  std::string_view digits;
  std::string_view fraction;
  std::string_view number;
  Unit unit;
};

std::size_t skip_digits(std::string_view text, std::size_t from) {
  while (from < text.size() && text[from] >= '0' && text[from] <= '9') ++from;
  return from;
}

Result<Parts> split(const Kind& kind, std::string_view text) {
  if (text.starts_with('-')) return refuse(kind, text, "it is negative");
  const std::size_t point = skip_digits(text, 0);
  if (point == 0) return refuse(kind, text, "it does not start with a digit");
  Parts parts{text.substr(0, point), {}, text.substr(0, point), {}};
  if (point < text.size() && text[point] == '.') {
    const std::size_t end = skip_digits(text, point + 1);
    if (end == point + 1) return refuse(kind, text, "no digit follows the point");
    parts.fraction = text.substr(point + 1, end - point - 1);
    parts.number = text.substr(0, end);
    while (parts.fraction.ends_with('0')) parts.fraction.remove_suffix(1);
  }
  const std::string_view unit = text.substr(parts.number.size());
  if (unit.empty()) return refuse(kind, text, "it has no unit");
  for (const Unit& known : kind.units) {
    if (known.name == unit) {
      parts.unit = known;
      return parts;
    }
  }
  return refuse(kind, text, quote_found(unit) + " is not a unit of it");
}

enum class Whole : std::uint8_t { kYes, kNotWhole, kTooLarge };

// The value in base units: (digits + fraction / 10^k) * scale. At most 18 digits of fraction
// count: 10^18 * 2^40 fits into 128 bits, and a whole value needs no more in practice.
Whole scaled(const Parts& parts, std::uint64_t limit, std::uint64_t& out) {
  constexpr std::size_t kMaxFraction = 18;
  Wide value = 0;
  for (const char digit : parts.digits) {
    value = value * 10 + static_cast<unsigned>(digit - '0');
    if (value > limit) return Whole::kTooLarge;
  }
  value *= parts.unit.scale;
  if (parts.fraction.size() > kMaxFraction) return Whole::kNotWhole;
  Wide fraction = 0;
  Wide power = 1;
  for (const char digit : parts.fraction) {
    fraction = fraction * 10 + static_cast<unsigned>(digit - '0');
    power *= 10;
  }
  fraction *= parts.unit.scale;
  if (fraction % power != 0) return Whole::kNotWhole;
  value += fraction / power;
  if (value > limit) return Whole::kTooLarge;
  out = static_cast<std::uint64_t>(value);
  return Whole::kYes;
}

Result<std::uint64_t> parse_whole(const Kind& kind, std::string_view text, std::uint64_t limit) {
  BUBBLESIM_ASSIGN_OR_RETURN(const Parts parts, split(kind, text));
  std::uint64_t value = 0;
  switch (scaled(parts, limit, value)) {
    case Whole::kYes: break;
    case Whole::kNotWhole:
      return refuse(kind, text, "it is not a whole number of " + std::string(kind.base));
    case Whole::kTooLarge: return refuse(kind, text, "it is too large");
  }
  return value;
}

// value / scale in decimal digits, exact; empty if that takes more than `places` of fraction.
std::string decimal(std::uint64_t value, std::uint64_t scale, int places) {
  std::string out = std::to_string(value / scale);
  Wide rest = value % scale;
  if (rest != 0) out += '.';
  for (; rest != 0 && places > 0; --places) {
    rest *= 10;
    out += static_cast<char>('0' + static_cast<int>(rest / scale));
    rest %= scale;
  }
  return rest == 0 ? out : std::string();
}

std::string fixed(double value) {
  std::array<char, 400> buffer;  // the longest double has 309 digits before its point
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::fixed);
  return std::string(buffer.data(), end.ptr);
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  constexpr auto kLimit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  BUBBLESIM_ASSIGN_OR_RETURN(const std::uint64_t ns, parse_whole(kDuration, text, kLimit));
  return Duration{static_cast<std::int64_t>(ns)};
}

Result<Bytes> parse_bytes(std::string_view text) {
  constexpr auto kLimit = std::numeric_limits<std::uint64_t>::max();
  BUBBLESIM_ASSIGN_OR_RETURN(const std::uint64_t bytes, parse_whole(kBytes, text, kLimit));
  return Bytes{bytes};
}

Result<BytesPerSecond> parse_rate(std::string_view text) {
  BUBBLESIM_ASSIGN_OR_RETURN(const Parts parts, split(kRate, text));
  std::uint64_t whole = 0;
  if (scaled(parts, std::numeric_limits<std::uint64_t>::max(), whole) == Whole::kYes) {
    return BytesPerSecond{static_cast<double>(whole)};
  }
  double number = 0;
  const char* const end = parts.number.data() + parts.number.size();
  const auto [stop, code] = std::from_chars(parts.number.data(), end, number,
                                            std::chars_format::fixed);
  const double rate = number * static_cast<double>(parts.unit.scale);
  if (code != std::errc{} || stop != end || rate > std::numeric_limits<double>::max()) {
    return refuse(kRate, text, "it is not representable");
  }
  return BytesPerSecond{rate};
}

std::vector<std::string_view> duration_units() { return names_of(kDuration); }
std::vector<std::string_view> byte_units() { return names_of(kBytes); }
std::vector<std::string_view> rate_units() { return names_of(kRate); }

std::string format_duration(Duration span) {
  const bool negative = span < Duration::zero();
  const auto bits = static_cast<std::uint64_t>(span.count());
  const std::uint64_t ns = negative ? 0 - bits : bits;
  Unit unit = kDurationUnits[0];
  for (const Unit& larger : std::span(kDurationUnits).first(4)) {
    if (ns >= larger.scale) unit = larger;
  }
  return (negative ? "-" : "") + decimal(ns, unit.scale, 9) + std::string(unit.name);
}

std::string format_bytes(Bytes bytes) {
  std::string best = std::to_string(bytes.value) + "B";
  for (const Unit& unit : kByteUnits) {
    const std::string number = decimal(bytes.value, unit.scale, 3);
    if (!number.empty() && number.size() + unit.name.size() < best.size()) {
      best = number + std::string(unit.name);
    }
  }
  return best;
}

std::string format_rate(BytesPerSecond rate) {
  for (std::size_t i = 5; i-- > 1;) {
    const Unit& unit = kRateUnits[i];
    const auto scale = static_cast<double>(unit.scale);
    if (rate.value < scale) continue;
    const std::string text = fixed(rate.value / scale) + std::string(unit.name);
    if (parse_rate(text) == rate) return text;
  }
  return fixed(rate.value) + "B/s";
}

}  // namespace bubblesim
