#include "sim/schema/write_schema.hpp"

#include "sim/base/json.hpp"
#include "sim/schema/conditions.hpp"
#include "sim/schema/key_schema.hpp"
#include "sim/schema/shared_parts.hpp"

namespace bubblesim::schema {
namespace {

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
