// What a sweep varies, as axes of a report: the values of each, in order, and what a reader may
// choose among.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/store/planned_run.hpp"

namespace bubblesim::report {

/// A place among an axis's values or choices; kNoValue: the run does not set it.
using AxisPlace = std::int32_t;
inline constexpr AxisPlace kNoValue = -1;

struct ReportAxis {
  std::string pointer;
  std::string unit;                  ///< "ms" where values are spans of time; else empty
  std::vector<std::string> values;   ///< as JSON; ascending if numbers, else as first seen
  std::vector<double> numbers;       ///< of the values; empty: they are no numbers
  std::vector<std::string> choices;  ///< what a filter offers: the values, or ranges of them
  std::vector<AxisPlace> choice_of;  ///< by value
  std::unordered_map<std::string, AxisPlace> places;  ///< of values

  [[nodiscard]] AxisPlace place_of(std::span<const store::Setting> settings) const;
};

/// More numbers than this are offered as kAxisRanges ranges of about equally many values.
inline constexpr std::size_t kMostChoices = 24;
inline constexpr std::size_t kAxisRanges = 8;

/// Whether the setting is an axis of a report. The seed, which is averaged over, and the choice of
/// a policy, which has a colour, are none; a parameter of a policy is one.
[[nodiscard]] bool is_axis(const store::Setting& setting);

/// Axes of the runs whose settings are given, by pointer as first seen.
[[nodiscard]] std::vector<ReportAxis> axes_of(
    std::span<const std::vector<store::Setting>* const> runs);

/// Name of a parameter that the setting sets, of "/policies/0/parameters/window"; else empty.
[[nodiscard]] std::string swept_parameter(const store::Setting& setting);

}  // namespace bubblesim::report
