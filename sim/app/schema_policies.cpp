#include "sim/app/schema_policies.hpp"

#include <type_traits>

#include "sim/base/json.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/schema/key_schema.hpp"

namespace bubblesim::app {
namespace {

using policy::ParameterSpec;

JsonShape shape_of(const ParameterSpec& parameter) {
  return std::visit(
      [&parameter](const auto& held) -> JsonShape {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, bool>) {
          return FlagShape{};
        } else if constexpr (std::is_same_v<T, std::string>) {
          if (parameter.choices.empty()) return TextShape{};
          return ChoiceShape{parameter.choices};
        } else {
          return Range<T>{std::get<T>(parameter.minimum), std::get<T>(parameter.maximum)};
        }
      },
      policy::type_value(parameter));
}

Json parameter_schema(const ParameterSpec& parameter) {
  schema::KeyForm form;
  form.shapes.emplace_back(JsonCount::kOne, shape_of(parameter));
  const bool words = !parameter.choices.empty() &&
                     !std::holds_alternative<ChoiceShape>(form.shapes.front().second);
  if (words) form.shapes.emplace_back(JsonCount::kOne, ChoiceShape{parameter.choices});
  form.defaults.push_back(
      std::visit([](const auto& value) { return JsonDefault(value); }, parameter.fallback));
  Json out = schema::key_schema("", parameter.name, form, {});
  std::string text = parameter.help;
  if (!parameter.unit.empty()) text += " [" + parameter.unit + "]";
  if (out.contains("description")) text += " " + out["description"].get<std::string>();
  out["description"] = text;
  return out;
}

Json parameters_schema(const policy::PolicySpec& spec) {
  Json properties = Json::object();
  for (const ParameterSpec& parameter : spec.parameters) {
    properties[parameter.name] = parameter_schema(parameter);
  }
  return {{"type", "object"},
          {"description", "Parameters of " + spec.name + ": " + spec.summary},
          {"properties", std::move(properties)},
          {"additionalProperties", false}};
}

}  // namespace

Json policy_definitions(const policy::Registry& policies) {
  Json names = Json::array();
  Json choices = Json::array();
  Json parameters = Json::object();
  for (const policy::PolicySpec& spec : policies.all()) {
    names.push_back({{"const", spec.name}, {"description", spec.summary}});
    const std::string definition = "parameters_" + spec.name;
    parameters[definition] = parameters_schema(spec);
    choices.push_back(
        {{"if", {{"properties", {{"name", {{"const", spec.name}}}}}, {"required", {"name"}}}},
         {"then", {{"properties", {{"parameters", {{"$ref", "#/$defs/" + definition}}}}}}}});
  }
  Json out;
  out["policy_name"] = {{"type", "string"}, {"anyOf", std::move(names)}};
  out["policy"] = {{"type", "object"},
                   {"properties",
                    {{"name", {{"$ref", "#/$defs/policy_name"}}},
                     {"parameters", {{"type", "object"}}}}},
                   {"required", {"name"}},
                   {"additionalProperties", false},
                   {"allOf", std::move(choices)}};
  out["policies"] = {
      {"type", "array"},
      {"description", "A name, or a name with parameters; each is run on the same load"},
      {"minItems", 1},
      {"items",
       {{"anyOf", {{{"$ref", "#/$defs/policy_name"}}, {{"$ref", "#/$defs/policy"}}}}}}};
  out.update(parameters);
  return out;
}

}  // namespace bubblesim::app
