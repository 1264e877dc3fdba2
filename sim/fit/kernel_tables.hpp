// Measured kernels: what is known of how long kernels take on real GPUs. The readers take public
// tables and profiler traces as their authors published them, below one folder.
//
// Rows are for fitting or for judging, by a rule that looks at whole models, never at rows:
//   Vidur      (A100, fp16)    fit Llama-2-7b, Llama-2-70b, phi-2; judge the other models
//   NeuSight   (H100, fp32)    fit BERT-large, GPT2-large, OPT-1.3B; judge GPT3-XL and GPT3-2.7B
//   TrioSim    (H100, fp32)    VGG13's convolutions: fit those of odd number, judge the even ones
//   profiler traces            fit and judge listed by name in kernel_tables.cpp
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/model/kernel_work.hpp"
#include "sim/validate/row_role.hpp"

namespace bubblesim::fit {

struct KernelMeasurement {
  model::KernelWork work;
  Duration measured{};
  std::string device;   ///< id of the device file
  std::string source;   ///< publisher and model: "vidur Llama-2-7b-hf"
  validate::RowRole role = validate::RowRole::kJudge;
};

struct TableFile {
  std::string path;
  std::string device;
  std::string source;
  validate::RowRole role = validate::RowRole::kJudge;
};

struct KernelMeasurements {
  std::vector<KernelMeasurement> rows;
  std::vector<std::string> sources;  ///< as read, in order, each once
  CounterSet counters;

  /// A row of a file, its time in a unit of so many nanoseconds. Without a work, or a time above
  /// zero, it is counted as unread.
  void add(const TableFile& file, const std::optional<model::KernelWork>& work,
           std::optional<double> time, double nanoseconds);
};

inline constexpr CounterSpec kKernelTablesMissing{
    "kernel_tables_missing", Severity::kNotice,
    "tables of measured kernels that are not in the data folder; the fit does without them"};
inline constexpr CounterSpec kKernelRowsUnread{
    "kernel_rows_unread", Severity::kInfo,
    "rows of measured tables that name no kernel of a known kind, or no positive time"};

/// The tables for a family of devices ("a100": all A100s; "h100"). None found is a fault that
/// names the known families.
[[nodiscard]] CheckedResult<KernelMeasurements> read_measured_kernels(const std::string& folder,
                                                                      std::string_view family);

/// "a100", "h100": those for which tables are known.
[[nodiscard]] std::vector<std::string> measured_families();

}  // namespace bubblesim::fit
