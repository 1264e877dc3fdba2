// Small plans for tests of capture/replay, put together step by step.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "capture/replay/job_plan.hpp"

namespace bubblesim::capture::testing {

using std::chrono::microseconds;

/// A training plan of one iteration with no threads.
[[nodiscard]] JobPlan empty_plan(std::uint32_t streams);

/// Adds a kernel of one block that takes `solo` alone on the stream; returns its index.
std::uint32_t add_kernel(JobPlan& plan, std::uint32_t stream, Duration solo);

/// The plan's last operation waits for operation `before`.
void add_edge(JobPlan& plan, std::uint32_t before);

[[nodiscard]] program::Step pause(Duration think);
[[nodiscard]] program::Step launch(Duration think, Duration cost, std::uint32_t op,
                              std::uint32_t count = 1);
[[nodiscard]] program::Step step(program::StepKind kind, std::uint32_t target = 0,
                                 Duration think = {});

/// Gives the step of the thread a detail.
void detail(JobPlan& plan, std::uint32_t thread, std::uint32_t step,
            const program::StepDetail& detail);

/// A plan that uses every field of the format.
[[nodiscard]] JobPlan full_plan();

}  // namespace bubblesim::capture::testing
