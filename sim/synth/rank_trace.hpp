// Makes a trace of what a rank did. Internal to record_trace.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/synth/collective_labels.hpp"
#include "sim/synth/rank_recording.hpp"
#include "traces/trace.hpp"

namespace bubblesim::synth {

/// Threads, streams, calls, operations, edges, collectives, markers, memory and counters; what is
/// the job's (device, world size, provenance) is the caller's. What begins after the first
/// `iterations` iterations is left out.
[[nodiscard]] traces::RankTrace make_rank_trace(const workload::JobProgram& job,
                                                const program::Program& program,
                                                const std::vector<CollectiveLabel>& labels,
                                                const RankRecording& recording,
                                                std::uint64_t iterations);

}  // namespace bubblesim::synth
