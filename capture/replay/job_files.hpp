// Plans and records of jobs as files between two programs of one build (bubblesim and
// bubblesim_replay): a line that names the format, the tables' bytes as in memory, a hash. A file
// of another build, or a truncated one, is a fault.
//
// The hash answers for the indices of a plan, which a writer of this build wrote: nothing protects
// from a made one. A reader checks that the plan fits a gate and that every awaited operation is
// launched: a runner need not.
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
/// Writes another file and renames it, so that the file is whole or absent.
[[nodiscard]] Result<void> write_job_plan(const std::string& path, const JobPlan& plan);
[[nodiscard]] CheckedResult<JobPlan> read_job_plan(const std::string& path);

[[nodiscard]] std::string job_record_bytes(const JobRecord& record);
[[nodiscard]] Result<JobRecord> parse_job_record(std::string_view bytes, std::string label);
[[nodiscard]] Result<void> write_job_record(const std::string& path, const JobRecord& record);
[[nodiscard]] Result<JobRecord> read_job_record(const std::string& path);

}  // namespace bubblesim::capture
