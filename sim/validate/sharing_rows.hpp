// Measured co-location pairs: a row is one pair under one system. Columns: role, inference,
// training, system, inference_throughput_rel, training_throughput_rel, avg_ms, p90_ms, p95_ms,
// p99_ms and the same four alone, as solo_*.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/validate/csv_table.hpp"
#include "sim/validate/training_rows.hpp"

namespace bubblesim::validate {

enum class SharingMetric : std::uint8_t {
  kInferenceThroughput,  ///< requests a second, relative to alone
  kTrainingThroughput,   ///< iterations a second, relative to alone
  kAverage, kP90, kP95, kP99,  ///< service time, ms
};
inline constexpr std::size_t kSharingMetrics = 6;
inline constexpr std::array<SharingMetric, kSharingMetrics> kAllSharingMetrics = {
    SharingMetric::kInferenceThroughput, SharingMetric::kTrainingThroughput,
    SharingMetric::kAverage,             SharingMetric::kP90,
    SharingMetric::kP95,                 SharingMetric::kP99};
/// The column's name.
[[nodiscard]] std::string_view metric_name(SharingMetric metric);

using SharingFigures = std::array<double, kSharingMetrics>;

struct SharingRow {
  Role role = Role::kJudge;
  std::string inference;
  std::string training;
  std::string system;
  std::string place;         ///< "line 12"
  SharingFigures measured{};
  double solo_ms = 0;        ///< mean alone
};

/// Faults: a missing column, a figure that is not a positive number, an unknown role.
[[nodiscard]] CheckedResult<std::vector<SharingRow>> read_sharing_rows(const CsvTable& table);

}  // namespace bubblesim::validate
