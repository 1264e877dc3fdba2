// Schedules as CSV in the grammar of PyTorch's torch.distributed.pipelining (schedules.py,
// _Action): a row a rank, a cell an action, an empty cell an idle step.
//
//   0F0  2B3  1I0  1W0  (0F7;7B3)OVERLAP_F_B
//
// Also understood: BW for a whole backward. In a file that has W and no I, or that has BW, "B" is
// the old spelling of I. SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD, RESHARD and REDUCE_GRAD are
// accepted and counted; they do not change the order of compute.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "sim/base/result.hpp"
#include "sim/pipeline/execute.hpp"
#include "sim/pipeline/schedule.hpp"

namespace bubblesim::pipeline {

inline constexpr std::uint32_t kMaxCsvStage = 65'535;
inline constexpr std::uint32_t kMaxCsvMicroBatch = 1'048'575;

enum class CsvSpelling : std::uint8_t {
  kCurrent,  ///< I, W, B = I + W
  kOld,      ///< B for I, W, BW for the whole
};

struct CsvSchedule {
  Schedule schedule;  ///< named after the file; stages placed where their forwards are
  CsvSpelling spelling = CsvSpelling::kCurrent;
  std::map<std::string, std::uint64_t> ignored;  ///< by kind: SEND_F, UNSHARD, ...
};

/// Reads a schedule without checking it; the caller uses infer_graph() and check(). Faults name row
/// and cell, from 1, the text found and what was expected.
[[nodiscard]] CheckedResult<CsvSchedule> parse_csv(std::string_view text,
                                                   const std::string& file);

/// One row a rank, no idle cells; parse_csv reads the same lists back.
[[nodiscard]] std::string write_csv(const Schedule& schedule);

/// Writes the schedule with each action as one step, and an empty cell for every step in which a
/// rank waits.
[[nodiscard]] std::string write_csv_steps(const Schedule& schedule, const StageGraph& graph);

}  // namespace bubblesim::pipeline
