#include "sim/sweep/base_config.hpp"

#include <filesystem>
#include <utility>

#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/nearest.hpp"
#include "sim/sweep/config_edit.hpp"
#include "sim/sweep/set_places.hpp"

namespace bubblesim::sweep {
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
