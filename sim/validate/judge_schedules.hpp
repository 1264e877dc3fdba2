// Pipeline schedules against what is known of them: closed forms, and GraphPipe's case study.
#pragma once

#include <vector>

#include "sim/base/result.hpp"
#include "sim/validate/report.hpp"

namespace bubblesim::validate {

/// A row a schedule: cases (depths 2 to 32, micro-batches p to 8p, several times) that have a
/// closed form, and those whose idle times and peaks equal it exactly.
[[nodiscard]] std::vector<ReportRow> judge_schedules();

/// GraphPipe (arXiv 2406.17145), section 7.5: two branches of four stages on eight devices, one
/// after the other (8 deep) and side by side (4 deep). About 10 % are gained with micro-batches
/// of one size. What twice the size gains besides is its kernels' and is stated, not judged.
[[nodiscard]] Result<std::vector<ReportRow>> judge_graphpipe();

}  // namespace bubblesim::validate
