#include "sim/sweep/sweep_config.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"
#include "sim/sweep/sweep_axes.hpp"

namespace bubblesim::sweep {
namespace {

constexpr std::uint32_t kMostRepetitions = 1'000'000;

std::vector<SweepAxis> read_zip(ObjectReader& reader) {
  std::vector<SweepAxis> axes;
  bool valid = true;
  for (ObjectReader& zip : reader.children("zip")) {
    axes.push_back(read_axis(zip));
    valid = valid && !axes.back().values.empty();
  }
  if (reader.raw("zip") == "[]") reader.fault("zip", "found an empty list; expected axes");
  for (const SweepAxis& axis : axes) {
    if (!valid || axis.values.size() == axes.front().values.size()) continue;
    reader.fault("zip", "found " + std::to_string(axis.values.size()) + " values of " +
                            quote_found(axis.pointer) + " and " +
                            std::to_string(axes.front().values.size()) + " of " +
                            quote_found(axes.front().pointer) + "; expected as many of each");
  }
  return axes;
}

AxisGroup read_group(ObjectReader& reader) {
  AxisGroup group;
  reader.one_of({"values", "range", "log_range", "zip", "sample"});
  if (reader.has("zip")) {
    group.axes = read_zip(reader);
  } else if (reader.has("sample")) {
    group.axes = read_sample(reader.child("sample"));
  } else {
    group.axes = {read_axis_form(reader)};
  }
  reader.defined_by("when", "settings");
  if (reader.has("when")) group.when = read_settings(reader.child("when"));
  return group;
}

// Adds the axes to what is set; empty: they overwrite nothing.
std::string fault_of_axes(SetPlaces& places, const Json& base,
                          const std::vector<AxisGroup>& groups) {
  for (const AxisGroup& group : groups) {
    for (const SweepAxis& axis : group.axes) {
      std::string fault = places.add(base, "the axis of ", axis.pointer, &group);
      if (!fault.empty()) return fault;
    }
  }
  return {};
}

SweepConfig read_root(ObjectReader& root, const std::string& file) {
  SweepConfig sweep;
  sweep.file = file;
  sweep.name = read_title(root);
  sweep.base = read_base(root, file);
  for (ObjectReader& reader : root.children("axes", Presence::kOptional)) {
    sweep.groups.push_back(read_group(reader));
  }
  SetPlaces places;
  if (const std::string fault = fault_of_axes(places, {}, sweep.groups); !fault.empty()) {
    root.fault("axes", fault);
  }
  sweep.repetitions = root.integer<std::uint32_t>("repetitions", {1, kMostRepetitions}, 1);
  if (root.has("first_seed")) sweep.first_seed = root.integer<std::uint64_t>("first_seed", {});
  return sweep;
}

bool one_contains_other(const std::string& first, const std::string& second) {
  return (first + '/').starts_with(second + '/') || (second + '/').starts_with(first + '/');
}

// An override holds for all points: the axis of its place is no more, and conditions on the place
// hold everywhere or nowhere.
void fix_axis(std::vector<AxisGroup>& groups, const Json& base, const std::string& pointer) {
  const std::string place = numbered(base, pointer);
  for (AxisGroup& group : groups) {
    for (const store::Setting& condition : group.when) {
      group.when_overridden = group.when_overridden ||
                              one_contains_other(numbered(base, condition.pointer), place);
    }
    std::erase_if(group.axes, [&](const SweepAxis& axis) {
      return numbered(base, axis.pointer) == place;
    });
  }
  std::erase_if(groups, [](const AxisGroup& group) { return group.axes.empty(); });
}

/// "/a/b=c" as a pointer and a value: JSON, or else a text. The leading "/" may be left out.
Result<store::Setting> parse_assignment(const std::string& text) {
  const std::size_t equals = text.find('=');
  std::string pointer = text.substr(0, equals);
  if (!pointer.empty() && pointer.front() != '/') pointer.insert(0, 1, '/');
  if (equals == std::string::npos || !pointer_keys(pointer)) {
    return fail("--set", {}, "found " + quote_found(text) +
                                "; expected a place of the run config and its value, such as "
                                "/duration=500ms or /fillers/0/arrivals/rate_per_s=80");
  }
  const std::string written = text.substr(equals + 1);
  Json value = Json::parse(written, nullptr, false);
  if (value.is_discarded()) value = written;
  return store::Setting{std::move(pointer), compact_text(value)};
}

void apply(Json& base, const std::string& text, SweepConfig& sweep, SetPlaces& places,
           Errors& errors) {
  const auto assignment = parse_assignment(text);
  if (!assignment) {
    errors.push_back(assignment.error());
    return;
  }
  // Before the value is there: it may be another name.
  if (std::string fault = places.add(base, "--set of ", assignment->pointer);
      !fault.empty()) {
    errors.push_back({"--set", {}, std::move(fault)});
  }
  fix_axis(sweep.groups, base, assignment->pointer);
  const Json value = Json::parse(assignment->value, nullptr, false);
  if (auto done = set_value(base, assignment->pointer, value); !done) {
    errors.push_back({"--set", done.error().place, done.error().message});
  }
}

}  // namespace

CheckedResult<SweepConfig> parse_sweep_config(const JsonDocument& document) {
  Errors errors;
  ObjectReader root = document.root(errors);
  SweepConfig sweep = read_root(root, document.file());
  root.finish();
  if (!errors.empty()) return tl::unexpected<Errors>(std::move(errors));
  return sweep;
}

CheckedResult<SweepConfig> read_sweep_config(const std::string& path,
                                             const std::vector<std::string>& overrides) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load_file(path));
  BUBBLESIM_ASSIGN_OR_RETURN(SweepConfig sweep, parse_sweep_config(document));
  BUBBLESIM_ASSIGN_OR_RETURN(Json base, load_base(sweep.base, path));
  Errors errors;
  SetPlaces places;
  for (const std::string& text : overrides) apply(base, text, sweep, places, errors);
  if (std::string fault = fault_of_axes(places, base, sweep.groups); !fault.empty()) {
    errors.push_back({path, "/axes", std::move(fault)});
  }
  if (!errors.empty()) return tl::unexpected<Errors>(std::move(errors));
  sweep.base.text = compact_text(base);
  return sweep;
}

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

namespace {

std::string unescape(std::string_view key) {
  std::string out;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const bool escape = key[i] == '~' && i + 1 < key.size();
    if (escape && (key[i + 1] == '0' || key[i + 1] == '1')) {
      out += key[++i] == '0' ? '~' : '/';
    } else {
      out += key[i];
    }
  }
  return out;
}

// What an element of a list is called: a filler's or policy's name.
std::string name_of(const Json& element) {
  if (element.is_string()) return element.get<std::string>();
  const auto name = element.is_object() ? element.find("name") : element.end();
  if (!element.is_object() || name == element.end() || !name->is_string()) return {};
  return name->get<std::string>();
}

Result<std::size_t> element_of(const Json& list, const std::string& key,
                               const std::string& pointer) {
  if (const auto number = parse_number<std::size_t>(key)) {
    if (*number < list.size()) return *number;
    return fail({}, pointer, "found element " + key + " of a list of " +
                                 std::to_string(list.size()) + "; elements count from 0");
  }
  std::vector<std::string> names;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < list.size(); ++i) {
    names.push_back(name_of(list[i]));
    if (names.back() != key) continue;
    if (found) {
      return fail({}, pointer, "elements " + std::to_string(*found) + " and " +
                                   std::to_string(i) + " of the list are both named " +
                                   quote_found(key) + "; expected the number of one");
    }
    found = i;
  }
  if (found) return *found;
  return fail({}, pointer, unknown_name_message("element", key, names));
}

}  // namespace

Result<std::vector<std::string>> pointer_keys(std::string_view pointer) {
  std::vector<std::string> keys;
  if (pointer.size() < 2 || pointer.front() != '/') {
    return fail({}, {}, "found " + quote_found(pointer) +
                            "; expected a JSON pointer such as \"/fillers/0/memory\"");
  }
  for (std::size_t at = 1; at <= pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', at), pointer.size());
    keys.push_back(unescape(pointer.substr(at, end - at)));
    if (keys.back().empty()) {
      return fail({}, {}, "found " + quote_found(pointer) + ", a pointer with an empty key");
    }
    at = end + 1;
  }
  return keys;
}

const Json* find_value(const Json& config, std::string_view pointer) {
  const auto keys = pointer_keys(pointer);
  if (!keys) return nullptr;
  const Json* at = &config;
  for (std::size_t i = 0; i < keys->size(); ++i) {
    const std::string& key = (*keys)[i];
    if (at->is_array()) {
      const auto element = element_of(*at, key, {});
      if (!element) return nullptr;
      at = &(*at)[*element];
    } else if (at->is_object()) {
      const auto found = at->find(key);
      if (found == at->end()) return nullptr;
      at = &*found;
    } else {
      const bool name = at->is_string() && key == "name" && i + 1 == keys->size() && i == 2 &&
                        keys->front() == "policies";
      return name ? at : nullptr;
    }
  }
  return at;
}

std::string numbered(const Json& config, const std::string& pointer) {
  const auto keys = pointer_keys(pointer);
  if (!keys) return pointer;
  Json::json_pointer out;
  const Json* at = &config;
  for (const std::string& key : *keys) {
    std::string name = key;
    const Json* next = nullptr;
    if (at != nullptr && at->is_array()) {
      if (const auto element = element_of(*at, key, {})) {
        name = std::to_string(*element);
        next = &(*at)[*element];
      }
    } else if (at != nullptr && at->is_object() && at->contains(key)) {
      next = &(*at)[key];
    }
    out /= name;
    at = next;
  }
  return out.to_string();
}

Result<void> set_value(Json& config, const std::string& pointer, const Json& value) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<std::string> keys, pointer_keys(pointer));
  Json* at = &config;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string& key = keys[i];
    const bool policy = i == 2 && keys.front() == "policies" && at->is_string();
    if (policy) *at = Json{{"name", *at}};
    if (at->is_array()) {
      BUBBLESIM_ASSIGN_OR_RETURN(const std::size_t element, element_of(*at, key, pointer));
      at = &(*at)[element];
    } else if (at->is_object()) {
      at = &(*at)[key];
      if (at->is_null() && i + 1 < keys.size()) *at = Json::object();
    } else {
      return fail({}, pointer, "found " + quote_found(compact_text(*at)) +
                                   " on the way, which has no " + quote_found(key));
    }
  }
  *at = value;
  return {};
}

std::string canonical_text(const Json& value) {
  // The library's plain objects are sorted by key.
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string text_at(const Json& config, std::string_view pointer) {
  const Json* value = find_value(config, pointer);
  return value == nullptr ? std::string("none") : canonical_text(*value);
}

}  // namespace bubblesim::sweep
