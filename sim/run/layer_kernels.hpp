// Kernel times of a server's steps from a file of layer times (bubblesim.layers).
#pragma once

#include <string>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/run/measured_kernels.hpp"

namespace bubblesim::run {

inline constexpr CounterSpec kLayersOfOneSequence{
    "layer_tables_of_one_sequence", Severity::kLoss,
    "servers of several sequences at once whose layer times were measured of one alone: how much "
    "longer each further sequence makes a step is an estimate"};

/// Faults: the first one of the file, and step_cost::tables_for.
[[nodiscard]] Result<MeasuredKernels> load_layer_kernels(const std::string& path,
                                                         const synth::ServerPlan& plan);

}  // namespace bubblesim::run
