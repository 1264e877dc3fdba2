#include "sim/validate/sharing_table.hpp"

#include <utility>

#include "sim/base/data_file.hpp"
#include "sim/base/json_reader.hpp"

namespace bubblesim::validate {
namespace {

/// The metrics' first.
constexpr std::array<std::string_view, 10> kColumns = {
    "inference_throughput_rel", "training_throughput_rel", "avg_ms",   "p90_ms", "p95_ms",
    "p99_ms",                   "inference",               "training", "system", "solo_avg_ms"};

Result<double> positive(const CsvTable& table, std::size_t row, std::string_view column) {
  const auto value = table.figure(row, column);
  if (value && *value > 0) return *value;
  return table.fault(row, column, "a number above 0");
}

Result<SharingRow> read_row(const CsvTable& table, std::size_t row) {
  SharingRow out;
  BUBBLESIM_ASSIGN_OR_RETURN(out.role, role_of(table, row));
  out.inference = table.text(row, "inference");
  out.training = table.text(row, "training");
  out.system = table.text(row, "system");
  for (std::size_t i = 0; i < out.measured.size(); ++i) {
    BUBBLESIM_ASSIGN_OR_RETURN(out.measured[i], positive(table, row, kColumns[i]));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(out.solo_ms, positive(table, row, "solo_avg_ms"));
  return out;
}

SystemSetting read_system(ObjectReader& object) {
  SystemSetting out;
  out.name = object.text("name");
  out.policy = object.text("policy");
  ObjectReader parameters = object.child("parameters", Presence::kOptional);
  if (!parameters.present()) return out;
  for (const std::string& key : parameters.keys()) {
    std::string text = parameters.raw(key);
    if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
    out.parameters.emplace_back(key, std::move(text));
  }
  return out;
}

SharingSetting read_setting(ObjectReader& root) {
  SharingSetting out;
  (void)root.text("note", "");
  out.device = root.text("device");
  ObjectReader arrivals = root.child("arrivals");
  (void)arrivals.text("source");
  out.load = arrivals.number("load", {0.01, 1});
  out.ramp = arrivals.number("ramp", {0, 0.99}, 0);
  out.burst = arrivals.duration("burst", {}, Duration{});
  out.seed = arrivals.integer<std::uint64_t>("seed", {0, 1ULL << 53U}, 1);
  out.least_length = arrivals.duration("least_length", {Duration{1000000000}});
  out.requests = arrivals.integer<std::uint32_t>("requests", {1, 1u << 24U});
  for (ObjectReader& it : root.children("systems")) out.systems.push_back(read_system(it));
  root.finish();
  return out;
}

}  // namespace

std::string_view metric_name(SharingMetric metric) {
  return kColumns[static_cast<std::size_t>(metric)];
}

CheckedResult<std::vector<SharingRow>> read_sharing_rows(const CsvTable& table) {
  BUBBLESIM_RETURN_IF_ERROR(table.expect(kColumns));
  std::vector<SharingRow> out;
  Errors errors;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    out.push_back(take<SharingRow>(read_row(table, i), errors));
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return out;
}

CheckedResult<SharingSetting> find_sharing_setting(const std::string& name,
                                                   const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path,
                             find_data_file(name, configs + "/validation", "setting"));
  BUBBLESIM_ASSIGN_OR_RETURN(SharingSetting out, read_whole_file(path, read_setting));
  out.path = path;
  return out;
}

}  // namespace bubblesim::validate
