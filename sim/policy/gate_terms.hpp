// What launches ask of a policy, and what asking costs, as far as its parameters say so.
//
// `barrier`: whose launches it may hold; both: training's too.
// `ask`, `tell`: a launch that may be held goes on so much later, and one that the policy is only
// told of. A policy with `tell` and no `barrier` holds fillers only: training tells. On a real GPU the gate takes what it takes; a simulation takes these, or those of the
// run's gate. What they do at the start may change (Actions::set_asking).
#pragma once

#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policy {

/// Whether launches of the protected client must ask; without `barrier` they need not.
[[nodiscard]] bool holds_training(const ParameterSet& given);

/// Whether a gate lets the policy hear of launches: it looks at them, or at their ends.
[[nodiscard]] bool hears_launches(const PolicySpec& spec);

/// A thread whose launch is held looks for `spin` whether it may go on, and sleeps then: one that
/// slept goes on `wake` after its launch was released. Both >= 0; `wake` 0: it need not be woken.
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

struct GateTerms {
  bool asks = true;  ///< at the start; a policy without `barrier` and `tell` may hold whom it will
  Duration ask{};    ///< how much later a launch goes on, whatever is decided; 0: nothing is said
  Duration tell{};
  GateSleep sleep{};
};

/// `gate`: of the run; null: what the policy's parameters say. Training's launches are told of,
/// unless `barrier` says that they may be held.
[[nodiscard]] GateTerms gate_terms(const ParameterSet& given, ClientId client,
                                   const GateCosts* gate = nullptr);

}  // namespace bubblesim::policy
