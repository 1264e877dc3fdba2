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

/// All inputs of a run except its seed and the program: the config (paths absolute) as canonical
/// JSON with each path replaced by the hash of its file or folder, and the hashes of the files in
/// `configs` (devices/, models/ ...) whose ids the config or one of these files names. A config
/// that uses a trace without naming a device depends on all of devices/. Faults, at pointers of the
/// config: missing files, with the nearest name.
[[nodiscard]] CheckedResult<std::string> run_content(const Json& config,
                                                     const std::string& configs,
                                                     FileHashes& files);

[[nodiscard]] std::string run_key(std::string_view content, std::uint64_t seed,
                                  std::string_view program_version);
/// 16 digits.
[[nodiscard]] std::string point_key(std::string_view content);

// Keys under which runs share baselines (sim/run/baselines.hpp).
//
// A baseline's key is the config without the parts that it does not depend on, so that a config key
// added later makes baselines less shared, not wrong. Left out are the name, the policies, other
// fillers, and for training all fillers. The length of a filler's run alone may depend on
// training's, so that its key has everything on which training's length depends. It also has the
// filler's place in the list, which faults name.

/// Keys of /training on which its job's programs depend.
inline constexpr std::array<std::string_view, 6> kJobKeys{
    "trace", "use_iterations", "host_speed", "cluster", "synth", "slow_links"};

/// The parts of a config on which its training job's programs depend, including the device.
[[nodiscard]] std::string job_text(const Json& config);

/// Keys of a run config (paths absolute) for runs that read each file once, so that a path
/// identifies its content. 32 digits each.
[[nodiscard]] run::BaselineKeys baseline_keys(const Json& config);

/// Keys for runs between which files may change: their present content is part of the keys. The
/// config's paths are relative to `folder`; `configs` and faults as run_content.
[[nodiscard]] CheckedResult<run::BaselineKeys> baseline_keys_now(std::string_view config,
                                                            const std::string& folder,
                                                            const std::string& configs);

}  // namespace bubblesim::sweep
