#include "sim/validate/sharing_rows.hpp"

#include <utility>

namespace bubblesim::validate {
namespace {

Result<double> positive(const CsvTable& table, std::size_t row, std::string_view column) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto value, table.number(row, column));
  if (value && *value > 0) return *value;
  return fail(table.file(), table.place(row),
              std::string(column) + ": expected a number above 0");
}

Result<SharingRow> read_row(const CsvTable& table, std::size_t row) {
  SharingRow out;
  BUBBLESIM_ASSIGN_OR_RETURN(out.role, role_of(table, row));
  out.inference = table.text(row, "inference");
  out.training = table.text(row, "training");
  out.system = table.text(row, "system");
  out.place = table.place(row);
  for (const SharingMetric metric : kAllSharingMetrics) {
    BUBBLESIM_ASSIGN_OR_RETURN(out.measured[static_cast<std::size_t>(metric)],
                               positive(table, row, metric_name(metric)));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(out.solo_ms, positive(table, row, "solo_avg_ms"));
  return out;
}

}  // namespace

std::string_view metric_name(SharingMetric metric) {
  switch (metric) {
    case SharingMetric::kInferenceThroughput: return "inference_throughput_rel";
    case SharingMetric::kTrainingThroughput: return "training_throughput_rel";
    case SharingMetric::kAverage: return "avg_ms";
    case SharingMetric::kP90: return "p90_ms";
    case SharingMetric::kP95: return "p95_ms";
    case SharingMetric::kP99: return "p99_ms";
  }
  return "";
}

CheckedResult<std::vector<SharingRow>> read_sharing_rows(const CsvTable& table) {
  Errors errors;
  for (const std::string_view column : {"inference", "training", "system", "solo_avg_ms"}) {
    if (!table.has(column)) {
      errors.push_back({table.file(), "line 1", "no column " + std::string(column)});
    }
  }
  for (const SharingMetric metric : kAllSharingMetrics) {
    if (table.has(metric_name(metric))) continue;
    errors.push_back({table.file(), "line 1", "no column " + std::string(metric_name(metric))});
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  std::vector<SharingRow> out;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    auto read = read_row(table, row);
    if (read) {
      out.push_back(std::move(*read));
    } else {
      errors.push_back(std::move(read).error());
    }
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return out;
}

}  // namespace bubblesim::validate
