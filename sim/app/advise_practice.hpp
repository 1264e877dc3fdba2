// What `measure` and `fill` say to a recommended setting, asked without starting anything.
#pragma once

#include <cstdint>
#include <string>

#include "sim/advise/proposal.hpp"
#include "sim/app/app.hpp"

namespace bubblesim::app {

/// Why `measure --rank RANK` on a GPU would refuse the run config (its text); empty: it takes it.
[[nodiscard]] std::string why_not_measured(const std::string& run_config, std::uint32_t rank,
                                           const AppContext& context);

/// Why `fill` would refuse the policy with these parameters; empty: it takes them.
[[nodiscard]] std::string why_not_filled(const advise::Proposal& proposal, policy::Role filler,
                                         const AppContext& context);

}  // namespace bubblesim::app
