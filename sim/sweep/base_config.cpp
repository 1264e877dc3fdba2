#include "sim/sweep/base_config.hpp"

#include <filesystem>
#include <utility>

#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/nearest.hpp"
#include "sim/sweep/config_edit.hpp"

namespace bubblesim::sweep {
namespace {

bool has_condition(const AxisGroup* group) { return group != nullptr && !group->when.empty(); }

}  // namespace

// Two conditions may exclude each other; axes of one zip share theirs.
std::string SetPlaces::fault_of_pair(const Place& earlier, const Place& later) {
  const bool conditions = has_condition(earlier.group) && has_condition(later.group);
  if (earlier.group != later.group && conditions) return {};
  const std::string or_when = later.group != nullptr ? ", or each with a \"when\" of its own" : "";
  if (earlier.number == later.number) {
    return "found " + later.named + " after " + earlier.named +
           ", which is the same place; expected one of them" + or_when;
  }
  if (!earlier.number.starts_with(later.number + '/')) return {};
  return "found " + later.named + " after " + earlier.named +
         ", which it overwrites; expected one of them, or the larger place first" + or_when;
}

std::string SetPlaces::add(const Json& config, std::string_view what, const std::string& pointer,
                           const AxisGroup* group) {
  if (pointer.empty()) return {};  // a fault of its own
  Place later{std::string(what) + quote_found(pointer), numbered(config, pointer), group};
  for (const Place& earlier : before_) {
    if (std::string fault = fault_of_pair(earlier, later); !fault.empty()) return fault;
  }
  before_.push_back(std::move(later));
  return {};
}

namespace {

// A run config's file, checked as JSON.
CheckedResult<Json> read_base_file(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto document, JsonDocument::load_file(path));
  Errors errors;
  (void)document.root(errors);
  if (!errors.empty()) return tl::unexpected<Errors>(std::move(errors));
  return Json::parse(read_text_file(path).value_or(std::string()), nullptr, false);
}

}  // namespace

std::vector<store::Setting> read_settings(ObjectReader reader) {
  std::vector<store::Setting> settings;
  for (const std::string& pointer : reader.keys()) {
    if (const auto keys = pointer_keys(pointer); !keys) {
      reader.fault("", keys.error().message);
    }
    settings.push_back({pointer, reader.raw(pointer)});
  }
  return settings;
}

std::string read_title(ObjectReader& root) {
  std::string name = root.text("name");
  if (root.kind("name") == JsonKind::kText && name.empty()) {
    root.fault("name", "found an empty text; expected a name");
  }
  if (root.kind("comment") == JsonKind::kList) {
    (void)root.texts("comment");
  } else {
    (void)root.text("comment", "");
  }
  return name;
}

BaseParts read_base(ObjectReader& root, const std::string& file) {
  BaseParts base;
  base.file = file;
  root.defined_by("base", "base");
  const JsonKind kind = root.kind("base");
  if (kind == JsonKind::kText) {
    const auto folder = std::filesystem::path(file).parent_path();
    base.file = (folder / root.text("base")).lexically_normal().string();
  } else if (kind == JsonKind::kObject) {
    base.text = root.raw("base");
  } else if (root.require("base",
                          "\"base\" is missing; expected the path of a run config, or one")) {
    root.fault("base", "found " + quote_found(root.raw("base")) +
                           "; expected the path of a run config, or a run config");
  }
  root.defined_by("set", "settings");
  if (root.has("set")) base.set = read_settings(root.child("set"));
  return base;
}

CheckedResult<Json> load_base(const BaseParts& parts, const std::string& file) {
  Json base;
  if (parts.text.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(base, read_base_file(parts.file));
  } else {
    base = Json::parse(parts.text, nullptr, false);
  }
  base.erase("$schema");
  Errors errors;
  SetPlaces places;
  for (const store::Setting& setting : parts.set) {
    if (std::string fault = places.add(base, "", setting.pointer); !fault.empty()) {
      errors.push_back({file, "/set", std::move(fault)});
    }
    const Json value = Json::parse(setting.value, nullptr, false);
    if (auto done = set_value(base, setting.pointer, value); !done) {
      errors.push_back({file, "/set", done.error().text()});
    }
  }
  if (!errors.empty()) return tl::unexpected<Errors>(std::move(errors));
  return base;
}

}  // namespace bubblesim::sweep
