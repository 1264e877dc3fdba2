// "policies": names, and objects with parameters. A name alone is short for {"name": it}: the
// list is rewritten so, and read as a document of its own whose pointers are those of the file.
#include <map>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/run/run_config_parts.hpp"

namespace bubblesim::run::config_detail {
namespace {

constexpr const char* kKey = "policies";

/// Where an element's policy was named.
enum class Form : std::uint8_t { kName, kObject };

/// The list with every name as an object, and the form of each element that is one of the two.
struct Rewritten {
  std::string text;
  std::vector<Form> forms;
};

Rewritten rewrite(const std::string& list) {
  Rewritten out;
  Json elements = Json::parse(list, nullptr, false);
  for (Json& element : elements) {
    if (element.is_string()) {
      out.forms.push_back(Form::kName);
      element = Json{{"name", element}};
    } else if (element.is_object()) {
      out.forms.push_back(Form::kObject);
    }
  }
  out.text =
      Json{{kKey, std::move(elements)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  return out;
}

/// The parameters as a config writes them; lists and objects are passed on for their fault.
std::vector<std::pair<std::string, std::string>> read_given(ObjectReader& parameters) {
  std::vector<std::pair<std::string, std::string>> given;
  for (const std::string& name : parameters.keys()) {
    const bool text = parameters.kind(name) == JsonKind::kText;
    given.emplace_back(name, text ? parameters.text(name) : parameters.raw(name));
  }
  return given;
}

std::optional<PolicyChoice> read_policy(ObjectReader& reader, Form form, const std::string& file,
                                        const policy::Registry& registry, Errors& errors) {
  const std::string name = reader.text("name");
  ObjectReader parameters = reader.child("parameters", Presence::kOptional);
  const auto pairs = read_given(parameters);
  if (reader.kind("name") != JsonKind::kText) return std::nullopt;
  const auto spec = registry.find(name);
  if (!spec) {
    reader.fault(form == Form::kName ? "" : "name", spec.error().message);
    return std::nullopt;
  }
  std::vector<policy::GivenParameter> given;
  for (const auto& [parameter, text] : pairs) given.push_back({parameter, text});
  auto checked = policy::check_parameters(**spec, given, file, parameters.pointer());
  if (!checked) {
    errors.insert(errors.end(), checked.error().begin(), checked.error().end());
    return std::nullopt;
  }
  return PolicyChoice{name, *std::move(checked)};
}

std::string fingerprint(const PolicyChoice& choice) {
  std::string text = choice.name;
  for (const auto& [name, value] : choice.parameters) {
    text += '\n' + name + '=' + policy::value_text(value);
  }
  return text;
}

}  // namespace

std::vector<PolicyChoice> read_policies(ObjectReader& root, const std::string& file,
                                        const policy::Registry& registry, Errors& errors) {
  root.defined_by(kKey, kKey);
  if (root.kind(kKey) != JsonKind::kList) {
    (void)root.children(kKey);  // reports its absence or kind
    return {};
  }
  const Rewritten list = rewrite(root.raw(kKey));
  auto document = JsonDocument::parse(list.text, file);
  if (!document) {
    errors.insert(errors.end(), document.error().begin(), document.error().end());
    return {};
  }
  std::vector<PolicyChoice> choices;
  std::map<std::string, std::string> seen;
  ObjectReader top = document->root(errors);
  std::vector<ObjectReader> readers = top.children(kKey);
  for (std::size_t i = 0; i < readers.size(); ++i) {
    auto choice = read_policy(readers[i], list.forms[i], file, registry, errors);
    if (!choice) continue;
    const auto [first, fresh] = seen.try_emplace(fingerprint(*choice), readers[i].pointer());
    if (!fresh) readers[i].fault("", "the same policy and parameters as " + first->second);
    choices.push_back(*std::move(choice));
  }
  top.finish();
  if (root.raw(kKey) == "[]") root.fault(kKey, "found none; expected at least one policy");
  return choices;
}

}  // namespace bubblesim::run::config_detail
