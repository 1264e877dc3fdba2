// What launches ask of a policy, and what that costs: one rule for all. Fillers' launches ask, for
// they may be held; training's do what the policy declares (PolicySpec::training_gate). The costs
// are those of the run's gate; without one the policy's own (`ask`, `tell`); else those measured,
// where the policy demands a library before the driver's; else none.
//
// `ask`, `tell`: a launch that may be held goes on so much later, and one that the policy is only
// told of. On a real GPU the gate takes what it takes; a simulation takes these, or those of the
// run's gate. What launches do at the start may change (Actions::set_asking).
#pragma once

#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policy {

/// Whether launches of the protected client must ask.
[[nodiscard]] bool holds_training(const PolicySpec& spec, const ParameterSet& given);

/// Whether the policy hears of launches, or of their ends, through a gate.
[[nodiscard]] bool hears_launches(const PolicySpec& spec);

/// A thread whose launch is held spins for `spin`, then sleeps; a sleeping thread goes on `wake`
/// after the release. Both >= 0; `wake` 0: it need not be woken.
struct GateSleep {
  Duration spin{};
  Duration wake{};
};

/// What a gate takes of a launch that may be held, and of one that is only told of; >= 0.
struct GateCosts {
  Duration ask{};
  Duration tell{};
  GateSleep sleep{};
  bool always = false;  ///< also under policies that do not hear of launches; never under oracles
};

/// Costs of a launch through the gate of `fill` on an H200: a filler's round trip, and a launch
/// that is told of (0.48 to 0.67 us; tests/validation/h200).
inline constexpr GateCosts kMeasuredGate{.ask = Duration{1100}, .tell = Duration{500}};

/// What launches under the policy take; `gate`: of the run, may be null.
[[nodiscard]] GateCosts gate_costs(const PolicySpec& spec, const ParameterSet& given,
                                   const GateCosts* gate);

struct GateTerms {
  bool asks = true;  ///< at the start
  Duration ask{};    ///< how much later a launch goes on, whatever is decided; 0: nothing is said
  Duration tell{};
  GateSleep sleep{};
};

[[nodiscard]] GateTerms gate_terms(const PolicySpec& spec, const ParameterSet& given,
                                   ClientId client, const GateCosts& costs);

}  // namespace bubblesim::policy
