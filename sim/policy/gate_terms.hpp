// How launches ask a policy, and the cost: one rule for all. Fillers' launches ask, since they may
// be held; training's launches do as the policy declares (PolicySpec::training_gate). The costs are
// those of the run's gate; else the policy's own (`ask`, `tell`); else the measured ones, if the
// policy demands launch interception; else none.
//
// `ask`, `tell`: the delay of a launch that may be held, and of a launch that is only reported. On
// a real GPU the gate has its own delay; a simulation uses these, or those of the run's gate.
// Clients may change between the two (Actions::set_asking).
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

/// A gate's delay of a launch that may be held, and of one that is only reported; >= 0.
struct GateCosts {
  Duration ask{};
  Duration tell{};
  GateSleep sleep{};
  bool always = false;  ///< also under policies that do not hear of launches, except oracles
};

/// Delays of a launch through the gate of `fill` on an H200: a filler's round trip, and a launch
/// that is only reported (0.48 to 0.67 us; tests/validation/h200).
inline constexpr GateCosts kMeasuredGate{.ask = Duration{1100}, .tell = Duration{500}};

/// A launch's delays under the policy; `gate`: the run's, may be null.
[[nodiscard]] GateCosts gate_costs(const PolicySpec& spec, const ParameterSet& given,
                                   const GateCosts* gate);

struct GateTerms {
  bool asks = true;  ///< at the start
  Duration ask{};    ///< delay of a launch, whatever the decision; 0: the policy is not told
  Duration tell{};
  GateSleep sleep{};
};

[[nodiscard]] GateTerms gate_terms(const PolicySpec& spec, const ParameterSet& given,
                                   ClientId client, const GateCosts& costs);

}  // namespace bubblesim::policy
