// Plans and records of jobs as files, from one program of a build to another of the same
// (bubblesim and bubblesim_replay): the tables' bytes as memory holds them, after a line that says
// what they are, and before their hash. A file of another build, or one that is not whole, is a
// fault.
//
// A reader of a plan checks everything that an index refers to, so that a runner need not; also
// that every awaited operation is launched (PlanCheck).
#pragma once

#include <string>
#include <string_view>

#include "capture/replay/job_plan.hpp"
#include "capture/replay/job_record.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

[[nodiscard]] std::string job_plan_bytes(const JobPlan& plan);
/// `label` stands for the file in messages.
[[nodiscard]] CheckedResult<JobPlan> parse_job_plan(std::string_view bytes, std::string label);
/// Writes the file whole or not at all: under another name first.
[[nodiscard]] Result<void> write_job_plan(const std::string& path, const JobPlan& plan);
[[nodiscard]] CheckedResult<JobPlan> read_job_plan(const std::string& path);

[[nodiscard]] std::string job_record_bytes(const JobRecord& record);
[[nodiscard]] Result<JobRecord> parse_job_record(std::string_view bytes, std::string label);
[[nodiscard]] Result<void> write_job_record(const std::string& path, const JobRecord& record);
[[nodiscard]] Result<JobRecord> read_job_record(const std::string& path);

}  // namespace bubblesim::capture
