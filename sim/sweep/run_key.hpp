// The content hash of a run: equal keys mean equal results.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"
#include "sim/sweep/content_hash.hpp"

namespace bubblesim::sweep {

/// All that decides a run but its seed and the program: the config (paths absolute) as canonical
/// JSON with each path replaced by the hash of what it names, and the hashes of the configs that it
/// names by id or that those name, in `configs` (holds devices/, models/ ...). A config that uses a
/// trace without naming a device depends on all of devices/. Faults, at pointers of the config:
/// what is not there, with the nearest name.
[[nodiscard]] CheckedResult<std::string> run_content(const Json& config,
                                                     const std::string& configs,
                                                     FileHashes& files);

[[nodiscard]] std::string run_key(std::string_view content, std::uint64_t seed,
                                  std::string_view program_version);
/// 16 digits.
[[nodiscard]] std::string point_key(std::string_view content);

}  // namespace bubblesim::sweep
