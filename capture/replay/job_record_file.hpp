// Records of jobs as files: JSON, "bubblesim job record 1", spans in whole nanoseconds. Written by
// bubblesim_replay, read by the rig; a worker may have died in the midst, so they are written under
// another name first.
#pragma once

#include <string>
#include <string_view>

#include "capture/replay/job_record.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

[[nodiscard]] std::string job_record_text(const JobRecord& record);
[[nodiscard]] Result<void> write_job_record(const std::string& path, const JobRecord& record);

/// `label` stands for the file in messages.
[[nodiscard]] CheckedResult<JobRecord> parse_job_record(std::string_view text, std::string label);
[[nodiscard]] CheckedResult<JobRecord> read_job_record(const std::string& path);

}  // namespace bubblesim::capture
