// How far the simulator was from measurements under a policy: configs/validation/errors.csv, whose
// figures are those of docs/validation.md.
#pragma once

#include <string>
#include <vector>

#include "sim/advise/advice.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::advise {

/// The rows of a policy, in the order of the file; none: nothing was measured under it. `device`:
/// the name that a device file has, of the device that is asked about.
[[nodiscard]] CheckedResult<std::vector<KnownError>> known_errors(const std::string& config_folder,
                                                                  const std::string& policy,
                                                                  const std::string& device);

}  // namespace bubblesim::advise
