// Data files by name: "gpt-175b" is a file of a folder, "my/plan.json" is itself.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/result.hpp"

namespace bubblesim::synth {

/// The path that `name` stands for: itself if it has a "/" or ends in ".json", else
/// folder/name.json. Fault: no such file, with the nearest name. `what`: "plan", "software".
[[nodiscard]] CheckedResult<std::string> resolve_name(std::string_view name,
                                                      const std::string& folder,
                                                      std::string_view what);

}  // namespace bubblesim::synth
