#include "sim/sweep/sweep_axes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"
#include "sim/base/random.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::sweep {
namespace {

enum class Unit : std::uint8_t { kInteger, kNumber, kSpan, kSize };

struct Quantity {
  double value = 0;
  Unit unit = Unit::kNumber;
};

/// The ends of an axis.
struct Ends {
  Quantity from;
  Quantity to;
};

constexpr double kLargestQuantity = 9.0e15;  // spans and sizes are exact as doubles up to here

// To 12 significant digits.
double rounded(double value) {
  return parse_number<double>(fmt::format("{:.12g}", value)).value_or(value);
}

std::string text_of(double value, Unit unit) {
  switch (unit) {
    case Unit::kInteger: return std::to_string(std::llround(value));
    case Unit::kSpan: return '"' + format_duration(Duration{std::llround(value)}) + '"';
    case Unit::kSize:
      return '"' + format_bytes(Bytes{static_cast<std::uint64_t>(std::llround(value))}) + '"';
    case Unit::kNumber: break;
  }
  return Json(rounded(value)).dump();
}

std::optional<Quantity> parse_quantity(const Json& value) {
  if (value.is_number_integer()) return Quantity{value.get<double>(), Unit::kInteger};
  if (value.is_number()) return Quantity{value.get<double>(), Unit::kNumber};
  if (!value.is_string()) return std::nullopt;
  const auto text = value.get<std::string>();
  if (const auto span = parse_duration(text)) {
    return Quantity{static_cast<double>(span->count()), Unit::kSpan};
  }
  if (const auto size = parse_bytes(text)) {
    return Quantity{static_cast<double>(size->value), Unit::kSize};
  }
  return std::nullopt;
}

std::optional<Quantity> read_quantity(ObjectReader& reader, std::string_view key) {
  reader.defined_by(key, "quantity");
  if (!reader.present()) return std::nullopt;
  if (!reader.require(key, "\"" + std::string(key) + "\" is missing")) return std::nullopt;
  const std::string found = reader.raw(key);
  const Json value = Json::parse(found, nullptr, false);
  auto quantity = parse_quantity(value);
  if (!quantity || std::abs(quantity->value) > kLargestQuantity) {
    reader.fault(key, "found " +
                          quote_found(value.is_string() ? value.get<std::string>() : found) +
                          "; expected a number up to 9e15, or a span or a size with its unit");
    return std::nullopt;
  }
  return quantity;
}

bool is_plain(Unit unit) { return unit == Unit::kInteger || unit == Unit::kNumber; }

// Whether the second is of the first one's kind; one unit for both if so.
bool share_unit(Quantity& first, Quantity& second) {
  if (is_plain(first.unit) && is_plain(second.unit)) {
    if (first.unit != second.unit) first.unit = second.unit = Unit::kNumber;
    return true;
  }
  return first.unit == second.unit;
}

enum class Scale : std::uint8_t { kLinear, kLogarithmic };

std::optional<Ends> read_ends(ObjectReader& reader, Scale scale) {
  auto from = read_quantity(reader, "from");
  auto to = read_quantity(reader, "to");
  if (!from || !to) return std::nullopt;
  if (!share_unit(*from, *to)) {
    reader.fault("to", "found another unit than that of \"from\"; expected the same");
    return std::nullopt;
  }
  if (from->value > to->value) {
    reader.fault("to", "found less than \"from\"; expected that or more");
    return std::nullopt;
  }
  if (scale == Scale::kLogarithmic && from->value <= 0) {
    reader.fault("from", "a logarithmic range has no zero; expected more than that");
    return std::nullopt;
  }
  return Ends{*from, *to};
}

// At `share` of the way; both ends are exact.
double interpolated(const Ends& ends, double share, Scale scale) {
  const double from = ends.from.value;
  const double to = ends.to.value;
  if (share <= 0) return from;
  if (share >= 1) return to;
  return scale == Scale::kLinear ? from + (to - from) * share
                                 : from * std::pow(to / from, share);
}

// Integers stay integers where whole numbers are asked for, or all values are whole.
std::vector<std::string> texts_of(const std::vector<double>& values, Unit unit, bool integers) {
  const bool whole = std::all_of(values.begin(), values.end(), [](double value) {
    return rounded(value) == std::nearbyint(value);
  });
  if (is_plain(unit)) {
    unit = integers || (unit == Unit::kInteger && whole) ? Unit::kInteger : Unit::kNumber;
  }
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(text_of(value, unit));
  return texts;
}

std::vector<std::string> without_repeats(std::vector<std::string> texts) {
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts;
}

// How many steps fit between the ends; nothing after a fault.
std::optional<std::size_t> read_steps(ObjectReader& reader, Ends& ends, double& step) {
  auto found = read_quantity(reader, "step");
  if (!found) return std::nullopt;
  if (!share_unit(ends.from, *found) || found->value <= 0) {
    reader.fault("step", "expected more than 0, in the unit of \"from\"");
    return std::nullopt;
  }
  step = found->value;
  const double steps = std::floor((ends.to.value - ends.from.value) / step + 1e-9);
  if (steps + 1 > static_cast<double>(kMostValues)) {
    reader.fault("step", "gives more than a million values; expected a larger step");
    return std::nullopt;
  }
  return static_cast<std::size_t>(steps);
}

std::vector<std::string> read_range(ObjectReader reader, Scale scale) {
  auto ends = read_ends(reader, scale);
  const bool integers = reader.flag("integers", false);
  if (scale == Scale::kLinear) reader.one_of({"step", "count"});
  std::vector<double> values;
  Unit unit = ends ? ends->from.unit : Unit::kNumber;
  if (scale == Scale::kLinear && reader.has("step")) {
    double step = 0;
    const auto steps = ends ? read_steps(reader, *ends, step) : std::nullopt;
    if (!steps) return {};
    unit = ends->from.unit;
    for (std::size_t i = 0; i <= *steps; ++i) {
      values.push_back(ends->from.value + static_cast<double>(i) * step);
    }
  } else if (scale == Scale::kLogarithmic || reader.has("count")) {
    const auto count = reader.integer<std::uint64_t>("count", {1, kMostValues});
    for (std::size_t i = 0; ends && i < count; ++i) {
      const double share = count == 1 ? 0 : static_cast<double>(i) / static_cast<double>(count - 1);
      values.push_back(interpolated(*ends, share, scale));
    }
  }
  return without_repeats(texts_of(values, unit, integers));
}

std::vector<std::string> read_values(ObjectReader& axis) {
  axis.defined_by("values", "values");
  const Json list = Json::parse(axis.raw("values"), nullptr, false);
  if (!list.is_array() || list.empty() || list.size() > kMostValues) {
    axis.fault("values", "found " + quote_found(axis.raw("values")) +
                             "; expected a list of 1 to a million values");
    return {};
  }
  std::vector<std::string> texts;
  for (const Json& value : list) texts.push_back(compact_text(value));
  return texts;
}

enum class Method : std::uint8_t { kRandom, kLatinHypercube };
constexpr std::array<Choice<Method>, 2> kMethods{
    {{"random", Method::kRandom}, {"latin_hypercube", Method::kLatinHypercube}}};

// Numbers in [0, 1), one a value of the axis.
std::vector<double> draw(Method method, std::size_t count, std::uint64_t seed,
                         const std::string& pointer) {
  RandomStream random(seed, "sweep " + pointer);
  std::vector<double> shares;
  if (method == Method::kRandom) {
    for (std::size_t i = 0; i < count; ++i) shares.push_back(random.uniform());
    return shares;
  }
  std::vector<std::size_t> strata(count);
  std::iota(strata.begin(), strata.end(), 0U);
  for (std::size_t left = count; left > 1; --left) {
    const auto other = static_cast<std::size_t>(random.uniform() * static_cast<double>(left));
    std::swap(strata[left - 1], strata[other]);
  }
  for (const std::size_t stratum : strata) {
    shares.push_back((static_cast<double>(stratum) + random.uniform()) /
                     static_cast<double>(count));
  }
  return shares;
}

std::vector<std::string> sampled(ObjectReader& axis, const std::vector<double>& shares) {
  axis.one_of({"uniform", "log_uniform", "values"});
  std::vector<std::string> texts;
  if (axis.has("values")) {
    const std::vector<std::string> values = read_values(axis);
    for (const double share : shares) {
      if (values.empty()) break;
      const double at = share * static_cast<double>(values.size());
      texts.push_back(values[static_cast<std::size_t>(at)]);
    }
    return texts;
  }
  const bool linear = axis.has("uniform");
  if (!linear && !axis.has("log_uniform")) return {};
  const Scale scale = linear ? Scale::kLinear : Scale::kLogarithmic;
  ObjectReader reader = axis.child(linear ? "uniform" : "log_uniform");
  const auto ends = read_ends(reader, scale);
  const bool integers = reader.flag("integers", false);
  if (!ends) return {};
  std::vector<double> values;
  for (const double share : shares) values.push_back(interpolated(*ends, share, scale));
  // A span of integers is drawn from as numbers, unless whole numbers are asked for.
  const Unit unit = ends->from.unit == Unit::kInteger ? Unit::kNumber : ends->from.unit;
  return texts_of(values, unit, integers);
}

/// The required key "pointer".
std::string read_pointer(ObjectReader& axis) {
  std::string pointer = axis.text("pointer");
  if (axis.kind("pointer") != JsonKind::kText) return pointer;
  if (const auto keys = pointer_keys(pointer); !keys) axis.fault("pointer", keys.error().message);
  return pointer;
}

}  // namespace

SweepAxis read_axis(ObjectReader& axis) {
  axis.one_of({"values", "range", "log_range"});
  return read_axis_form(axis);
}

SweepAxis read_axis_form(ObjectReader& axis) {
  SweepAxis out;
  out.pointer = read_pointer(axis);
  if (axis.has("values")) {
    out.values = read_values(axis);
  } else if (axis.has("range")) {
    out.values = read_range(axis.child("range"), Scale::kLinear);
  } else if (axis.has("log_range")) {
    out.values = read_range(axis.child("log_range"), Scale::kLogarithmic);
  }
  return out;
}

std::vector<SweepAxis> read_sample(ObjectReader sample) {
  const Method method = sample.choice("method", kMethods);
  const auto count = sample.integer<std::uint64_t>("count", {1, kMostValues});
  const auto seed = sample.integer<std::uint64_t>("seed", {}, 1);
  std::vector<SweepAxis> axes;
  for (ObjectReader& reader : sample.children("axes")) {
    SweepAxis axis;
    axis.pointer = read_pointer(reader);
    axis.values = sampled(reader, draw(method, count, seed, axis.pointer));
    axes.push_back(std::move(axis));
  }
  if (sample.kind("axes") == JsonKind::kList && sample.raw("axes") == "[]") {
    sample.fault("axes", "found an empty list; expected at least one axis");
  }
  return axes;
}

}  // namespace bubblesim::sweep
