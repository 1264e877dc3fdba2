#include "sim/schema/write_schema.hpp"

#include <map>
#include <string>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/json_fwd.hpp"
#include "sim/schema/conditions.hpp"
#include "sim/schema/key_schema.hpp"

namespace bubblesim::schema {
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
