#include "sim/app/schema_kinds.hpp"

#include <type_traits>

#include "sim/advise/question.hpp"
#include "sim/base/json.hpp"
#include "sim/base/json_fwd.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/run/run_config.hpp"
#include "sim/schema/explore.hpp"
#include "sim/schema/write_schema.hpp"
#include "sim/step_cost/engine_cost.hpp"
#include "sim/sweep/sweep_axes.hpp"
#include "sim/sweep/sweep_config.hpp"
#include "sim/synth/plan_file.hpp"
#include "sim/synth/software_spec.hpp"

namespace bubblesim::app {
namespace {

// ---- "policies" of a run, as JSON Schema, from the policies' own declarations.

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

// The definition "policies", and those that it refers to.
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

/// A reader that takes the root.
template <class ReadRoot>
std::function<Errors(const JsonDocument&)> of_root(ReadRoot read_root) {
  return [read_root](const JsonDocument& document) {
    Errors errors;
    ObjectReader root = document.root(errors);
    (void)read_root(root);
    root.finish();
    return errors;
  };
}

/// Definitions for the parts of a sweep that its reader takes as they are, since each point's run
/// config checks them.
Json sweep_definitions() {
  const Json text{{"type", "string"}};
  Json out;
  out["base"] = {{"description", "The path of a run config, or one (run.schema.json)"},
                 {"anyOf", {text, {{"type", "object"}}}}};
  out["settings"] = {{"type", "object"},
                     {"description", "JSON pointers into the run config, and values"},
                     {"propertyNames", {{"pattern", "^(/[^/]+)+$"}}}};
  out["values"] = {{"type", "array"},
                   {"description", "Any JSON that the place may hold"},
                   {"minItems", 1},
                   {"maxItems", sweep::kMostValues}};
  out["quantity"] = {{"description", "A number, or a span or a size with its unit"},
                     {"anyOf", {{{"type", "number"}}, text}}};
  return out;
}

}  // namespace

std::vector<SchemaKind> schema_kinds(const policy::Registry& policies) {
  return {
      {"run", "runs", "one run: a training job, what fills its bubbles, and the policies",
       [&policies](const JsonDocument& document) {
         const auto config = run::parse_run_config(document, document.file(), policies);
         return config ? Errors{} : config.error();
       }},
      {"sweep", "sweeps", "a sweep: a run and what varies in it",
       [](const JsonDocument& document) {
         const auto config = sweep::parse_sweep_config(document);
         return config ? Errors{} : config.error();
       }},
      {"advise", "advise", "a question: a run, limits, and what the system has",
       [&policies](const JsonDocument& document) {
         const auto question = advise::parse_question(document, policies);
         return question ? Errors{} : question.error();
       }},
      {"device", "devices", "a GPU", of_root(hardware::read_constants)},
      {"cluster", "clusters", "GPUs, nodes and the network between them",
       of_root(hardware::read_cluster)},
      {"model", "models", "a neural network", of_root(model::read_model)},
      {"plan", "plans", "a parallel plan: how a job is spread over GPUs",
       of_root([](ObjectReader& root) { return synth::read_plan(root, {}); })},
      {"software", "software", "what a framework costs on the host",
       of_root(synth::read_software)},
      {"engine", "engines", "what an engine of a language-model server costs besides its kernels",
       of_root(step_cost::read_engine)},
      {"efficiency", "efficiency", "how fast kernels are on a device",
       of_root(model::read_efficiency)},
  };
}

std::string schema_text(const SchemaKind& kind, const policy::Registry& policies) {
  const schema::Heading heading{
      "bubblesim " + kind.name,
      "Files of configs/" + kind.folder + ": " + kind.what + ". Made by `bubblesim schema " +
          kind.name + "` from the declarations that check such files; not edited by hand."};
  Json definitions = Json::object();
  if (kind.name == "run") definitions = policy_definitions(policies);
  if (kind.name == "sweep" || kind.name == "advise") definitions = sweep_definitions();
  const schema::Form form =
      schema::explore([&kind](const JsonDocument& document) { (void)kind.read(document); });
  return indented_text(schema::write_schema(form, heading, std::move(definitions)), 2) + "\n";
}

}  // namespace bubblesim::app
