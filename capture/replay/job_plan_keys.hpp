// Names of a plan file's enumerators; what writes the file and what reads it include this.
#pragma once

#include <array>

#include "capture/replay/job_plan.hpp"
#include "sim/base/json_reader.hpp"

namespace bubblesim::capture {

inline constexpr std::string_view kJobPlanFormat = "bubblesim job plan 1";

inline constexpr std::array<Choice<policy::Role>, 3> kRoleNames{{
    {"training", policy::Role::kTraining},
    {"offline", policy::Role::kOffline},
    {"online", policy::Role::kOnline},
}};

// In columns enumerators are numbers, in the order of their declaration; a change of that order
// needs another version of the format.
inline constexpr std::uint32_t kLastWorkKind = 3;
inline constexpr std::uint32_t kLastBound = 2;
inline constexpr std::uint32_t kLastCopyPath = 2;
inline constexpr std::uint32_t kLastStepKind = 7;
static_assert(static_cast<std::uint32_t>(program::WorkKind::kMemset) == kLastWorkKind);
static_assert(static_cast<std::uint32_t>(program::KernelClass::kMemory) == kLastBound);
static_assert(static_cast<std::uint32_t>(CopyPath::kDeviceToDevice) == kLastCopyPath);
static_assert(static_cast<std::uint32_t>(program::StepKind::kEnd) == kLastStepKind);

}  // namespace bubblesim::capture
