// Job plans as files: JSON, "bubblesim job plan 1", tables by columns, spans in whole nanoseconds.
//
// A reader checks everything that an index refers to, so that whoever runs a plan need not: also
// that what is waited for is launched. Every fault of a file is reported with its place. Edges are
// written in the order of the operations that wait, so program::Op::first_edge may differ in the
// plan that is read.
#pragma once

#include <string>
#include <string_view>

#include "capture/replay/job_plan.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

[[nodiscard]] std::string job_plan_text(const JobPlan& plan);
/// Whole or not at all: under another name first.
[[nodiscard]] Result<void> write_job_plan(const std::string& path, const JobPlan& plan);

/// `label` stands for the file in messages.
[[nodiscard]] CheckedResult<JobPlan> parse_job_plan(std::string_view text, std::string label);
[[nodiscard]] CheckedResult<JobPlan> read_job_plan(const std::string& path);

}  // namespace bubblesim::capture
