// "policies": names, and objects with parameters. A name alone is short for {"name": it}.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/nearest.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/run/run_config.hpp"
#include "sim/run/run_config_parts.hpp"
#include "sim/synth/plan_file.hpp"

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

namespace bubblesim::run {

std::optional<std::size_t> same_before(const std::vector<PolicyChoice>& choices, std::size_t at) {
  const auto first = std::ranges::find(choices, choices[at]) - choices.begin();
  const auto index = static_cast<std::size_t>(first);
  return index < at ? std::optional(index) : std::nullopt;
}

Errors repeated_policies(const std::vector<PolicyChoice>& choices, const std::string& file,
                         const std::string& place) {
  Errors faults;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (!same_before(choices, i)) continue;
    faults.push_back({file, place, "found " + quote_found(choices[i].name) +
                                       " again with the same parameters; expected it once"});
  }
  return faults;
}

}  // namespace bubblesim::run

namespace bubblesim::run::config_detail {

// "training/synth": model, plan, cluster and so on, each a name of a file of configs or a path; the
// plan may be written out.

std::string read_id(const ReadContext& context, ObjectReader& reader, std::string_view key) {
  std::string name = read_name(reader, key);
  const bool path = name.find('/') != std::string::npos || name.ends_with(".json");
  return path ? resolve(context, reader, key, name) : name;
}

std::optional<std::string> read_optional_id(const ReadContext& context, ObjectReader& reader,
                                            std::string_view key) {
  if (!reader.has(key)) return std::nullopt;
  return read_id(context, reader, key);
}

synth::JobNames read_synth(const ReadContext& context, ObjectReader reader) {
  synth::JobNames names;
  names.model = read_id(context, reader, "model");
  names.cluster = read_id(context, reader, "cluster");
  names.software = read_optional_id(context, reader, "software");
  if (reader.has("nodes")) names.nodes = reader.integer<std::uint32_t>("nodes", {1, 65'536});
  if (reader.has("hash_seed")) names.hash_seed = reader.integer<std::uint64_t>("hash_seed", {});
  if (reader.has("folding")) names.folding = reader.choice("folding", synth::kFoldingNames);
  if (reader.kind("plan") == JsonKind::kObject) {
    ObjectReader plan = reader.child("plan");
    names.plan = synth::read_plan(plan, context.folder.string());
  } else {
    names.plan = read_id(context, reader, "plan");
  }
  return names;
}

}  // namespace bubblesim::run::config_detail
