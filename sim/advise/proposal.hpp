// A setting that could be recommended: a policy with parameters, and values of the places that are
// searched besides; how it is put to a trial, and what a trial showed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/question.hpp"
#include "sim/base/json_fwd.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::advise {

struct Proposal {
  const policy::PolicySpec* policy = nullptr;
  std::map<std::string, policy::Value> parameters;  ///< others have their defaults
  std::map<std::string, std::string> places;        ///< JSON pointer, value as JSON text
  friend bool operator==(const Proposal&, const Proposal&) = default;
};

/// "mps filler_percentage=30, /fillers/0/arrivals/rate_per_s=12": unique, and for people.
[[nodiscard]] std::string proposal_text(const Proposal& proposal);
/// All values, defaults included.
[[nodiscard]] policy::ParameterSet parameters_of(const Proposal& proposal);
/// What the system would need.
[[nodiscard]] std::vector<policy::SystemFeature> demanded(const Proposal& proposal);
/// The proposal as an element of a run config's "policies".
[[nodiscard]] Json policy_entry(const Proposal& proposal);

/// How a proposal is simulated.
struct Trial {
  Proposal proposal;
  Duration length{};        ///< simulated
  Duration warmup{};
  std::uint64_t seed = 1;
  double slowdown = 1;      ///< of everything that training does: durations that are off
};

/// What the policy measures and tries at its start. `iteration`: of training alone.
[[nodiscard]] Duration settling_of(const Proposal& proposal, Duration iteration);
/// The trial with a warm-up in which its policy settles; it measures as long as before.
[[nodiscard]] Trial settled(Trial trial, Duration iteration);

/// What a filler's gains are counted in.
struct OwnFiller {
  double requests_per_s = 0;      ///< served offline, on one GPU of its own
  double tokens_per_request = 0;  ///< that it writes; 0: none, or not known
};

/// What a trial showed.
struct TrialResult {
  bool done = false;
  std::string reason;              ///< why not
  double kept = 0;                 ///< of training, 1: as alone
  double gain = 0;                 ///< what fillers got, in GPUs of their own
  double requests_per_s = 0;       ///< of all fillers
  double tokens_per_s = 0;         ///< that they write; 0: none, or not known
  double offered_per_s = 0;        ///< of online ones
  std::optional<Duration> p95;     ///< the worst online filler's
  TokenLatency tokens;             ///< likewise
  bool p95_is_lower_bound = false; ///< too many requests had not completed when the run ended
  bool overloaded = false;
  bool refused = false;            ///< some of the arrivals, but not all
  /// What it cost: events of the simulation; twice as many where a filler was set, which is then
  /// simulated alone, too.
  double events = 0;
  std::string key;                 ///< of its run
};

/// How far the result is beyond the limits, as a share of them; 0: it keeps them.
[[nodiscard]] double violation(const TrialResult& result, const Limits& limits);

/// Whether `left` is the better answer. Within `slack` beyond a limit is as good as within it.
/// Gains within 0.3 % of each other are equal; then more of training kept, then the lower p95.
[[nodiscard]] bool is_better(const TrialResult& left, const TrialResult& right,
                             const Limits& limits, double slack = 0);

/// The best trial so far, for those who watch a search: never one under an oracle.
struct BestTrial {
  std::size_t trials = 0;             ///< all that were noted
  std::optional<TrialResult> result;  ///< nothing: none was done
  std::string text;                   ///< proposal_text() of it

  void note(const Trial& trial, const TrialResult& found, const Limits& limits);
};

}  // namespace bubblesim::advise
