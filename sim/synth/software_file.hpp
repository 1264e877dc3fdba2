// Reads configs/software/*.json (configs/software/README.md explains each key): every constant is
// an object with its value and its source, as in device files. All faults at once.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"
#include "sim/synth/software_spec.hpp"

namespace bubblesim::synth {

/// Everything but the id; finishes the root.
[[nodiscard]] SoftwareSpec read_software(ObjectReader& root);

/// `name` is a path (it has a "/" or ends in ".json"), else the id of a file in `folder`.
[[nodiscard]] CheckedResult<SoftwareSpec> find_software(std::string_view name,
                                                        const std::string& folder);

}  // namespace bubblesim::synth
