// The symbols that NCCL looks for in a profiler plug-in (NCCL_PROFILER_PLUGIN).
//
// Costs nothing but a counter while nothing records. Every function returns success whatever it is
// given: NCCL's own work never depends on this one. Events asked for: v4 collectives, sends and
// receives of launches; v5 and v6 the calls, and which sends and receives a launch has.
#pragma once

#include "capture/record/nccl/profiler_abi.hpp"

#define BUBBLESIM_NCCL_EXPORT __attribute__((visibility("default")))

extern "C" {
BUBBLESIM_NCCL_EXPORT extern const bubblesim::capture::nccl_abi::ProfilerV4 ncclProfiler_v4;
BUBBLESIM_NCCL_EXPORT extern const bubblesim::capture::nccl_abi::ProfilerV5 ncclProfiler_v5;
BUBBLESIM_NCCL_EXPORT extern const bubblesim::capture::nccl_abi::ProfilerV5 ncclProfiler_v6;
}

#undef BUBBLESIM_NCCL_EXPORT
