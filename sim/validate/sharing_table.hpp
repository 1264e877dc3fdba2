// Measured co-location pairs: a row is one pair under one system. Columns: role, inference,
// training, system, inference_throughput_rel, training_throughput_rel, avg_ms, p90_ms, p95_ms,
// p99_ms and the same four alone, as solo_*. What the columns do not say (the device, how requests
// came, which policy with which parameters stands for each system): configs/validation/*.json.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/csv_table.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/validate/role.hpp"

namespace bubblesim::validate {

enum class SharingMetric : std::uint8_t {
  kInferenceThroughput,  ///< requests a second, relative to alone
  kTrainingThroughput,   ///< iterations a second, relative to alone
  kAverage, kP90, kP95, kP99,  ///< service time, ms
};
inline constexpr std::array kAllSharingMetrics = {
    SharingMetric::kInferenceThroughput, SharingMetric::kTrainingThroughput,
    SharingMetric::kAverage,             SharingMetric::kP90,
    SharingMetric::kP95,                 SharingMetric::kP99};
/// The column's name.
[[nodiscard]] std::string_view metric_name(SharingMetric metric);

using SharingFigures = std::array<double, kAllSharingMetrics.size()>;

struct SharingRow {
  Role role = Role::kJudge;
  std::string inference;
  std::string training;
  std::string system;
  SharingFigures measured{};
  double solo_ms = 0;        ///< mean alone
};

/// Faults, all at once: a missing column, a figure that is not a positive number, an unknown role.
[[nodiscard]] CheckedResult<std::vector<SharingRow>> read_sharing_rows(const CsvTable& table);

struct SystemSetting {
  std::string name;    ///< as the table calls it
  std::string policy;  ///< of the registry
  std::vector<std::pair<std::string, std::string>> parameters;  ///< names and texts
};

struct SharingSetting {
  std::string path;
  std::string device;       ///< a file of configs/devices and of configs/efficiency
  double load = 0.5;
  double ramp = 0;
  Duration burst{};
  std::uint64_t seed = 1;
  Duration least_length{};  ///< of a run
  std::uint32_t requests = 60;  ///< a run is as long as so many take to come, if that is longer
  std::vector<SystemSetting> systems;
};

/// `name` is a path, else the id of a file in configs/validation.
[[nodiscard]] CheckedResult<SharingSetting> find_sharing_setting(const std::string& name,
                                                                 const std::string& configs);

}  // namespace bubblesim::validate
