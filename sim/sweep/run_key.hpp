// The content hash of a run: equal keys mean equal results.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"
#include "sim/run/baselines.hpp"
#include "sim/sweep/content_hash.hpp"

namespace bubblesim::sweep {

/// Makes the paths of a run config, which are relative to `folder`, absolute. Devices named by path
/// are relative to the current folder, as on the command line.
void make_paths_absolute(Json& run_config, const std::string& folder);

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

// Keys under which runs share baselines (sim/run/baselines.hpp).
//
// A baseline's key is the config without the parts that it does not depend on, so a config key that
// is added later makes baselines less shared, not wrong. Left out are the name, the policies, other
// fillers, and for training all fillers. How long a filler runs alone may depend on how long
// training does, so its key has all that decides training's length. It also has the filler's place
// in the list, which faults name.

/// Keys of /training that decide its job's programs.
inline constexpr std::array<std::string_view, 6> kJobKeys{
    "trace", "use_iterations", "host_speed", "cluster", "synth", "slow_links"};

/// The parts of a config that decide its training job's programs, device included.
[[nodiscard]] std::string job_text(const Json& config);

/// Keys of a run config (paths absolute) for runs that read each file once: a path stands for
/// its content. 32 digits each.
[[nodiscard]] run::BaselineKeys baseline_keys(const Json& config);

/// Keys for runs between which files may change: what they hold now is part of the keys. The
/// config's paths are relative to `folder`; `configs` and faults as run_content.
[[nodiscard]] CheckedResult<run::BaselineKeys> baseline_keys_now(std::string_view config,
                                                            const std::string& folder,
                                                            const std::string& configs);

}  // namespace bubblesim::sweep
