// The generators behind registry.hpp, one file each. The registry has checked that all numbers
// are at least 1 and that tables stay small.
#pragma once

#include "sim/pipeline/registry.hpp"

namespace bubblesim::pipeline {

[[nodiscard]] Result<PlannedSchedule> make_sequential(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_gpipe(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_1f1b(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_interleaved(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_zb_h1(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_zb_h2(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_zb_v(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_dualpipe(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_dualpipev(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_chimera(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_graph(const ScheduleRequest& request);

}  // namespace bubblesim::pipeline
