// The parts of `bubblesim validate`, and what they share. Inside of sim/app.
#pragma once

#include <algorithm>
#include <string>

#include "sim/app/app.hpp"
#include "sim/validate/report.hpp"

namespace bubblesim::app {

/// `validate RUN MEASURED`: arguments and options of the command itself.
void add_validate_measured(CLI::App& command, AppContext& context);

/// The files to which judged rows are written.
struct JudgeOutputs {
  std::string json, csv;
  bool summary = false;  ///< in the text, single rows are left out
};
void add_judge_outputs(CLI::App& command, JudgeOutputs& outputs);

/// Writes what was asked for. The exit code says whether one of `rows` has failed.
template <class Rows>
[[nodiscard]] ExitCode finish_judging(const JudgeOutputs& outputs, const Rows& rows,
                                      const std::string& csv, const std::string& json) {
  BUBBLESIM_RETURN_IF_ERROR(write_output(outputs.csv, csv));
  BUBBLESIM_RETURN_IF_ERROR(write_output(outputs.json, json));
  const bool failed = std::any_of(rows.begin(), rows.end(), [](const auto& row) {
    return row.outcome == validate::RowOutcome::kFailed;
  });
  return failed ? kExitUntrusted : kExitOk;
}

}  // namespace bubblesim::app
