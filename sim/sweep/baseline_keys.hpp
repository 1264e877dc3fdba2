// Under which keys runs share what their parts do alone (sim/run/baselines.hpp).
//
// What a baseline does not depend on is taken out of the config, and all else is its key: a key of
// a config that is added one day makes baselines less shared, not wrong. Taken out are the name,
// the policies, other fillers, and of training all fillers. How long a filler runs alone may
// depend on how long training does: its key has all that decides that. It has the filler's place in
// the list too, which faults name.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"
#include "sim/run/baselines.hpp"

namespace bubblesim::sweep {

/// Of /training, what decides its job's programs.
inline constexpr std::array<std::string_view, 6> kJobKeys{
    "trace", "use_iterations", "host_speed", "cluster", "synth", "slow_links"};

/// What of a config decides its training job's programs, device included.
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
