#include "sim/schema/write_schema.hpp"

#include <fmt/format.h>
#include <map>
#include <utility>

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

namespace {

// ---- Objects that a schema would say several times become definitions. Inside of sim/schema.

constexpr std::size_t kSmall = 400;  // bytes of JSON that are worth no reference

bool is_object_schema(const Json& schema) {
  return schema.is_object() && schema.contains("properties") && schema.contains("type");
}

class Sharer {
 public:
  explicit Sharer(Json& definitions) : definitions_(definitions) {}

  void count(const Json& schema) {
    if (is_object_schema(schema)) ++counts_[schema.dump()];
    for (const Json& part : schema) {
      if (part.is_structured()) count(part);
    }
  }

  void replace(Json& schema, const std::string& name) {
    if (is_object_schema(schema)) {
      std::string text = schema.dump();
      if (text.size() >= kSmall && counts_[text] > 1) {
        schema = {{"$ref", "#/$defs/" + define(std::move(text), schema, name)}};
        return;
      }
    }
    replace_inside(schema, name);
  }

 private:
  void replace_inside(Json& schema, const std::string& name) {
    if (!schema.is_structured()) return;
    for (auto& [key, part] : schema.items()) {
      if (key == "properties") {
        for (auto& [property, inner] : part.items()) replace(inner, property);
      } else {
        replace(part, name);
      }
    }
  }

  std::string define(std::string text, Json schema, const std::string& name) {
    const auto [at, fresh] = names_.try_emplace(std::move(text), name);
    if (!fresh) return at->second;
    for (int next = 2; definitions_.contains(at->second); ++next) {
      at->second = name + "_" + std::to_string(next);
    }
    const std::string chosen = at->second;
    definitions_[chosen] = true;  // taken
    replace_inside(schema, name);
    definitions_[chosen] = std::move(schema);
    return chosen;
  }

  Json& definitions_;
  std::map<std::string, int> counts_;
  std::map<std::string, std::string> names_;
};

// Replaces every large object schema that occurs more than once by a reference to a definition
// named after the first key that has it.
void take_out_shared(Json& schema, Json& definitions) {
  Sharer sharer(definitions);
  sharer.count(schema);
  for (auto& [key, part] : schema["properties"].items()) sharer.replace(part, key);
}

constexpr const char* kDraft = "https://json-schema.org/draft/2020-12/schema";

Json condition_json(const ChoiceCondition& condition) {
  const Json names = condition.names.size() == 1 ? Json{{"const", condition.names.front()}}
                                                 : Json{{"enum", condition.names}};
  Json when{{"properties", {{condition.key, names}}}};
  if (!condition.if_absent) when["required"] = {condition.key};
  Json then = Json::object();
  if (!condition.required.empty()) then["required"] = condition.required;
  for (const std::string& key : condition.forbidden) then["properties"][key] = false;
  return {{"if", std::move(when)}, {"then", std::move(then)}};
}

Json one_of_json(const std::vector<std::string>& keys) {
  Json out = Json::array();
  for (const std::string& key : keys) out.push_back({{"required", {key}}});
  return out;
}

void add_conditions(Json& out, const ObjectForm& object) {
  const Conditions conditions = conditions_of(object);
  if (!conditions.required.empty()) out["required"] = conditions.required;
  if (!conditions.needs.empty()) out["dependentRequired"] = conditions.needs;
  Json all = Json::array();
  for (const ChoiceCondition& condition : conditions.choices) {
    all.push_back(condition_json(condition));
  }
  for (const auto& keys : object.one_of) all.push_back({{"oneOf", one_of_json(keys)}});
  for (const auto& [key, other] : conditions.alternatives) {
    all.push_back({{"anyOf", one_of_json({key, other})}});
  }
  if (!all.empty()) out["allOf"] = std::move(all);
}

Json object_json(const Form& form, const std::string& path) {
  Json out{{"type", "object"}};
  const auto at = form.find(path);
  Json properties = Json::object();
  if (at != form.end()) {
    const ObjectSchema inner = [&form](const std::string& name) { return object_json(form, name); };
    for (const std::string& key : at->second.order) {
      properties[key] = key_schema(path, key, at->second.keys.at(key), inner);
    }
  }
  out["properties"] = std::move(properties);
  out["additionalProperties"] = false;
  if (at != form.end()) add_conditions(out, at->second);
  return out;
}

}  // namespace

Json write_schema(const Form& form, const Heading& heading, Json definitions) {
  Json root = object_json(form, "");
  root["properties"]["$schema"] = {{"type", "string"},
                                   {"description", "This schema, for editors"}};
  take_out_shared(root, definitions);
  Json out{{"$schema", kDraft},
           {"title", heading.title},
           {"description", heading.description}};
  out.update(root);
  if (!definitions.empty()) out["$defs"] = std::move(definitions);
  return out;
}

}  // namespace bubblesim::schema
