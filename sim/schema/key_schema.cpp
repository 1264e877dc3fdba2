#include "sim/schema/key_schema.hpp"

#include <fmt/format.h>

#include "sim/base/add_once.hpp"
#include "sim/base/json.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::schema {
namespace {

std::string shown(std::int64_t value) { return std::to_string(value); }
std::string shown(std::uint64_t value) { return std::to_string(value); }
std::string shown(double value) { return Json(value).dump(); }
std::string shown(Duration value) { return format_duration(value); }
std::string shown(Bytes value) { return format_bytes(value); }
std::string shown(BytesPerSecond value) { return format_rate(value); }
std::string shown(bool value) { return value ? "true" : "false"; }
std::string shown(const std::string& value) { return value; }

Json json_of(const JsonDefault& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(held)>>) return held;
        return shown(held);
      },
      value);
}

// "A duration from 1ns to 1s."
template <class T>
std::string words(const std::string& what, const Range<T>& range) {
  const Range<T> open;
  const bool low = open.low < range.low;
  const bool high = range.high < open.high;
  if (low && high) return what + " from " + shown(range.low) + " to " + shown(range.high);
  if (low) return what + " of at least " + shown(range.low);
  if (high) return what + " of at most " + shown(range.high);
  return what;
}

template <class Number>
Json number_schema(const char* type, const std::string& what, const Range<Number>& range) {
  constexpr bool kUnsigned = std::is_same_v<Number, std::uint64_t>;
  const Range<Number> open;
  Json out{{"type", type}};
  if (kUnsigned || open.low < range.low) out["minimum"] = range.low;
  if (range.high < open.high) out["maximum"] = range.high;
  out["description"] = words(what, range);
  return out;
}

// Digits, perhaps a fraction, and the unit without a space.
Json unit_pattern(const std::vector<std::string_view>& units) {
  return {{"type", "string"},
          {"pattern", fmt::format("^[0-9]+(\\.[0-9]+)?({})$", fmt::join(units, "|"))}};
}

template <class Quantity>
Json quantity_schema(const std::string& what, const std::vector<std::string_view>& units,
                     const Range<Quantity>& range) {
  Json out = unit_pattern(units);
  out["description"] = fmt::format("{}, with its unit: {}", words(what, range),
                                   fmt::join(units, " "));
  return out;
}

struct Shapes {
  const std::string& path;
  const ObjectSchema& object_schema;

  Json operator()(const AnyShape&) const { return Json::object(); }
  Json operator()(const TextShape&) const { return {{"type", "string"}}; }
  Json operator()(const FlagShape&) const { return {{"type", "boolean"}}; }
  Json operator()(const ObjectShape&) const { return object_schema(path); }
  Json operator()(const ChoiceShape& shape) const {
    if (shape.names.size() == 1) return {{"const", shape.names.front()}};
    return {{"enum", shape.names}};
  }
  Json operator()(const DefinedShape& shape) const {
    return {{"$ref", "#/$defs/" + shape.definition}};
  }
  Json operator()(const Range<std::int64_t>& range) const {
    return number_schema("integer", "An integer", range);
  }
  Json operator()(const Range<std::uint64_t>& range) const {
    return number_schema("integer", "An integer", range);
  }
  Json operator()(const Range<double>& range) const {
    return number_schema("number", "A number", range);
  }
  Json operator()(const Range<Duration>& range) const {
    return quantity_schema("A duration", duration_units(), range);
  }
  Json operator()(const Range<Bytes>& range) const {
    return quantity_schema("A number of bytes", byte_units(), range);
  }
  Json operator()(const Range<BytesPerSecond>& range) const {
    return quantity_schema("A rate", rate_units(), range);
  }
};

using Counted = std::pair<JsonCount, JsonShape>;

/// Ranges that differ between readings become the widest; choices have all names.
struct Widen {
  JsonShape& widest;

  template <class T>
  bool operator()(const T& shape) const {
    return std::get<T>(widest) == shape;
  }
  template <class T>
  bool operator()(const Range<T>& range) const {
    auto& wide = std::get<Range<T>>(widest);
    if (range.low < wide.low) wide.low = range.low;
    if (wide.high < range.high) wide.high = range.high;
    return true;
  }
  bool operator()(const ChoiceShape& shape) const {
    auto& names = std::get<ChoiceShape>(widest).names;
    for (const std::string& name : shape.names) add_once(names, name);
    return true;
  }
};

/// One for each kind of value; what is defined elsewhere stands alone.
std::vector<Counted> alternatives(const KeyForm& form) {
  std::vector<Counted> out;
  for (const Counted& read : form.shapes) {
    if (std::holds_alternative<AnyShape>(read.second)) continue;
    if (std::holds_alternative<DefinedShape>(read.second)) return {read};
    const auto same = std::find_if(out.begin(), out.end(), [&](const Counted& other) {
      return other.first == read.first && other.second.index() == read.second.index();
    });
    if (same == out.end()) {
      out.push_back(read);
    } else {
      (void)std::visit(Widen{same->second}, read.second);
    }
  }
  return out;
}

void add_default(Json& out, const KeyForm& form) {
  if (form.defaults.empty()) return;
  const Json first = json_of(form.defaults.front());
  if (first == "") return;
  std::string text = out.value("description", "");
  if (!text.empty()) text += "; ";
  if (form.defaults.size() == 1) {
    out["default"] = first;
    out["description"] =
        text + "default " + std::visit([](const auto& v) { return shown(v); }, form.defaults[0]);
  } else {
    out["description"] = text + "the default depends on other keys";
  }
}

}  // namespace

Json key_schema(const std::string& path, const std::string& key, const KeyForm& form,
                const ObjectSchema& object_schema) {
  Json all = Json::array();
  for (const auto& [count, shape] : alternatives(form)) {
    const std::string inner = path_of(path, key, count);
    Json json = std::visit(Shapes{inner, object_schema}, shape);
    if (count == JsonCount::kList) json = {{"type", "array"}, {"items", std::move(json)}};
    all.push_back(std::move(json));
  }
  Json out = all.size() == 1 ? all.front() : Json::object();
  if (all.size() > 1) out["anyOf"] = std::move(all);
  add_default(out, form);
  return out;
}

}  // namespace bubblesim::schema
