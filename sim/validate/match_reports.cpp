#include "sim/validate/match_reports.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <set>
#include <system_error>
#include <utility>

#include "sim/base/add_once.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/nearest.hpp"

namespace bubblesim::validate {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 10'000;

struct ReportFile {
  std::string folder;
  std::string path;
  friend auto operator<=>(const ReportFile&, const ReportFile&) = default;
};

bool is_results_name(const std::string& name) {
  return name == "results.json" || (name.starts_with("results-") && name.ends_with(".json"));
}

Result<std::vector<ReportFile>> list_files(const std::string& root) {
  std::vector<ReportFile> files;
  std::error_code code;
  fs::recursive_directory_iterator entry(root, code);
  for (const fs::recursive_directory_iterator end; !code && entry != end; entry.increment(code)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored)) continue;
    if (!is_results_name(entry->path().filename().string())) continue;
    if (files.size() == kMostFiles) {
      return fail(root, {}, "found more than " + std::to_string(kMostFiles) + " results.json");
    }
    const std::string folder = entry->path().parent_path().lexically_relative(root).string();
    files.push_back({folder == "." ? "" : folder, entry->path().string()});
  }
  if (code) return fail(root, {}, "cannot be read: " + code.message());
  if (files.empty()) {
    return fail(root, {}, "found no results.json or results-*.json, here or below");
  }
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::vector<ReportFile>> files_of(const std::string& path) {
  std::error_code code;
  if (fs::is_directory(path, code)) return list_files(path);
  return std::vector<ReportFile>{{"", path}};
}

using Groups = std::vector<ReportGroup>;
using Takes = std::function<bool(const ReportGroup&)>;

/// The reports of all groups that `takes` says yes for.
std::vector<const ReportFigures*> reports_of(const Groups& groups, const Takes& takes) {
  std::vector<const ReportFigures*> out;
  for (const ReportGroup& group : groups) {
    if (!takes(group)) continue;
    for (const ReportFigures& report : group.repetitions) out.push_back(&report);
  }
  return out;
}

/// Names of the groups of both sides, simulated ones first.
std::vector<std::string> names_of(const Groups& simulated, const Groups& measured,
                                  std::string ReportGroup::*name, const Takes& takes) {
  std::vector<std::string> out;
  for (const Groups* side : {&simulated, &measured}) {
    for (const ReportGroup& group : *side) {
      if (takes(group)) add_once(out, group.*name);
    }
  }
  return out;
}

}  // namespace

CheckedResult<std::vector<ReportGroup>> find_reports(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<ReportFile> files, files_of(path));
  Errors errors;
  std::vector<ReportGroup> groups;
  for (const ReportFile& file : files) {
    for (ReportFigures& report : take(read_reports(file.path), errors)) {
      const auto same = [&](const ReportGroup& group) {
        return group.folder == file.folder && group.config == report.config;
      };
      auto group = std::find_if(groups.begin(), groups.end(), same);
      if (group == groups.end()) {
        group = groups.insert(group, {file.folder, report.config, {}});
      }
      group->repetitions.push_back(std::move(report));
    }
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return groups;
}

std::vector<MatchedReports> match_reports(const Groups& simulated, const Groups& measured) {
  std::vector<MatchedReports> out;
  const auto every_group = [](const ReportGroup&) { return true; };
  for (const std::string& config :
       names_of(simulated, measured, &ReportGroup::config, every_group)) {
    const auto named = [&](const ReportGroup& group) { return group.config == config; };
    const auto add = [&](const std::string& label, const Takes& takes) {
      out.push_back({label, config, reports_of(simulated, takes), reports_of(measured, takes)});
    };
    const bool by_folder = std::count_if(simulated.begin(), simulated.end(), named) > 1 &&
                           std::count_if(measured.begin(), measured.end(), named) > 1;
    if (!by_folder) {
      add(config, named);
      continue;
    }
    for (const std::string& folder :
         names_of(simulated, measured, &ReportGroup::folder, named)) {
      add(folder.empty() ? config : folder + "/" + config, [&](const ReportGroup& group) {
        return named(group) && group.folder == folder;
      });
    }
  }
  return out;
}

namespace {

constexpr Range<double> kNotNegative{0.0, 1e18};
constexpr double kNsPerMs = 1e6;

std::optional<double> figure(ObjectReader& object, std::string_view key) {
  const JsonKind kind = object.kind(key);
  if (kind == JsonKind::kAbsent || kind == JsonKind::kNull) return std::nullopt;
  return object.number(key, kNotNegative);
}

// A time of zero is how reports say that there was nothing to take the mean of.
std::optional<double> span_ms(ObjectReader& object, std::string_view key) {
  const auto ns = figure(object, key);
  return ns && *ns > 0 ? std::optional<double>(*ns / kNsPerMs) : std::nullopt;
}

// An object that may be absent or null.
std::optional<ObjectReader> object_of(ObjectReader& parent, std::string_view key) {
  const JsonKind kind = parent.kind(key);
  if (kind == JsonKind::kAbsent || kind == JsonKind::kNull) return std::nullopt;
  return parent.child(key);
}

std::string name_of(ObjectReader& object, std::string_view key) {
  std::string name = object.text(key);
  if (name.empty() && object.kind(key) == JsonKind::kText) {
    object.fault(key, "found an empty name");
  }
  return name;
}

// The unfinished share of requests that have a latency; 1 if the report does not say.
double unfinished_share(ObjectReader& latency) {
  const auto completed = figure(latency, "samples_completed");
  const auto unfinished = figure(latency, "samples_unfinished");
  if (!completed || !unfinished || *completed + *unfinished <= 0) return 1;
  return *unfinished / (*completed + *unfinished);
}

bool read_admitted(ObjectReader& filler) {
  bool unlisted = true;
  for (ObjectReader& instance : filler.children("instances", Presence::kOptional)) {
    if (instance.flag("admitted", true)) return true;
    unlisted = false;
  }
  return unlisted;
}

FillerFigures read_filler(ObjectReader object) {
  FillerFigures out;
  out.name = name_of(object, "name");
  out.admitted = read_admitted(object);
  out.requests_per_s = figure(object, "requests_per_s");
  out.of_own_gpu = figure(object, "normalised_fraction");
  auto latency = object_of(object, "latency");
  const double unfinished = latency ? unfinished_share(*latency) : 0;
  for (std::size_t i = 0; latency && i < out.latency.size(); ++i) {
    auto value = object_of(*latency, "p" + std::to_string(kJudgedPercentiles[i]));
    if (!value) continue;
    const auto ms = span_ms(*value, "value_ns");
    const double beyond = (100 - kJudgedPercentiles[i]) / 100.0;
    const bool bound =
        value->flag("lower_bound", false) && unfinished > kUnfinishedShare * beyond;
    if (ms) out.latency[i] = BoundedFigure{*ms, bound};
  }
  return out;
}

std::string read_parameters(ObjectReader& policy) {
  std::string out;
  for (ObjectReader& parameter : policy.children("parameters", Presence::kOptional)) {
    out += (out.empty() ? "" : ";") + parameter.text("name") + "=" + parameter.text("value");
  }
  return out;
}

void no_twins(ObjectReader& object, const std::string& name, std::set<std::string>& seen) {
  if (!name.empty() && !seen.insert(name).second) {
    object.fault("", "found " + quote_found(name) + " a second time");
  }
}

PolicyFigures read_policy(ObjectReader object) {
  PolicyFigures out;
  out.policy = name_of(object, "policy");
  out.parameters = read_parameters(object);
  if (auto training = object_of(object, "training")) {
    out.iteration_ms = span_ms(*training, "iteration_mean_ns");
  }
  std::set<std::string> seen;
  for (ObjectReader& filler : object.children("fillers", Presence::kOptional)) {
    out.fillers.push_back(read_filler(filler));
    no_twins(filler, out.fillers.back().name, seen);
  }
  return out;
}

void read_baseline(ObjectReader& baseline, ReportFigures& report) {
  report.alone_iteration_ms = span_ms(baseline, "training_iteration_mean_ns");
  std::set<std::string> seen;
  for (ObjectReader& filler : baseline.children("fillers", Presence::kOptional)) {
    report.alone.push_back({name_of(filler, "name"), figure(filler, "requests_per_s")});
    no_twins(filler, report.alone.back().name, seen);
  }
}

std::string read_measured(ObjectReader& measured) {
  std::string out = measured.text("place", "measured");
  for (const char* key : {"date", "driver"}) {
    const std::string text = measured.text(key, "");
    if (text.empty()) continue;
    out += key == std::string_view("driver") ? ", driver " + text : ", " + text;
  }
  return out;
}

ReportFigures read_report(ObjectReader& root, const std::string& file) {
  ReportFigures out;
  out.place = root.pointer().empty() ? file : file + "#" + root.pointer();
  out.config = name_of(root, "config");
  out.device = root.text("device", "");
  if (auto measured = object_of(root, "measured")) out.measured = read_measured(*measured);
  if (auto baseline = object_of(root, "baseline")) read_baseline(*baseline, out);
  std::set<std::string> seen;
  for (ObjectReader& policy : root.children("policies")) {
    out.policies.push_back(read_policy(policy));
    const PolicyFigures& made = out.policies.back();
    if (!made.policy.empty()) {
      no_twins(policy, made.policy + " (" + made.parameters + ")", seen);
    }
  }
  return out;
}

CheckedResult<std::vector<ReportFigures>> read(const CheckedResult<JsonDocument>& document) {
  if (!document) return tl::make_unexpected(document.error());
  Errors errors;
  std::vector<ReportFigures> reports;
  for (ObjectReader& root : document->roots(errors)) {
    if (root.present()) reports.push_back(read_report(root, document->file()));
  }
  if (errors.empty() && reports.empty()) {
    errors.push_back({document->file(), "", "found no report; expected results of run or measure"});
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return reports;
}

}  // namespace

CheckedResult<std::vector<ReportFigures>> read_reports(const std::string& path) {
  return read(JsonDocument::load_file(path));
}

CheckedResult<std::vector<ReportFigures>> parse_reports(std::string_view text,
                                                        const std::string& file) {
  return read(JsonDocument::parse(text, file));
}

namespace {

// Empty: the config is known; else why not.
std::string unknown_config(const std::string& name, const std::vector<MatchedReports>& matched) {
  std::vector<std::string> known;
  for (const MatchedReports& config : matched) {
    if (config.label == name || config.config == name) return {};
    known.push_back(config.label);
  }
  return unknown_name_message("config", name, known);
}

Result<RowRole> role_of(const CsvTable& table, std::size_t row) {
  const std::string_view text = table.text(row, "role");
  if (text == "fit") return RowRole::kFit;
  if (text == "judge" || text.empty()) return RowRole::kJudge;
  return table.fault(row, "role", "\"fit\" or \"judge\"");
}

}  // namespace

std::string_view role_name(RowRole role) { return role == RowRole::kFit ? "fit" : "judge"; }

Result<MeasuredRoles> MeasuredRoles::read(const std::string& path,
                                          const std::vector<MatchedReports>& matched) {
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::read(path));
  return from(table, matched);
}

Result<MeasuredRoles> MeasuredRoles::parse(std::string_view text, const std::string& file,
                                           const std::vector<MatchedReports>& matched) {
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::parse(text, file));
  return from(table, matched);
}

Result<MeasuredRoles> MeasuredRoles::from(const CsvTable& table,
                                          const std::vector<MatchedReports>& matched) {
  const auto there = table.expect(std::array<std::string_view, 3>{"config", "policy", "role"});
  if (!there) return tl::make_unexpected(there.error().front());
  MeasuredRoles out;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    Rule rule{std::string(table.text(row, "config")), std::string(table.text(row, "policy")),
              RowRole::kJudge};
    BUBBLESIM_ASSIGN_OR_RETURN(rule.role, role_of(table, row));
    if (const std::string why = unknown_config(rule.config, matched); !why.empty()) {
      return fail(table.file(), table.place(row), why);
    }
    if (rule.policy == "*") rule.policy.clear();
    out.rules_.push_back(std::move(rule));
  }
  return out;
}

Result<void> MeasuredRoles::add_fit(const std::string& name,
                                    const std::vector<MatchedReports>& matched) {
  Rule rule{name, {}, RowRole::kFit};
  const std::size_t colon = name.rfind(':');
  if (colon != std::string::npos && !unknown_config(name, matched).empty()) {
    rule.config = name.substr(0, colon);
    rule.policy = name.substr(colon + 1);
  }
  if (const std::string why = unknown_config(rule.config, matched); !why.empty()) {
    return fail("--fit", {}, why);
  }
  rules_.push_back(std::move(rule));
  return {};
}

RowRole MeasuredRoles::role(const MatchedReports& config, const std::string& policy) const {
  RowRole out = RowRole::kJudge;
  for (const Rule& rule : rules_) {
    if (rule.config != config.label && rule.config != config.config) continue;
    if (rule.policy.empty() || rule.policy == policy) out = rule.role;
  }
  return out;
}

}  // namespace bubblesim::validate
