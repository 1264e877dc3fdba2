// The symbols that NCCL looks for in a profiler plug-in (NCCL_PROFILER_PLUGIN).
//
// While nothing records, the only cost is a counter. Every function returns success for any
// arguments: NCCL's work never depends on the plug-in. Events asked for: v4 collectives, sends and
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
