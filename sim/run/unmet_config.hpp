// Notices of requests in a config that its run did not meet: a power cap that no clock keeps, a key
// without effect. Whether a key has an effect depends on the run's length, which sweeps and
// searches vary; so each result has notices, and no run is refused.
#pragma once

#include "sim/base/counters.hpp"
#include "sim/base/time.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/run/gpu_power.hpp"
#include "sim/run/loaded_run.hpp"

namespace bubblesim::run {

inline constexpr CounterSpec kPowerCapNotKept{
    "power_cap_not_kept", Severity::kLoss,
    "periods of the governor in which a GPU or a node drew more than the cap at its lowest clock: "
    "no clock keeps it"};
inline constexpr CounterSpec kMeanOverCap{
    "power_mean_over_cap", Severity::kNotice,
    "GPUs and nodes that drew over 1 % more than their cap on average, though not at their lowest "
    "clock: the work changes as fast as the governor looks"};
inline constexpr CounterSpec kPassesPartlyFilled{
    "filler_passes_partly_filled", Severity::kNotice,
    "fillers whose max_batch is below their requests_per_pass: each pass takes as long as for all "
    "of these and serves fewer"};
inline constexpr CounterSpec kKeysWithoutEffect{
    "config_keys_without_effect", Severity::kNotice,
    "keys of the config that changed nothing: the run ended before they could, or lacks what they "
    "belong to"};

/// Adds counters and notices to the result of a run that ended after `simulated`. Precondition: the
/// result has the use of its GPUs.
void note_unmet_config(const LoadedRun& run, Duration simulated, observe::PolicyResult& result);

/// Adds the notices on a power budget that a node's GPUs share.
void note_unmet_budget(const LoadedRun& run, std::uint32_t node, const NodePower& power,
                       observe::PolicyResult& result);

}  // namespace bubblesim::run
