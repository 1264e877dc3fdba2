#include "sim/validate/report_reader.hpp"

#include <set>
#include <utility>

#include "sim/base/json_reader.hpp"
#include "sim/base/nearest.hpp"

namespace bubblesim::validate {
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

// Of requests that have a latency; 1 if the report does not say.
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

}  // namespace bubblesim::validate
