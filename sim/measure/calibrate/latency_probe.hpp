// Latencies of launches, queues, waits and notices, by one process that has the GPU to itself.
#pragma once

#include <vector>

#include "sim/measure/calibrate/probe.hpp"

namespace bubblesim::measure {

/// A pass: a kernel after a pause, so that the GPU is idle; one more as soon as the host has come
/// back from waiting for it; then a long one with a row of others behind it that were launched
/// while it ran.
[[nodiscard]] ProbeRun latency_run(const hardware::GpuSpec& spec);

/// launch_latency: return of a call that found its stream idle, to the kernel's start.
/// stream_gap: end to start in the row, of kernels that were launched before the one ahead of them
/// started; what the host does is not in it.
/// sync_latency: a kernel's end to the next launch call, with a wait between them: the wait's
/// return, and the few instructions from there to the call.
/// completion_notice: a kernel's end to the process's knowledge of it.
[[nodiscard]] std::vector<Finding> latency_findings(const Records& records);

}  // namespace bubblesim::measure
