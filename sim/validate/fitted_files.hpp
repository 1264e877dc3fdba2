// Config files with fitted constants in them: what is not fitted stays as it is.
#pragma once

#include <string>

#include "sim/base/result.hpp"
#include "sim/network/fit_all_reduce.hpp"
#include "sim/validate/fit_training.hpp"

namespace bubblesim::validate {

/// The software file at `path` with the fit's constants, to four digits, and `source` with them.
[[nodiscard]] Result<std::string> fitted_software_text(const std::string& path,
                                                       const TrainingFit& fit,
                                                       const std::string& source);

/// The cluster file at `path` with the fit's constants. Of a list, by protocol, what is not fitted
/// keeps its value; the source then has both.
[[nodiscard]] Result<std::string> fitted_cluster_text(const std::string& path,
                                                      const network::AllReduceFit& fit,
                                                      const std::string& source);

}  // namespace bubblesim::validate
