// "policies": names, and objects with parameters. A name alone is short for {"name": it}.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/policy/parameter_check.hpp"
#include "sim/run/repeated_policies.hpp"
#include "sim/run/run_config_parts.hpp"

namespace bubblesim::run::config_detail {
namespace {

constexpr const char* kKey = "policies";

std::optional<PolicyChoice> read_policy(ObjectReader& reader, const std::string& file,
                                        const policy::Registry& registry, Errors& errors) {
  const std::string name = reader.text("name");
  ObjectReader parameters = reader.child("parameters", Presence::kOptional);
  const std::vector<std::string> names = parameters.keys();
  std::vector<policy::GivenParameter> given;
  for (const std::string& key : names) given.push_back({key, parameters.scalar(key)});
  if (reader.kind("name") != JsonKind::kText) return std::nullopt;
  const auto spec = registry.find(name);
  if (!spec) {
    reader.fault("name", spec.error().message);
    return std::nullopt;
  }
  auto checked = policy::check_parameters(**spec, given, file, parameters.pointer());
  if (!checked) {
    errors.add(checked.error());
    return std::nullopt;
  }
  return PolicyChoice{name, *std::move(checked)};
}

}  // namespace

std::vector<PolicyChoice> read_policies(ObjectReader& root, const std::string& file,
                                        const policy::Registry& registry, Errors& errors) {
  root.defined_by(kKey, kKey);
  const std::size_t faults_before = errors.size();
  std::vector<ObjectReader> readers = root.children_or_texts(kKey, "name");
  std::vector<PolicyChoice> choices;
  std::vector<std::string> places;  ///< of the choices
  for (ObjectReader& reader : readers) {
    auto choice = read_policy(reader, file, registry, errors);
    if (!choice) continue;
    choices.push_back(*std::move(choice));
    if (const auto first = same_before(choices, choices.size() - 1)) {
      reader.fault("", "the same policy and parameters as " + places[*first]);
    }
    places.push_back(reader.pointer());
  }
  for (ObjectReader& reader : readers) reader.finish();
  if (readers.empty() && errors.size() == faults_before) {
    root.fault(kKey, "found none; expected at least one policy");
  }
  return choices;
}

}  // namespace bubblesim::run::config_detail
