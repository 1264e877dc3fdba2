// Makes schedules by name, each from a closed-form rule of its order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/pipeline/schedule.hpp"

namespace bubblesim::pipeline {

/// More actions than this, over all ranks, are refused; 16 million take about 1 GB with times.
inline constexpr std::uint64_t kMaxActions = 16'000'000;
inline constexpr std::uint32_t kMaxRanks = 16'384;

struct ScheduleRequest {
  std::uint32_t ranks = 4;          ///< p: depth of the pipeline in devices
  std::uint32_t micro_batches = 8;  ///< m; with `graph`, of the smallest micro-batch size
  std::uint32_t chunks = 0;         ///< v: stages a rank; 0 is the schedule's own default
  /// interleaved: contiguous micro-batches of one chunk; 0 is p.
  std::uint32_t group = 0;
  std::optional<StageGraph> graph;  ///< for `graph`; a chain if not given
};

struct PlannedSchedule {
  Schedule schedule;
  StageGraph graph;
};

struct ScheduleSpec {
  std::string name;
  std::string summary;  ///< one sentence
  std::string rule;     ///< the allowed p, m and v
  std::string source;
  std::uint32_t default_chunks = 1;  ///< stages a rank
  Result<PlannedSchedule> (*make)(const ScheduleRequest&) = nullptr;
};

/// All schedules, in the order of help.
[[nodiscard]] const std::vector<ScheduleSpec>& schedule_specs();

/// The result passes check(). An unknown name is refused with the nearest one. If p, m or v breaks
/// the schedule's rule, the fault names the nearest allowed value.
[[nodiscard]] Result<PlannedSchedule> make_schedule(std::string_view name,
                                                    const ScheduleRequest& request);

}  // namespace bubblesim::pipeline
