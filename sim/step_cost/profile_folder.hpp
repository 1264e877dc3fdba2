// Layer times from a profile of LLMServingSim 2 (github.com/casys-kaist/LLMServingSim, its page
// "Output bundle"): a folder with meta.yaml and, for each number of GPUs that share a layer, tpN/
// with dense.csv, per_sequence.csv, attention.csv and, for mixtures of experts, moe.csv in tp1.
// Tables may be packed by gzip. Times are of one GPU, in microseconds.
//
// The points of attention.csv that meta.yaml declares (attention_grid) are taken; one that is
// missing is a fault. A batch of n decoding sequences beside a prompt needs n + 1 places, so points
// with n = max_num_seqs are declared for decoding alone only; none is taken above that, and of an
// engine of one sequence nothing beside a prompt. Other points are counted.
#pragma once

#include <cstdint>
#include <string>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/step_cost/layer_tables.hpp"

namespace bubblesim::step_cost {

inline constexpr CounterSpec kPointsOffGrid{
    "attention_points_off_grid", Severity::kInfo,
    "points of attention.csv that meta.yaml does not declare, or of more sequences than its "
    "max_num_seqs; not used"};

inline constexpr CounterSpec kPointsTwice{
    "layer_points_measured_twice", Severity::kNotice,
    "rows of a point for which an earlier row says another time; the last row's time is taken"};

struct ImportedLayers {
  LayerTables tables;
  CounterSet counters;
};

/// Faults: files that are missing or not of this form, unknown layers, tables with holes.
[[nodiscard]] Result<ImportedLayers> read_profile_folder(const std::string& folder);

}  // namespace bubblesim::step_cost
