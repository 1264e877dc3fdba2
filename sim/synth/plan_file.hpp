// Reads parallel plans: configs/plans/*.json, or an object inside a run config.
// configs/plans/README.md documents every key. All faults at once.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"
#include "sim/synth/plan_spec.hpp"

namespace bubblesim::synth {

/// Limits of a plan: ranks (of one split and of all), samples of an iteration, samples of a
/// micro-batch, stages a rank.
inline constexpr std::uint32_t kMostRanks = 65'536;
inline constexpr std::uint32_t kMostSamples = 1U << 24U;
inline constexpr std::uint32_t kMostMicroBatch = 1U << 16U;
inline constexpr std::uint32_t kMostChunks = 1024;

inline constexpr std::array<Choice<Folding>, 3> kFoldingNames{{
    {"all", Folding::kAll}, {"data", Folding::kData}, {"nothing", Folding::kNothing}}};

/// Faults go to the reader's error list; paths in the plan are relative to `folder`.
[[nodiscard]] PlanSpec read_plan(ObjectReader& object, const std::string& folder);

[[nodiscard]] CheckedResult<PlanSpec> read_plan_file(const std::string& path);

/// `label` stands for the file in messages.
[[nodiscard]] CheckedResult<PlanSpec> parse_plan(std::string_view text, std::string label);

}  // namespace bubblesim::synth
