// The parts of `bubblesim fit`, and what they share. Inside of sim/app.
#pragma once

#include <string>
#include <vector>

#include "sim/app/app.hpp"
#include "sim/fit/fitted_file.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::app {

void add_fit_network(CLI::App& fit, AppContext& context);
void add_fit_sharing(CLI::App& fit, AppContext& context);
void add_fit_training(CLI::App& fit, AppContext& context);

/// The table that every fit prints, without rows: constant, unit, start, fitted.
[[nodiscard]] TextTable constants_table();

/// That table of these constants, to four digits.
[[nodiscard]] std::string constants_text(const std::vector<fit::FittedConstant>& constants);

/// The config file at `path` with the constants, written to `output` unless that is empty; says
/// so.
[[nodiscard]] ExitCode write_fit(const std::string& output, const std::string& path,
                                 const std::vector<fit::FittedConstant>& constants);

}  // namespace bubblesim::app
