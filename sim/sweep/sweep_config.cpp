#include "sim/sweep/sweep_config.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/nearest.hpp"
#include "sim/sweep/config_edit.hpp"
#include "sim/sweep/sweep_axes.hpp"

namespace bubblesim::sweep {
namespace {

constexpr std::uint32_t kMostRepetitions = 1'000'000;

// Pointers and the values at them.
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

// Two axes of one place contradict each other, unless each has its own condition.
void check_axes_differ(ObjectReader& root, const std::vector<AxisGroup>& groups) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const SweepAxis& axis : groups[i].axes) {
      for (std::size_t j = 0; j <= i; ++j) {
        const auto same = std::count_if(
            groups[j].axes.begin(), groups[j].axes.end(),
            [&axis](const SweepAxis& other) { return other.pointer == axis.pointer; });
        const bool conditions = !groups[i].when.empty() && !groups[j].when.empty();
        if (same <= (i == j ? 1 : 0) || (i != j && conditions)) continue;
        root.fault("axes", "found two axes of " + quote_found(axis.pointer) +
                               "; expected one, or each with a \"when\" of its own");
        return;
      }
    }
  }
}

void read_comment(ObjectReader& root) {
  if (root.kind("comment") == JsonKind::kList) {
    (void)root.texts("comment");
  } else {
    (void)root.text("comment", "");
  }
}

/// What the file says of its base.
struct BaseParts {
  std::string path;            ///< empty: it is inside
  std::vector<store::Setting> set;
};

void read_base(ObjectReader& root, SweepConfig& sweep, BaseParts& base) {
  sweep.base_file = sweep.file;
  root.defined_by("base", "base");
  const JsonKind kind = root.kind("base");
  if (kind == JsonKind::kText) {
    base.path = root.text("base");
    const auto folder = std::filesystem::path(sweep.file).parent_path();
    sweep.base_file = (folder / base.path).lexically_normal().string();
  } else if (kind == JsonKind::kObject) {
    sweep.base = root.raw("base");
  } else if (root.require("base",
                          "\"base\" is missing; expected the path of a run config, or one")) {
    root.fault("base", "found " + quote_found(root.raw("base")) +
                           "; expected the path of a run config, or a run config");
  }
  root.defined_by("set", "settings");
  if (root.has("set")) base.set = read_settings(root.child("set"));
}

SweepConfig read_root(ObjectReader& root, const std::string& file, BaseParts& base) {
  SweepConfig sweep;
  sweep.file = file;
  sweep.name = root.text("name");
  if (root.kind("name") == JsonKind::kText && sweep.name.empty()) {
    root.fault("name", "found an empty text; expected a name");
  }
  read_comment(root);
  read_base(root, sweep, base);
  for (ObjectReader& reader : root.children("axes", Presence::kOptional)) {
    sweep.groups.push_back(read_group(reader));
  }
  check_axes_differ(root, sweep.groups);
  sweep.repetitions = root.integer<std::uint32_t>("repetitions", {1, kMostRepetitions}, 1);
  if (root.has("first_seed")) sweep.first_seed = root.integer<std::uint64_t>("first_seed", {});
  return sweep;
}

CheckedResult<SweepConfig> parse(const JsonDocument& document, BaseParts& base) {
  Errors errors;
  ObjectReader root = document.root(errors);
  SweepConfig sweep = read_root(root, document.file(), base);
  root.finish();
  if (!errors.empty()) return tl::unexpected<Errors>(std::move(errors));
  return sweep;
}

// A run config's file, checked as JSON; the form is checked point by point.
CheckedResult<Json> load_base(const std::string& path) {
  const auto document = JsonDocument::load_file(path);
  if (!document) return tl::unexpected<Errors>(document.error());
  Errors errors;
  (void)document->root(errors);
  if (!errors.empty()) return tl::unexpected<Errors>(std::move(errors));
  return Json::parse(read_text_file(path).value_or(std::string()), nullptr, false);
}

// An override holds for all points: the axis of its place is no more.
void fix_axis(std::vector<AxisGroup>& groups, const std::string& pointer) {
  for (AxisGroup& group : groups) {
    std::erase_if(group.axes, [&](const SweepAxis& axis) { return axis.pointer == pointer; });
  }
  std::erase_if(groups, [](const AxisGroup& group) { return group.axes.empty(); });
}

void apply(Json& base, const store::Setting& setting, const std::string& file, Errors& errors) {
  const Json value = Json::parse(setting.value, nullptr, false);
  if (auto done = set_value(base, setting.pointer, value); !done) {
    errors.push_back({file, "/set", done.error().text()});
  }
}

void apply(Json& base, const std::string& text, SweepConfig& sweep, Errors& errors) {
  const auto assignment = parse_assignment(text, "--set");
  if (!assignment) {
    errors.push_back(assignment.error());
    return;
  }
  const Json value = Json::parse(assignment->value, nullptr, false);
  if (auto done = set_value(base, assignment->pointer, value); !done) {
    errors.push_back({"--set", done.error().place, done.error().message});
  }
  fix_axis(sweep.groups, assignment->pointer);
}

}  // namespace

CheckedResult<SweepConfig> parse_sweep_config(const JsonDocument& document) {
  BaseParts base;
  return parse(document, base);
}

CheckedResult<SweepConfig> read_sweep_config(const std::string& path,
                                             const std::vector<std::string>& overrides) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load_file(path));
  BaseParts parts;
  BUBBLESIM_ASSIGN_OR_RETURN(SweepConfig sweep, parse(document, parts));
  Json base;
  if (parts.path.empty()) {
    base = Json::parse(sweep.base, nullptr, false);
  } else {
    BUBBLESIM_ASSIGN_OR_RETURN(base, load_base(sweep.base_file));
  }
  base.erase("$schema");
  Errors errors;
  for (const store::Setting& setting : parts.set) apply(base, setting, path, errors);
  for (const std::string& text : overrides) apply(base, text, sweep, errors);
  if (!errors.empty()) return tl::unexpected<Errors>(std::move(errors));
  sweep.base = compact_text(base);
  return sweep;
}

}  // namespace bubblesim::sweep
