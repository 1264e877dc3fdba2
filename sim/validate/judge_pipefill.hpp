// PipeFill's days (arXiv 2410.07192): a 40B language model trained with 16 pipeline stages, each
// 8-way tensor parallel, and a global batch that stays the same: 82, 34 and 26 days on 1K, 4K and
// 8K GPUs. They fit (m + p - 1) + 3 with p = 16 and m = 64, 16, 8 micro-batches.
//
// The number of iterations is not published, so days are judged as ratios: the days on 1K GPUs are
// set to 82. The machine, the framework and the micro-batch are not published either: V100-32GB,
// Megatron-DeepSpeed, fp16, full recomputation, one sequence of 2048 tokens.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/validate/report.hpp"

namespace bubblesim::validate {

/// Jobs on 1K, 4K, 8K and (nothing published) 2K and 16K GPUs, folded. The note of each has the
/// share of time that stages idle, beside the schedule's own (p-1)/(m+p-1).
[[nodiscard]] CheckedResult<std::vector<ReportRow>> judge_pipefill(const std::string& configs,
                                                                   std::size_t threads);

}  // namespace bubblesim::validate
